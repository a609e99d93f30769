"""How memories fade: the values an operator may set, with their defaults and bounds."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from memories.importance import MAX_IMPORTANCE, MIN_IMPORTANCE

LIMIT_WINDOW = timedelta(hours=24)  # what the daily deletion limit looks back on
LEVELS = range(MIN_IMPORTANCE, MAX_IMPORTANCE + 1)


@dataclass(frozen=True)
class Bounds:
    low: float
    high: float

    def clamp(self, value: float) -> float:
        return min(max(value, self.low), self.high)


BOUNDS = {
    "halfLifeByImportance": Bounds(0.1, 365),  # days
    "vitalityFloor": Bounds(1, 90),
    "graceDays": Bounds(0, 365),
    "dailyDeletionLimit": Bounds(1, 200),  # memories of one account in 24 hours
}


@dataclass(frozen=True)
class RetentionPolicy:
    enabled: bool = True
    half_lives: tuple[float, ...] = (1, 3, 7, 14, 21, 30, 45, 60, 90, 180)  # days, by importance from 1
    floor: float = 10
    grace_days: float = 14
    daily_deletion_limit: int = 5

    def half_life(self, importance: int) -> float:
        """Return the days after which a memory of this level has half its vitality.

        Raises:
            ValueError: the policy has no positive, finite value for the level.
        """
        value = self.half_lives[importance - 1] if 0 < importance <= len(self.half_lives) else math.nan
        if not math.isfinite(value) or value <= 0:
            raise ValueError(f"The policy has no usable half-life for importance {importance}.")
        return value


DEFAULT_POLICY = RetentionPolicy()


def to_document(policy: RetentionPolicy) -> dict[str, Any]:
    """Return the policy as it is stored. JSON has no NaN: a half-life that is none is null."""
    table = {str(level): policy.half_lives[level - 1] for level in LEVELS}
    return {
        "enabled": policy.enabled,
        "halfLifeByImportance": {key: days if math.isfinite(days) else None for key, days in table.items()},
        "vitalityFloor": policy.floor,
        "graceDays": policy.grace_days,
        "dailyDeletionLimit": policy.daily_deletion_limit,
    }


def from_document(document: Mapping[str, Any]) -> RetentionPolicy:
    """Read a stored document onto the defaults. A half-life missing from a stored table is not made up:
    it stays unusable, loudly.
    """
    policy = DEFAULT_POLICY
    if "halfLifeByImportance" in document:
        table = _table(document)
        stored = (_number(table.get(str(level)), math.nan) for level in LEVELS)
        policy = replace(policy, half_lives=tuple(stored))
    return replace(
        policy,
        enabled=document.get("enabled") is not False,
        floor=_number(document.get("vitalityFloor"), policy.floor),
        grace_days=_number(document.get("graceDays"), policy.grace_days),
        daily_deletion_limit=int(_number(document.get("dailyDeletionLimit"), policy.daily_deletion_limit)),
    )


def clamp(current: RetentionPolicy, document: Mapping[str, Any]) -> RetentionPolicy:
    """Return the policy after a partial change: positive values are clamped into their bounds,
    zero, negative and non-finite ones keep what is there, half-lives merge level by level.
    """
    table, enabled = _table(document), document.get("enabled")
    half_lives = tuple(
        _clamped("halfLifeByImportance", table.get(str(level)), current.half_lives[level - 1])
        for level in LEVELS
    )
    limit = _clamped("dailyDeletionLimit", document.get("dailyDeletionLimit"), current.daily_deletion_limit)
    grace = _number(document.get("graceDays"), current.grace_days)
    return RetentionPolicy(
        enabled=enabled if isinstance(enabled, bool) else current.enabled,
        half_lives=half_lives,
        floor=_clamped("vitalityFloor", document.get("vitalityFloor"), current.floor),
        grace_days=BOUNDS["graceDays"].clamp(grace),
        daily_deletion_limit=round(limit),
    )


def _table(document: Mapping[str, Any]) -> Mapping[str, Any]:
    table = document.get("halfLifeByImportance")
    return table if isinstance(table, Mapping) else {}


def _clamped(name: str, value: object, current: float) -> float:
    number = _number(value, 0)
    return BOUNDS[name].clamp(number) if number > 0 else current


def _number(value: object, otherwise: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return otherwise
    # A comparison, as math.isfinite refuses an integer of hundreds of digits.
    return value if -sys.float_info.max <= value <= sys.float_info.max else otherwise
