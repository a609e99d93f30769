"""The geometry of the drawings: everything inside, in order, apart, and true to the rules."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memories.charts import NARROW, WIDE, Fate, RetentionChart, fates, retention_chart, timeline_chart
from memories.charts.drawing import LINE, Frame, Label
from memories.importance import VERBAL_SCALE
from memories.policy import DEFAULT_POLICY, LEVELS, RetentionPolicy, from_document
from memories.vitality import DAY, is_evictable

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)

type Dots = list[tuple[float, float]]


@dataclass(frozen=True)
class Unused:
    importance: int
    use_count: int = 0
    last_used_at: datetime | None = None
    created_at: datetime = NOW


def dots_of(points: str) -> Dots:
    pairs = (pair.split(",") for pair in points.split())
    return [(float(x), float(y)) for x, y in pairs]


def numbers_in(value: Any) -> Iterator[float]:
    """Every number that a template could print."""
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from numbers_in(item)
    elif is_dataclass(value):
        for field in fields(value):
            held = getattr(value, field.name)
            points = field.name in ("points", "leader", "past", "forecast")
            yield from chain(*dots_of(held)) if points else numbers_in(held)


def is_inside(frame: Frame, dots: Dots) -> bool:
    return all(frame.left <= x <= frame.right and frame.top <= y <= frame.bottom for x, y in dots)


def overlap(one: Label, other: Label) -> bool:
    beside = one.x + one.width <= other.x or other.x + other.width <= one.x
    return not beside and abs(one.y - other.y) < LINE


def labels_of(chart: RetentionChart) -> list[Label]:
    return [chart.floor.label, *(curve.label for curve in chart.curves)]


def assert_can_be_read(chart: RetentionChart) -> None:
    frame, labels = chart.frame, labels_of(chart)
    assert all(math.isfinite(number) for number in numbers_in(chart))
    for curve in chart.curves:
        dots = dots_of(curve.points)
        assert is_inside(frame, dots)
        assert all(x <= later and y <= lower for (x, y), (later, lower) in pairwise(dots))
    assert not any(overlap(one, other) for place, one in enumerate(labels) for other in labels[:place])
    for label in labels:
        assert frame.left <= label.x < label.x + label.width <= frame.width
        assert frame.top - LINE <= label.y <= frame.bottom
    assert is_inside(frame, [(chart.grace.at, chart.floor.at)])
    assert is_inside(frame, [(tick.at, frame.bottom) for tick in chart.x_ticks])
    assert is_inside(frame, [(frame.left, tick.at) for tick in chart.y_ticks])


@pytest.mark.parametrize("frame", [WIDE, NARROW])
def test_the_defaults_have_ten_curves_from_one_point_in_the_order_of_their_levels(frame: Frame) -> None:
    chart = retention_chart(DEFAULT_POLICY, frame)

    assert_can_be_read(chart)
    assert [curve.level for curve in chart.curves] == list(LEVELS)
    assert {dots_of(curve.points)[0] for curve in chart.curves} == {(frame.left, frame.top)}
    assert [curve.label.text for curve in chart.curves] == [str(level) for level in LEVELS]
    assert all(one.label.x < other.label.x for one, other in pairwise(chart.curves))
    assert [tick.text for tick in chart.y_ticks] == ["0", "10", "20", "30", "40", "50"]
    assert (chart.floor.label.text, chart.grace.label.text) == ("floor 10", "grace ends after 14 days")


def test_the_ticks_are_spans_that_people_name() -> None:
    assert [tick.text for tick in retention_chart(DEFAULT_POLICY).x_ticks] == [
        "1 day",
        "3 days",
        "1 week",
        "2 weeks",
        "1 month",
        "3 months",
        "1 year",
    ]


def test_half_lives_of_a_day_and_of_half_a_year_can_both_be_told_from_their_neighbours() -> None:
    chart = retention_chart(DEFAULT_POLICY, NARROW)
    ends = {curve.level: curve.end.x for curve in chart.curves if curve.end}

    assert chart.x_ticks[0].at - NARROW.left > 20
    assert ends[10] - ends[9] > 15


def test_a_curve_ends_with_a_dot_on_the_day_when_the_memory_may_go() -> None:
    chart = retention_chart(replace(DEFAULT_POLICY, grace_days=29, half_lives=(1,) * 10))
    month = next(tick.at for tick in chart.x_ticks if tick.text == "1 month")

    assert fates(DEFAULT_POLICY)[0].goes_after_days == 15
    for curve in chart.curves:
        assert curve.end
        assert (curve.end.x, curve.end.y) == dots_of(curve.points)[-1]
        assert curve.end.x == month
        assert curve.end.x > chart.grace.at


def test_the_fate_of_each_level_is_what_a_daily_look_finds() -> None:
    for level in LEVELS:
        days = (day for day in range(1000) if is_evictable(Unused(level), DEFAULT_POLICY, NOW + day * DAY))
        fate = Fate(level, VERBAL_SCALE[level], DEFAULT_POLICY.half_life(level), next(days))

        assert fates(DEFAULT_POLICY)[level - 1] == fate


def test_a_floor_above_a_fresh_memory_is_drawn_above_it() -> None:
    chart = retention_chart(replace(DEFAULT_POLICY, floor=80))

    assert_can_be_read(chart)
    assert chart.floor.at < min(y for curve in chart.curves for _, y in dots_of(curve.points))
    assert [tick.text for tick in chart.y_ticks] == ["0", "20", "40", "60", "80", "100"]
    assert {fate.goes_after_days for fate in fates(replace(DEFAULT_POLICY, floor=80))} == {15}


def test_of_a_policy_that_is_off_the_curves_run_on_and_nothing_goes() -> None:
    policy = replace(DEFAULT_POLICY, enabled=False)
    chart = retention_chart(policy)

    assert_can_be_read(chart)
    assert {fate.goes_after_days for fate in fates(policy)} == {None}
    assert {curve.end for curve in chart.curves} == {None}
    assert {dots_of(curve.points)[-1][0] for curve in chart.curves} == {WIDE.right}


def test_what_goes_later_than_in_two_years_runs_to_the_edge() -> None:
    policy = replace(DEFAULT_POLICY, half_lives=(365,) * 10, floor=1)
    chart = retention_chart(policy)

    assert_can_be_read(chart)
    assert fates(policy)[0].goes_after_days == 2061
    assert {curve.end for curve in chart.curves} == {None}
    assert chart.x_ticks[-1].text == "2 years"
    assert chart.x_ticks[-1].at == WIDE.right


def test_labels_of_curves_that_are_one_are_piled_up_in_order() -> None:
    chart = retention_chart(replace(DEFAULT_POLICY, half_lives=(30,) * 10))
    heights = [curve.label.y for curve in chart.curves]

    assert len({curve.points for curve in chart.curves}) == 1
    assert all(one - other >= LINE for one, other in pairwise(heights))
    assert chart.curves[0].label.leader == ""
    assert dots_of(chart.curves[9].label.leader)[0][1] == chart.floor.at


def test_a_level_without_a_half_life_has_no_curve_and_no_date() -> None:
    policy = replace(DEFAULT_POLICY, half_lives=(1, math.nan, 0, -1, math.inf, 30, 45, 60, 90, 180))

    assert [curve.level for curve in retention_chart(policy).curves] == [1, 6, 7, 8, 9, 10]
    assert fates(policy)[1] == Fate(2, VERBAL_SCALE[2], None, None)
    assert_can_be_read(retention_chart(policy))


def test_without_any_half_life_the_area_is_still_drawn() -> None:
    chart = retention_chart(replace(DEFAULT_POLICY, half_lives=(math.nan,) * 10))

    assert chart.curves == []
    assert_can_be_read(chart)


@pytest.mark.parametrize(
    ("days", "words"), [(0, "no grace"), (1, "grace ends after 1 day"), (0.5, "grace ends after 0.5 days")]
)
@pytest.mark.parametrize("frame", [WIDE, NARROW])
def test_the_words_at_the_end_of_grace_stay_inside(frame: Frame, days: float, words: str) -> None:
    for grace in (days, 14, 365):
        label = retention_chart(replace(DEFAULT_POLICY, grace_days=grace), frame).grace.label
        begin = label.x - {"start": 0, "middle": 0.5, "end": 1}[label.anchor] * label.width
        assert -2 <= begin <= frame.width - label.width + 2

    assert retention_chart(replace(DEFAULT_POLICY, grace_days=days), frame).grace.label.text == words


HALF_LIVES = st.integers(1, 365) | st.floats(0.1, 365) | st.sampled_from([0.1, 30, 30, 365])
POLICIES = st.builds(
    RetentionPolicy,
    enabled=st.sampled_from([True, True, True, False]),
    half_lives=st.tuples(*[HALF_LIVES] * 10) | HALF_LIVES.map(lambda days: (days,) * 10),
    floor=st.sampled_from([1, 10, 40, 41, 50, 90]) | st.floats(1, 90),
    grace_days=st.sampled_from([0, 1, 14, 365]) | st.floats(0, 365),
)


@settings(max_examples=250, deadline=None)
@given(policy=POLICIES, frame=st.sampled_from([WIDE, NARROW]))
@example(policy=replace(DEFAULT_POLICY, floor=50, grace_days=0), frame=NARROW)
@example(policy=replace(DEFAULT_POLICY, floor=40, grace_days=0, half_lives=(0.1,) * 10), frame=NARROW)
def test_every_policy_within_its_bounds_can_be_read(policy: RetentionPolicy, frame: Frame) -> None:
    assert_can_be_read(retention_chart(policy, frame))


ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "enabled": ANYTHING,
        "halfLifeByImportance": ANYTHING | st.dictionaries(st.sampled_from("123456789"), ANYTHING),
        "vitalityFloor": ANYTHING,
        "graceDays": ANYTHING,
    },
)


@settings(max_examples=250, deadline=None)
@given(document=DOCUMENTS)
@example(document={"vitalityFloor": 0})
@example(document={"vitalityFloor": 90, "graceDays": -1})
@example(document={"vitalityFloor": -500, "graceDays": 5_000})
@example(document={"graceDays": 1e308, "vitalityFloor": 5e-324})
@example(document={"halfLifeByImportance": {"1": 5e-324, "2": 1.7e308}})
def test_whatever_is_stored_is_drawn_without_an_error(document: dict[str, Any]) -> None:
    policy = from_document(document)
    chart = retention_chart(policy)

    assert all(math.isfinite(number) for number in numbers_in(chart))
    assert all(is_inside(WIDE, dots_of(curve.points)) for curve in chart.curves)
    assert is_inside(WIDE, [(chart.grace.at, chart.floor.at)])
    assert len(fates(policy)) == 10


def course(begin: datetime, end: datetime, high: float, low: float) -> list[tuple[datetime, float]]:
    steps = [(begin + (end - begin) * step / 10, high + (low - high) * step / 10) for step in range(11)]
    return steps if end > begin else steps[:1]


def test_a_timeline_has_its_past_its_future_and_a_dot_for_each_recall_on_the_curve() -> None:
    past, future = course(NOW - 20 * DAY, NOW, 80, 40), course(NOW, NOW + 30 * DAY, 40, 9)
    recalls = [past[3][0], past[3][0] + DAY, NOW]

    chart = timeline_chart(past, future, recalls, floor=10, now=NOW, evict_at=NOW + 30 * DAY)

    drawn = dots_of(chart.past)
    assert is_inside(chart.frame, [*drawn, *dots_of(chart.forecast)])
    assert drawn[0] == (chart.frame.x(0), chart.frame.y(0.8))
    assert drawn[-1] == dots_of(chart.forecast)[0] == (chart.now, chart.frame.y(0.4))
    assert (chart.dots[0].x, chart.dots[0].y) == drawn[3]
    assert drawn[3][1] < chart.dots[1].y < drawn[4][1]
    assert (chart.dots[2].x, chart.dots[2].y) == drawn[-1]
    assert chart.evict == chart.frame.right
    assert chart.floor == chart.frame.y(0.1)
    assert (chart.width, chart.height) == (640, 260)
    assert [tick.text for tick in chart.y_ticks] == ["0", "25", "50", "75", "100"]
    assert [tick.text for tick in chart.x_ticks][:2] == ["2026-04-12", "2026-04-21"]


def test_what_is_not_on_a_timeline_is_not_drawn() -> None:
    past, future = course(NOW - 9 * DAY, NOW, 80, 40), course(NOW, NOW + 90 * DAY, 40, 20)
    recalls = [NOW - 10 * DAY, NOW + DAY]

    chart = timeline_chart(past, future, recalls, floor=10, now=NOW, evict_at=NOW + 91 * DAY)

    assert chart.dots == []
    assert chart.evict is None
    assert timeline_chart([], future, recalls, floor=10, now=NOW, evict_at=None).dots == []


def test_a_timeline_of_one_moment_is_drawn() -> None:
    chart = timeline_chart([], [(NOW, 5)], [NOW], floor=10, now=NOW, evict_at=NOW)

    assert (chart.past, chart.forecast) == ("", f"{chart.now},{chart.frame.y(0.05)}")
    assert chart.now == chart.evict == chart.frame.left
    assert len(timeline_chart([], [], [], floor=10, now=NOW, evict_at=None).x_ticks) >= 4


def test_the_curve_of_two_uses_at_one_instant_is_drawn() -> None:
    past = [(NOW - DAY, 50.0), (NOW - DAY, 60.0), (NOW, 40.0)]

    chart = timeline_chart(past, [(NOW, 40)], [NOW - DAY], floor=10, now=NOW, evict_at=None)

    assert (chart.dots[0].x, chart.dots[0].y) == dots_of(chart.past)[1]


@settings(max_examples=300, deadline=None)
@given(
    back=st.timedeltas(timedelta(0), timedelta(days=365)),
    ahead=st.timedeltas(timedelta(0), timedelta(days=90)),
    high=st.floats(0, 100),
    low=st.floats(0, 100),
    hour=st.integers(0, 23),
    recalls=st.lists(st.floats(-400, 100), max_size=5),
    evict=st.none() | st.integers(0, 400),
)
def test_every_timeline_is_inside_and_has_four_to_six_dates_that_do_not_touch(
    back: timedelta,
    ahead: timedelta,
    high: float,
    low: float,
    hour: int,
    recalls: list[float],
    evict: int | None,
) -> None:
    now = NOW.replace(hour=hour)
    used = sorted(now + day * DAY for day in recalls)
    evict_at = None if evict is None else now + evict * DAY

    past, future = course(now - back, now, high, low), course(now, now + ahead, low, 0)
    chart = timeline_chart(past, future, used, floor=10, now=now, evict_at=evict_at)

    dots = [*dots_of(chart.past), *dots_of(chart.forecast), *((dot.x, dot.y) for dot in chart.dots)]
    assert all(math.isfinite(number) for number in numbers_in(chart))
    assert is_inside(chart.frame, [*dots, (chart.now, chart.floor)])
    assert 4 <= len(chart.x_ticks) <= 6
    assert len({tick.text for tick in chart.x_ticks}) == len(chart.x_ticks)
    assert all(other.at - one.at > 66 for one, other in pairwise(chart.x_ticks))
    assert all(33 <= tick.at <= chart.width - 33 for tick in chart.x_ticks)
