"""The vitality of one memory over time: its past, rebuilt from its uses, and its future without any."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memories.policy import RetentionPolicy
from memories.vitality import DAY, Facts, evictable_at, vitality

PAST_SAMPLES = 48
FORECAST_SAMPLES = 16
FORECAST_DAYS = 90


@dataclass(frozen=True)
class Point:
    at: datetime
    vitality: float  # 0 to 100


@dataclass(frozen=True)
class VitalityHistory:
    """Judged by today's importance and policy throughout."""

    points: list[Point]  # the past in order; the last is now
    forecast: list[Point]  # from now on
    recalls: list[datetime]  # uses in the window
    floor: float
    evict_at: datetime | None  # the first daily check at which it may go; None for never
    history_from: datetime | None  # since when the past is known, whatever the window
    now: datetime


@dataclass(frozen=True)
class _Moment:
    """The memory as it was at one time."""

    importance: int
    created_at: datetime
    use_count: int
    last_used_at: datetime | None


def vitality_history(
    memory: Facts,
    policy: RetentionPolicy,
    now: datetime,
    *,
    days: int,
    uses: Sequence[datetime],
    kept: Sequence[datetime],
    swept: bool,
) -> VitalityHistory:
    """Rebuild the past of the last `days` days and draw the future.

    Args:
        uses: the logged uses up to now, oldest first; older ones may be missing.
        kept: when it was kept up to now: contact without a use.
        swept: whether sweeps look at the memory at all.
    Raises:
        ValueError: the policy has no usable half-life for the memory's importance.
    """
    known_since = _known_since(memory, uses)
    begin = now - days * DAY
    recalls = [at for at in uses if at >= begin]
    evict_at = evictable_at(memory, policy, now) if swept else None
    return VitalityHistory(
        points=_past(memory, policy, now, uses, kept, max(begin, known_since)) if known_since else [],
        forecast=_future(memory, policy, now, evict_at),
        recalls=recalls,
        floor=policy.floor,
        evict_at=evict_at,
        history_from=known_since,
        now=now,
    )


def _known_since(memory: Facts, uses: Sequence[datetime]) -> datetime | None:
    """Before the first use that is known, neither the count nor the last contact of that time is."""
    if memory.use_count <= len(uses):
        return memory.created_at
    first = uses[0] if uses else memory.last_used_at
    return first and max(first, memory.created_at)


def _past(
    memory: Facts,
    policy: RetentionPolicy,
    now: datetime,
    uses: Sequence[datetime],
    kept: Sequence[datetime],
    begin: datetime,
) -> list[Point]:
    contacts = sorted({*uses, *kept, *([memory.last_used_at] if memory.last_used_at else [])})
    within = {at for at in contacts if begin <= at}
    times = sorted(at for at in {*_evenly(min(begin, now), now, PAST_SAMPLES), *within} if at < now)
    points = [Point(at, vitality(_as_of(at, memory, uses, contacts), policy, at)) for at in times]
    return [*points, Point(now, vitality(memory, policy, now))]


def _as_of(at: datetime, memory: Facts, uses: Sequence[datetime], contacts: Sequence[datetime]) -> _Moment:
    later = len(uses) - bisect_right(uses, at)
    place = bisect_right(contacts, at)
    last = contacts[place - 1] if place else None
    return _Moment(memory.importance, memory.created_at, max(memory.use_count - later, 0), last)


def _future(memory: Facts, policy: RetentionPolicy, now: datetime, evict_at: datetime | None) -> list[Point]:
    end = now + FORECAST_DAYS * DAY
    times = _evenly(now, min(evict_at or end, end), FORECAST_SAMPLES)
    return [Point(at, vitality(memory, policy, at)) for at in times]


def _evenly(begin: datetime, end: datetime, samples: int) -> Iterable[datetime]:
    """Return so many times from `begin` to `end`, both included; one if they are the same."""
    if end <= begin:
        return [end]
    step: timedelta = (end - begin) / (samples - 1)
    return [*(begin + place * step for place in range(samples - 1)), end]
