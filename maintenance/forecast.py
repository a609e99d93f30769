"""What the coming sweeps would take of the memories that one account may read."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Q
from django.utils import timezone

from maintenance.departures import Departure, Due, departures
from maintenance.schedules import next_sweep_at
from memories.actions.eviction import automatic_deletions
from memories.config import retention_policy, usable
from memories.models import Account, Memory, MemoryEvent
from memories.policy import LIMIT_WINDOW, RetentionPolicy
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
    active = Memory.objects.active().filter(is_evictable_sql(policy, sweeps[-1]))
    readable = dict(active.readable_by(reader).values_list("pk", "owner_id"))
    gone = _departures(set(readable.values()), policy, sweeps)
    seen = [one for one in gone if one.memory_id in readable]
    return Forecast(now, first, policy, seen, len(readable) - len(seen))


def _departures(
    authors: Collection[int | None], policy: RetentionPolicy, sweeps: list[datetime]
) -> list[Departure]:
    """Each author's limit is used up by all of the author's memories, so all are looked at."""
    due, recent = _due(authors, policy, sweeps), _recent(authors, since=sweeps[0] - LIMIT_WINDOW)
    limit = policy.daily_deletion_limit
    gone = [departures(due[one], recent=recent[one], limit=limit, sweeps=sweeps) for one in authors]
    return sorted((one for account in gone for one in account), key=lambda one: (one.at, one.memory_id))


def _due(
    authors: Collection[int | None], policy: RetentionPolicy, sweeps: list[datetime]
) -> dict[int | None, list[Due]]:
    rows = Memory.objects.active().filter(_of("owner", authors), is_evictable_sql(policy, sweeps[-1]))
    dated = rows.annotate(due_at=evictable_at_sql(policy, sweeps[0]))
    found = defaultdict[int | None, list[Due]](list)
    for author, memory_id, due_at in dated.values_list("owner_id", "pk", "due_at"):
        found[author].append(Due(memory_id, due_at))
    return found


def _recent(authors: Collection[int | None], *, since: datetime) -> dict[int | None, list[datetime]]:
    events = MemoryEvent.objects.filter(_of("account_id", authors), automatic_deletions(since=since))
    found = defaultdict[int | None, list[datetime]](list)
    for author, created_at in events.values_list("account_id", "created_at"):
        found[author].append(created_at)
    return found


def _of(column: str, authors: Collection[int | None]) -> Q:
    named = Q(**{f"{column}__in": [author for author in authors if author is not None]})
    return named | Q(**{column: None}) if None in authors else named
