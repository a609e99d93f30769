"""V1 to V3: how vitality falls, and the first daily check at which a memory may go."""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memories.policy import DEFAULT_POLICY, RetentionPolicy
from memories.vitality import evictable_at, is_evictable, vitality

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
HORIZON_DAYS = 2_600  # 365 days of half-life, from 100 down to a floor of 1, take 2,425


@dataclass(frozen=True)
class Facts:
    importance: int = 5
    use_count: int = 0
    last_used_at: datetime | None = None
    created_at: datetime = NOW


def aged(days: float, **facts: Any) -> Facts:
    return Facts(created_at=NOW - days * DAY, **facts)


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (Facts(), 50),
        (Facts(use_count=5), 75),
        (Facts(use_count=45), 95),
        (aged(21), 25),
        (aged(42), 12.5),
        (aged(1, importance=1), 25),
        (aged(180, importance=10), 25),
        (Facts(created_at=NOW + DAY), 50),
        (Facts(created_at=NOW - 900 * DAY, last_used_at=NOW, use_count=5), 75),
        (Facts(created_at=NOW, last_used_at=NOW - 21 * DAY), 25),
        (aged(200_000, importance=1), 0),
        (Facts(use_count=2**31 - 1), 100),
    ],
)
def test_vitality_halves_with_age_and_grows_with_use(memory: Facts, expected: float) -> None:
    assert vitality(memory, DEFAULT_POLICY, NOW) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("half_life", [0, -1, math.nan, math.inf, -math.inf])
def test_a_level_without_a_half_life_raises_and_exempts_nobody(half_life: float) -> None:
    policy = replace(DEFAULT_POLICY, half_lives=(half_life, *DEFAULT_POLICY.half_lives[1:]))

    with pytest.raises(ValueError, match="importance 1"):
        vitality(Facts(importance=1), policy, NOW)
    with pytest.raises(ValueError, match="importance 1"):
        evictable_at(Facts(importance=1), policy, NOW)
    assert vitality(Facts(importance=2), policy, NOW) == 50


@pytest.mark.parametrize("importance", [0, -1, 11])
def test_a_level_that_does_not_exist_raises(importance: int) -> None:
    with pytest.raises(ValueError, match="no usable half-life"):
        vitality(Facts(importance=importance), DEFAULT_POLICY, NOW)


def test_grace_is_looked_at_before_the_half_life() -> None:
    policy = replace(DEFAULT_POLICY, half_lives=(math.nan,) * 10)

    assert not is_evictable(aged(14), policy, NOW)
    assert not is_evictable(aged(99), replace(policy, enabled=False), NOW)
    with pytest.raises(ValueError, match="importance 5"):
        is_evictable(aged(14.001), policy, NOW)


def test_grace_must_have_passed_strictly() -> None:
    policy = replace(DEFAULT_POLICY, floor=90)

    assert not is_evictable(aged(14), policy, NOW)
    assert is_evictable(Facts(created_at=NOW - 14 * DAY - timedelta(microseconds=1)), policy, NOW)


def test_vitality_must_be_strictly_below_the_floor() -> None:
    policy = replace(DEFAULT_POLICY, floor=25)

    assert not is_evictable(aged(21), policy, NOW)
    assert is_evictable(Facts(created_at=NOW - 21 * DAY - timedelta(seconds=1)), policy, NOW)


@pytest.mark.parametrize(
    ("memory", "changes", "days"),
    [
        (Facts(), {}, 49),  # 21 days · log2(50 / 10) = 48.76
        (Facts(importance=1), {}, 15),  # faded long before, and grace of 14 days must be over
        (aged(14), {"floor": 90}, 1),
        (aged(14.5), {"floor": 90}, 0),
        (aged(21), {"floor": 25}, 1),
        (aged(400), {}, 0),
        (Facts(), {"floor": 50, "grace_days": 0}, 1),
        (Facts(created_at=NOW - 99 * DAY, last_used_at=NOW + 60 * DAY), {"floor": 60}, 0),
    ],
)
def test_the_first_check_at_which_a_memory_may_go(
    memory: Facts, changes: dict[str, float], days: int
) -> None:
    policy = replace(DEFAULT_POLICY, **changes)  # type: ignore[arg-type]

    assert evictable_at(memory, policy, NOW) == NOW + days * DAY


@pytest.mark.parametrize("changes", [{"enabled": False}, {"floor": 0}, {"floor": -3}, {"grace_days": 1e300}])
def test_what_can_never_happen_has_no_date(changes: dict[str, float]) -> None:
    policy = replace(DEFAULT_POLICY, **changes)  # type: ignore[arg-type]

    assert evictable_at(Facts(), policy, NOW) is None


def scan(memory: Facts, policy: RetentionPolicy) -> datetime | None:
    """Look at one day after the other: slow, and without a formula to get wrong."""
    days = (NOW + step * DAY for step in range(HORIZON_DAYS))
    return next((day for day in days if is_evictable(memory, policy, day)), None)


def ages(most_days: int) -> st.SearchStrategy[timedelta]:
    """Whole days, where the boundaries are, as often as any microsecond; a little of it in the future."""
    whole = st.integers(-3, most_days).map(lambda days: days * DAY)
    any_time = st.integers(-3 * 86_400 * 10**6, most_days * 86_400 * 10**6)
    return whole | any_time.map(lambda micros: timedelta(microseconds=micros))


MEMORIES = st.builds(
    Facts,
    importance=st.integers(1, 10),
    use_count=st.integers(0, 20) | st.integers(0, 2**31 - 1),
    last_used_at=st.none() | ages(700).map(lambda age: NOW - age),
    created_at=ages(900).map(lambda age: NOW - age),
)
POLICIES = st.builds(
    RetentionPolicy,
    enabled=st.sampled_from([True, True, True, True, False]),
    half_lives=st.tuples(*[st.integers(1, 365) | st.floats(0.1, 365)] * 10),
    floor=st.sampled_from([1, 12.5, 25, 50, 75, 90]) | st.floats(1, 90),
    grace_days=st.integers(0, 365) | st.floats(0, 365),
)


@settings(max_examples=2_500, deadline=None)
@given(memory=MEMORIES, policy=POLICIES)
@example(memory=aged(14), policy=replace(DEFAULT_POLICY, floor=90))
@example(memory=aged(21), policy=replace(DEFAULT_POLICY, floor=25))
@example(memory=Facts(), policy=replace(DEFAULT_POLICY, floor=50, grace_days=0))
@example(memory=Facts(created_at=NOW + 3 * DAY, last_used_at=NOW + 2 * DAY), policy=DEFAULT_POLICY)
def test_the_closed_form_finds_what_a_daily_scan_finds(memory: Facts, policy: RetentionPolicy) -> None:
    assert evictable_at(memory, policy, NOW) == scan(memory, policy)


@settings(max_examples=1_000, deadline=None)
@given(power=st.integers(1, 6), importance=st.integers(1, 10), age=st.integers(0, 60), data=st.data())
def test_the_closed_form_holds_where_vitality_meets_the_floor_exactly(
    power: int, importance: int, age: int, data: st.DataObject
) -> None:
    """50 halved so many times is reached on a whole day, which does not count yet."""
    grace = data.draw(st.integers(0, 2 * age + 1))
    policy = replace(DEFAULT_POLICY, floor=max(50 / 2**power, 1), grace_days=grace)

    assert evictable_at(aged(age, importance=importance), policy, NOW) == scan(
        aged(age, importance=importance), policy
    )
