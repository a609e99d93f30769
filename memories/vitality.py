"""How alive a memory is, and when it may go. Pure rules; `memories.vitality_sql` says the same in SQL."""

import math
from datetime import datetime, timedelta
from typing import Protocol

from memories.policy import RetentionPolicy

DAY = timedelta(days=1)
HALF_TRUST_USES = 5  # so many uses earn half of what use can add
MAX_STEPS = 365_000  # a thousand years of daily checks


class Facts(Protocol):
    """What a memory's vitality depends on."""

    @property
    def importance(self) -> int: ...
    @property
    def use_count(self) -> int: ...
    @property
    def last_used_at(self) -> datetime | None: ...
    @property
    def created_at(self) -> datetime: ...


def vitality(memory: Facts, policy: RetentionPolicy, now: datetime) -> float:
    """Return 0 to 100: halved with each half-life since the last use, raised by use. Fresh and unused: 50.

    Raises:
        ValueError: the policy has no usable half-life for the memory's importance.
    """
    age = max((now - (memory.last_used_at or memory.created_at)) / DAY, 0.0)
    return min(max(_peak(memory) * 0.5 ** (age / policy.half_life(memory.importance)), 0.0), 100.0)


def is_evictable(memory: Facts, policy: RetentionPolicy, now: datetime) -> bool:
    """Whether a sweep may take the memory now. Grace is looked at before the half-life."""
    if not policy.enabled or (now - memory.created_at) / DAY <= policy.grace_days:
        return False
    return vitality(memory, policy, now) < policy.floor


def evictable_at(memory: Facts, policy: RetentionPolicy, now: datetime) -> datetime | None:
    """Return the first of the daily checks from `now` on at which the memory may go, or None if never."""
    if not policy.enabled:
        return None
    steps = max(_steps_to_grace_end(memory, policy, now), _steps_to_floor(memory, policy, now), 0)
    # Rounding may be off by one check, either way.
    for step in (steps - 1, steps, steps + 1):
        if 0 <= step <= MAX_STEPS and is_evictable(memory, policy, now + step * DAY):
            return now + step * DAY
    return None


def _peak(memory: Facts) -> float:
    return 100 * (0.5 + 0.5 * memory.use_count / (memory.use_count + HALF_TRUST_USES))


def _steps_to_grace_end(memory: Facts, policy: RetentionPolicy, now: datetime) -> int:
    return math.floor(policy.grace_days - (now - memory.created_at) / DAY) + 1


def _steps_to_floor(memory: Facts, policy: RetentionPolicy, now: datetime) -> int:
    peak = _peak(memory)
    if peak < policy.floor:
        return 0
    days = policy.half_life(memory.importance) * math.log2(peak / policy.floor)
    return math.ceil(days - (now - (memory.last_used_at or memory.created_at)) / DAY)
