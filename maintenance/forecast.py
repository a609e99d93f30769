"""What the coming sweeps would take of the memories that one account may read."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from elowen.lib.db import any_of
from maintenance.departures import Departure, Due, departures
from maintenance.schedules import next_sweep_at
from memories.actions.eviction import lately_evicted
from memories.config import retention_policy, usable
from memories.models import Account, Memory, MemoryEvent
from memories.models.memory import MemoryQuerySet
from memories.policy import RetentionPolicy
from memories.vitality import DAY
from memories.vitality_sql import evictable_at_sql, is_evictable_sql


@dataclass(frozen=True)
class Forecast:
    now: datetime
    next_sweep_at: datetime
    policy: RetentionPolicy
    departures: list[Departure] = field(default_factory=list)  # in the order in which they go
    waiting: int = 0  # due as well, but left by the daily limit beyond the last of these sweeps


def forecast(*, reader: Account, days: int) -> Forecast:
    """Let the sweeps of the coming days pass, as if nobody used, changed or kept anything.

    Raises:
        Unavailable: the stored half-lives cannot be used.
    """
    now, policy = timezone.now(), usable(retention_policy())
    first = next_sweep_at(now)
    sweeps = [first + day * DAY for day in range(days + 1) if first + day * DAY <= now + days * DAY]
    if not policy.enabled or not sweeps:
        return Forecast(now, first, policy)
    due = Memory.objects.active().filter(is_evictable_sql(policy, sweeps[-1]))
    readable = due.readable_by(reader)
    authors = set(readable.order_by().values_list("owner_id", flat=True).distinct())
    gone = _departures(due, authors, policy, sweeps, now)
    ids = [one.memory_id for one in gone]
    shown = set(readable.filter(pk__in=ids).values_list("pk", flat=True))
    seen = [one for one in gone if one.memory_id in shown]
    return Forecast(now, first, policy, seen, readable.count() - len(seen))


def _departures(
    due: MemoryQuerySet,
    authors: Collection[int | None],
    policy: RetentionPolicy,
    sweeps: list[datetime],
    now: datetime,
) -> list[Departure]:
    """Each author's limit is used up by all of the author's memories, so all are looked at."""
    found = _due(due.filter(any_of("owner", authors)), policy, sweeps)
    recent, limit = _recent(authors, now), policy.daily_deletion_limit
    gone = [departures(found[one], recent=recent[one], limit=limit, sweeps=sweeps) for one in authors]
    return sorted((one for account in gone for one in account), key=lambda one: (one.at, one.memory_id))


def _due(
    rows: MemoryQuerySet, policy: RetentionPolicy, sweeps: list[datetime]
) -> dict[int | None, list[Due]]:
    """Of an author's backlog only as many as all the sweeps could take; its date needs no calculation."""
    first = is_evictable_sql(policy, sweeps[0])
    most = policy.daily_deletion_limit * len(sweeps)
    turn = Window(RowNumber(), partition_by="owner_id", order_by="pk")
    backlog = rows.filter(first).annotate(turn=turn).filter(turn__lte=most).values_list("owner_id", "pk")
    later = rows.exclude(first).annotate(due_at=evictable_at_sql(policy, sweeps[0]))
    found = defaultdict[int | None, list[Due]](list)
    for author, memory_id in backlog:
        found[author].append(Due(memory_id, sweeps[0]))
    for author, memory_id, due_at in later.values_list("owner_id", "pk", "due_at"):
        found[author].append(Due(memory_id, due_at))
    return found


def _recent(authors: Collection[int | None], now: datetime) -> dict[int | None, list[datetime]]:
    events = MemoryEvent.objects.filter(lately_evicted(now), any_of("account_id", authors))
    found = defaultdict[int | None, list[datetime]](list)
    for author, created_at in events.values_list("account_id", "created_at"):
        found[author].append(created_at)
    return found
