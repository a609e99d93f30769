"""How alive a memory is, and when it may go: the rules in Python, and the same rules as SQL text."""

import math
from datetime import datetime, timedelta
from typing import Any, Protocol

from memories.policy import RetentionPolicy

DAY = timedelta(days=1)
HALF_TRUST_USES = 5  # so many uses earn half of what use can add
LEAST_HALF_LIFE = 1e-9  # days; float8 overflows where an age is divided by much less
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
    age = max(_days_since_use(memory, now), 0.0)
    left: float = 0.5 ** (age / policy.half_life(memory.importance))
    return min(max(_peak(memory) * left, 0.0), 100.0)


def is_evictable(memory: Facts, policy: RetentionPolicy, now: datetime) -> bool:
    """Whether a sweep may take the memory now. Grace is looked at before the half-life."""
    if not policy.enabled or (now - memory.created_at) / DAY <= policy.grace_days:
        return False
    return vitality(memory, policy, now) < policy.floor


def evictable_at(memory: Facts, policy: RetentionPolicy, now: datetime) -> datetime | None:
    """Return the first of the daily checks from `now` on at which the memory may go, or None if never."""
    if not policy.enabled or policy.floor <= 0:
        return None
    wait = max(_days_to_grace_end(memory, policy, now), _days_to_floor(memory, policy, now), 0.0)
    if wait > MAX_STEPS:
        return None  # far outside what the bounds of a policy allow
    # Rounding may be off by one check, either way; and at the very end of grace the next check is the first.
    steps = math.ceil(wait)
    for step in (steps - 1, steps, steps + 1):
        if step >= 0 and is_evictable(memory, policy, now + step * DAY):
            return now + step * DAY
    return None


def _peak(memory: Facts) -> float:
    return 100 * (0.5 + 0.5 * memory.use_count / (memory.use_count + HALF_TRUST_USES))


def _days_since_use(memory: Facts, now: datetime) -> float:
    return (now - (memory.last_used_at or memory.created_at)) / DAY


def _days_to_grace_end(memory: Facts, policy: RetentionPolicy, now: datetime) -> float:
    return policy.grace_days - (now - memory.created_at) / DAY


def _days_to_floor(memory: Facts, policy: RetentionPolicy, now: datetime) -> float:
    peak = _peak(memory)
    if peak < policy.floor:
        return 0.0
    fall = policy.half_life(memory.importance) * (math.log2(peak) - math.log2(policy.floor))
    return fall - _days_since_use(memory, now)


# The same in SQL, over the alias `m` of memories_memory, with the parameters that the two functions at the
# end give. All in float8: numeric arithmetic is many times slower. The CASE keeps the order of the rule: a
# level without a usable half-life divides by zero, and only for a row that gets that far.

NOW = "%(now)s::timestamptz"
LAST_CONTACT = "coalesce(m.last_used_at, m.created_at)"
FLOOR = "%(vitality_floor)s::float8"
HALF_LIFE = "(%(half_lives)s::float8[])[m.importance]"
PEAK = f"(50::float8 + 50::float8 * m.use_count::float8 / (m.use_count::float8 + {HALF_TRUST_USES}))"


def _days(since: str, at: str) -> str:
    return f"(date_part('epoch', {at} - {since}) / 86400::float8)"


def _vitality(at: str) -> str:
    # power() raises on underflow; after a thousand half-lives nothing is left anyway.
    halvings = f"least(greatest({_days(LAST_CONTACT, at)}, 0) / {HALF_LIFE}, 1000)"
    return f"({PEAK} * power(0.5::float8, {halvings}))"


def _past_grace(at: str) -> str:
    return f"(%(retention_on)s::boolean and {_days('m.created_at', at)} > %(grace_days)s::float8)"


def _is_evictable(at: str) -> str:
    return f"(case when {_past_grace(at)} then {_vitality(at)} < {FLOOR} else false end)"


def _evictable_at() -> str:
    fall = f"{HALF_LIFE} * ln({PEAK} / {FLOOR}) / ln(2::float8)"
    to_floor = f"case when {PEAK} < {FLOOR} then 0 else {fall} - {_days(LAST_CONTACT, NOW)} end"
    to_grace_end = f"%(grace_days)s::float8 - {_days('m.created_at', NOW)}"
    at = f"({NOW} + step * interval '24 hours')"
    return f"""(case when %(retention_on)s::boolean and {FLOOR} > 0 then (
        select min({at})
        from (select ceil(greatest({to_grace_end}, {to_floor}, 0)) as steps) as guess,
            unnest(array[steps - 1, steps, steps + 1]) as step
        where step between 0 and {MAX_STEPS} and {_is_evictable(at)}) end)"""  # noqa: S608 - of constants


HAS_HALF_LIFE = f"coalesce({HALF_LIFE} > 0, false)"
PAST_GRACE = _past_grace(NOW)
VITALITY = _vitality(NOW)
IS_EVICTABLE = _is_evictable(NOW)
EVICTABLE_AT = _evictable_at()


def vitality_params(policy: RetentionPolicy, now: datetime) -> dict[str, Any]:
    usable = [days if math.isfinite(days) and days > 0 else 0 for days in policy.half_lives]
    return {"now": now, "half_lives": [float(max(days, LEAST_HALF_LIFE) if days else 0) for days in usable]}


def retention_params(policy: RetentionPolicy, now: datetime) -> dict[str, Any]:
    return vitality_params(policy, now) | {
        "retention_on": policy.enabled,
        "grace_days": float(policy.grace_days),
        "vitality_floor": float(policy.floor),
    }
