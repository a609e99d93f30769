"""Active memories in bounded pages, with those that are due; each page is a query of its own."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.db import connection
from django.db.models import Count

from elowen.lib.db import any_of
from maintenance.models import SweepAccount, SweepRun
from memories.actions.eviction import lately_evicted
from memories.models import MemoryEvent
from memories.policy import RetentionPolicy
from memories.vitality import HAS_HALF_LIFE, IS_EVICTABLE, PAST_GRACE, retention_params

PAGE_ROWS = 1000

# A level whose half-life cannot be used is `stuck`: said aloud, but no reason to spare the other levels.
PAGE = f"""
with page as materialized (
    select m.id, m.owner_id, case when {HAS_HALF_LIFE} then {IS_EVICTABLE} else false end as due,
           {PAST_GRACE} and not {HAS_HALF_LIFE} as stuck
    from memories_memory m
    where m.id > %(position)s and m.id <= %(upto)s and m.status = 'active'
    order by m.id limit %(rows)s
)
select max(id), count(*),
       array_agg(id order by id) filter (where due), array_agg(owner_id order by id) filter (where due),
       array_agg(owner_id) filter (where stuck)
from page
"""


@dataclass(frozen=True)
class Page:
    last_id: int
    scanned: int
    due: list[tuple[int, int | None]]  # memory and author, in the order of the ids
    stuck: list[int | None]  # authors of memories that no half-life can judge


@dataclass
class Spent:
    """How much of an account's daily limit is gone."""

    deletions: int = 0


def next_page(policy: RetentionPolicy, now: datetime, *, position: int, upto: int) -> Page:
    """Return the memories after `position`. The last page may be empty and ends at `upto`."""
    bounds = {"position": position, "upto": upto, "rows": PAGE_ROWS}
    with connection.cursor() as cursor:
        cursor.execute(PAGE, retention_params(policy, now) | bounds)
        last_id, scanned, due, authors, stuck = cast(tuple[Any, ...], cursor.fetchone())
    last_id = last_id if scanned == PAGE_ROWS else upto
    return Page(last_id, scanned, list(zip(due or [], authors or [], strict=True)), stuck or [])


def spent_of(run: SweepRun, authors: Collection[int | None]) -> dict[int | None, Spent]:
    """Return what each author has lost in the window. In a dry run its own count comes on top."""
    events = MemoryEvent.objects.filter(lately_evicted(run.started_at))
    lost = events.filter(any_of("account_id", authors)).values_list("account_id").annotate(Count("pk"))
    spent = {author: Spent() for author in authors} | {author: Spent(count) for author, count in lost}
    if run.dry_run:
        imagined = SweepAccount.objects.filter(any_of("account_id", authors), run=run)
        for author, evicted in imagined.values_list("account_id", "evicted"):
            spent[author].deletions += evicted
    return spent
