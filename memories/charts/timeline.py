"""One memory's vitality over time as a drawing."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from memories.charts.drawing import Dot, Frame, Tick, points
from memories.vitality import DAY

TIMELINE = Frame(640, 260, left=44, margin_right=36, top=36, margin_bottom=36)

type Moments = Sequence[tuple[datetime, float]]  # times in order, each with its vitality


@dataclass(frozen=True)
class TimelineChart:
    frame: Frame
    past: str
    forecast: str
    dots: list[Dot]
    floor: float
    now: float
    evict: float | None  # None for never, or later than is drawn
    x_ticks: list[Tick]
    y_ticks: list[Tick]

    @property
    def width(self) -> int:
        return self.frame.width

    @property
    def height(self) -> int:
        return self.frame.height


def timeline_chart(
    past: Moments,
    forecast: Moments,
    recalls: Sequence[datetime],
    *,
    floor: float,
    now: datetime,
    evict_at: datetime | None,
    frame: Frame = TIMELINE,
) -> TimelineChart:
    """Draw one memory's vitality: what it was, what it will be, and a dot for each recall on the curve.

    The dates below are whole days in UTC, four to six of them. A recall outside of the known past has no dot.
    """
    span = _Span(frame, *_range([at for at, _ in [*past, *forecast]] or [now]))
    known = [at for at in recalls if past and past[0][0] <= at <= past[-1][0]]
    return TimelineChart(
        frame=frame,
        past=points(span.dot(at, value) for at, value in past),
        forecast=points(span.dot(at, value) for at, value in forecast),
        dots=[span.dot(at, _height(past, at)) for at in known],
        floor=frame.y(floor / 100),
        now=span.x(now),
        evict=span.x(evict_at) if evict_at and evict_at <= span.end else None,
        x_ticks=[span.tick(day) for day in _some(span.midnights())],
        y_ticks=[Tick(frame.y(value / 100), str(value)) for value in range(0, 101, 25)],
    )


@dataclass(frozen=True)
class _Span:
    """The time that a timeline shows."""

    frame: Frame
    begin: datetime
    end: datetime

    def x(self, at: datetime) -> float:
        return self.frame.x((at - self.begin) / (self.end - self.begin))

    def dot(self, at: datetime, value: float) -> Dot:
        return Dot(self.x(at), self.frame.y(value / 100))

    def midnights(self) -> list[datetime]:
        first = self.begin.replace(hour=0, minute=0, second=0, microsecond=0)
        days = (first + day * DAY for day in range((self.end - first).days + 1))
        return [day for day in days if day >= self.begin]

    def tick(self, day: datetime) -> Tick:
        return Tick(self.x(day), day.date().isoformat())


def _range(times: Sequence[datetime]) -> tuple[datetime, datetime]:
    """Return the first and the last of the times in UTC, four days apart at least, as that has four dates."""
    begin, end = min(times).astimezone(UTC), max(times).astimezone(UTC)
    return begin, max(end, begin + timedelta(days=4))


def _some(days: Sequence[datetime]) -> Sequence[datetime]:
    return days[:: math.ceil(len(days) / 6)]


def _height(moments: Moments, at: datetime) -> float:
    """Return the vitality on the drawn line at a time within it."""
    after = bisect_right(moments, at, key=lambda moment: moment[0])
    (begin, low), (end, high) = moments[after - 1], moments[min(after, len(moments) - 1)]
    return low + (high - low) * ((at - begin) / (end - begin)) if end > begin else low
