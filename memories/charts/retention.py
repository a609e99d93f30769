"""How an unused memory of each level fades, and when it may go: as a table and as a drawing."""

import math
from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, datetime

from memories.charts.drawing import LETTER, Dot, Frame, Label, Tick, apart, points, readable
from memories.importance import VERBAL_SCALE
from memories.policy import LEVELS, RetentionPolicy
from memories.vitality import DAY, evictable_at, vitality

WIDE, NARROW = Frame(540, 380), Frame(300, 340)
LEAST_DAYS, MOST_DAYS = 7, 730
MINUTES = 24 * 60
FRESH = 50  # the vitality of a memory that is stored and not used yet
SPANS = {1: "1 day", 3: "3 days", 7: "1 week", 14: "2 weeks", 30: "1 month", 90: "3 months", 180: "6 months"}
SPANS |= {365: "1 year", 730: "2 years"}
STORED_AT = datetime(2000, 1, 1, tzinfo=UTC)  # any day will do


@dataclass(frozen=True)
class Fate:
    """What becomes of a memory of one level that nobody uses."""

    level: int
    words: str
    half_life_days: float | None  # None where the policy has none that can be used
    goes_after_days: int | None  # the first daily check that may take it; None for never


@dataclass(frozen=True)
class Curve:
    level: int
    points: str
    label: Label
    end: Dot | None  # the day when it may first go; None when that is never, or later than is drawn


@dataclass(frozen=True)
class Rule:
    """A straight line through the whole area, and what it is called."""

    at: float
    label: Label


@dataclass(frozen=True)
class RetentionChart:
    frame: Frame
    curves: list[Curve]
    floor: Rule
    grace: Rule
    x_ticks: list[Tick]
    y_ticks: list[Tick]


def fates(policy: RetentionPolicy) -> list[Fate]:
    """Return the fate of each level. One without a usable half-life has no date: it is never judged."""
    return [_fate(policy, level) for level in LEVELS]


def retention_chart(policy: RetentionPolicy, frame: Frame = WIDE) -> RetentionChart:
    """Draw how an unused memory of each level fades from the day it is stored.

    Days are drawn closer together the later they are (by the logarithm of days + 1), so that half-lives of a
    day and of half a year can both be read. A level without a usable half-life has no curve.
    """
    courses = [_Course(policy, fate) for fate in fates(policy) if fate.half_life_days is not None]
    ends = (max(course.fades_after, course.fate.goes_after_days or 0) for course in courses)
    area = _Area(frame, min(max(LEAST_DAYS, policy.grace_days, *ends), MOST_DAYS), policy.floor)
    floor, grace = _floor(area, policy.floor), _grace(area, policy.grace_days)
    labels = apart([(course.anchor(area), course.name) for course in courses], frame, taken=[floor.label])
    return RetentionChart(
        frame=frame,
        curves=[course.curve(area, label) for course, label in zip(courses, labels, strict=True)],
        floor=floor,
        grace=grace,
        x_ticks=readable(Tick(area.x(days), text) for days, text in SPANS.items() if days <= area.days),
        y_ticks=[Tick(area.y(value), str(value)) for value in range(0, area.most + 1, area.most // 5)],
    )


@dataclass(frozen=True)
class _Unused:
    """A memory of which only the level matters."""

    importance: int
    use_count: int = 0
    last_used_at: None = None
    created_at: datetime = STORED_AT


@dataclass(frozen=True)
class _Area:
    """The days and the vitality that a retention chart shows."""

    frame: Frame
    days: float
    floor: float

    @property
    def most(self) -> int:
        return FRESH if self.floor <= 0.8 * FRESH else 100  # room for the words above a high floor

    def x(self, days: float) -> float:
        return self.frame.x(math.log1p(max(days, 0)) / math.log1p(self.days))

    def y(self, value: float) -> float:
        return self.frame.y(value / self.most)


@dataclass(frozen=True)
class _Course:
    """The way of one level from fresh to gone."""

    policy: RetentionPolicy
    fate: Fate

    @property
    def name(self) -> str:
        return str(self.fate.level)

    def vitality(self, days: float) -> float:
        return vitality(_Unused(self.fate.level), self.policy, STORED_AT + days * DAY)

    def days_until(self, value: float) -> float:
        """Return after how many days vitality is below the value, to the minute; at most MOST_DAYS."""
        minutes = range(MOST_DAYS * MINUTES)
        return (
            bisect_left(minutes, True, key=lambda minute: self.vitality(minute / MINUTES) < value) / MINUTES
        )

    @property
    def fades_after(self) -> float:
        return self.days_until(self.policy.floor)

    def last_day(self, area: _Area) -> float:
        goes = self.fate.goes_after_days
        return area.days if goes is None else min(goes, area.days)

    def anchor(self, area: _Area) -> Dot:
        """Return what the label names: where the curve meets the floor, if not its end. A high floor cuts
        off the curves too soon to be told apart; half of what there was is then a better place.
        """
        days = min(self.days_until(min(self.policy.floor, FRESH / 2)), self.last_day(area))
        return Dot(area.x(days), area.y(self.vitality(days)))

    def curve(self, area: _Area, label: Label) -> Curve:
        dots = [Dot(area.x(days), area.y(self.vitality(days))) for days in self._samples(area)]
        goes = self.fate.goes_after_days
        end = dots[-1] if goes is not None and goes <= area.days else None
        return Curve(self.fate.level, points(dots), label, end)

    def _samples(self, area: _Area) -> list[float]:
        """Evenly over the drawing, and where the curve is steep: at each half of a half-life."""
        last, half_life = self.last_day(area), self.fate.half_life_days or 0
        even = (math.expm1(math.log1p(last) * step / 32) for step in range(32))
        steep = (half_life * step / 2 for step in range(1, 16))
        return sorted({*even, *(days for days in steep if days < last), last})


def _fate(policy: RetentionPolicy, level: int) -> Fate:
    try:
        goes_at = evictable_at(_Unused(level), policy, STORED_AT)
        half_life = policy.half_life(level)
    except ValueError:
        return Fate(level, VERBAL_SCALE[level], None, None)
    return Fate(level, VERBAL_SCALE[level], half_life, (goes_at - STORED_AT).days if goes_at else None)


def _floor(area: _Area, floor: float) -> Rule:
    y = area.y(floor)
    return Rule(y, Label(area.frame.left + 5, y - 4, f"floor {floor:g}"))


def _grace(area: _Area, days: float) -> Rule:
    """The words stand above the area, as far to the side as they need to be whole."""
    x, text = area.x(days), f"grace ends after {days:g} day{'' if days == 1 else 's'}"
    text = text if days > 0 else "no grace"
    half = LETTER * len(text) / 2
    anchor = "start" if x < half else "end" if x + half > area.frame.width else "middle"
    return Rule(x, Label(x, area.frame.top - 10, text, anchor))
