"""V13: the past of one memory as its uses tell it, and its future."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memories.policy import DEFAULT_POLICY
from memories.vitality import evictable_at, vitality
from memories.vitality_history import VitalityHistory, vitality_history

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Facts:
    importance: int = 5
    use_count: int = 0
    last_used_at: datetime | None = None
    created_at: datetime = NOW - 40 * DAY


def history(memory: Facts, *uses: datetime, **options: Any) -> VitalityHistory:
    given = {"days": 30, "uses": uses, "kept": [], "swept": True, "policy": DEFAULT_POLICY} | options
    return vitality_history(memory, now=NOW, **given)  # type: ignore[arg-type]


def used(*days_ago: float, more: int = 0) -> tuple[Facts, list[datetime]]:
    """Return a memory with these logged uses, and `more` that are logged no longer."""
    uses = [NOW - ago * DAY for ago in sorted(days_ago, reverse=True)]
    return Facts(use_count=len(uses) + more, last_used_at=uses[-1] if uses else None), uses


def test_an_unused_memory_fades_from_its_creation_on() -> None:
    found = history(Facts(created_at=NOW - 21 * DAY))

    assert len(found.points) == 48
    assert (found.points[0].at, found.points[0].vitality) == (NOW - 21 * DAY, 50)
    assert found.points[-1].at == NOW
    assert found.points[-1].vitality == pytest.approx(25)
    assert found.history_from == NOW - 21 * DAY
    assert found.recalls == []


def test_the_window_cuts_the_past_and_samples_it_evenly() -> None:
    found = history(Facts(), days=10)

    steps = {later.at - point.at for point, later in zip(found.points, found.points[1:], strict=False)}
    assert found.points[0].at == NOW - 10 * DAY
    assert found.history_from == NOW - 40 * DAY
    assert max(steps) - min(steps) < timedelta(milliseconds=1)


def test_every_use_in_the_window_is_a_point_and_lifts_the_curve() -> None:
    memory, uses = used(35, 20.123, 3.4)

    found = history(memory, *uses)

    at_use = {point.at: point.vitality for point in found.points}
    assert found.recalls == uses[1:]
    assert len(found.points) == 48 + 2
    assert at_use[uses[1]] == pytest.approx(100 * (0.5 + 0.5 * 2 / 7))
    assert at_use[uses[2]] == pytest.approx(100 * (0.5 + 0.5 * 3 / 8))


def test_the_last_point_is_the_vitality_of_now() -> None:
    memory, uses = used(12, 7, more=3)

    found = history(memory, *uses)

    assert found.points[-1].at == NOW
    assert found.points[-1].vitality == vitality(memory, DEFAULT_POLICY, NOW)


def test_with_older_uses_that_are_logged_no_longer_the_past_begins_at_the_first_known() -> None:
    memory, uses = used(12, 7, more=3)

    found = history(memory, *uses)

    assert found.history_from == found.points[0].at == uses[0]
    assert found.points[0].vitality == pytest.approx(100 * (0.5 + 0.5 * 4 / 9))


def test_with_no_use_logged_the_past_is_known_since_the_last_contact() -> None:
    found = history(Facts(use_count=4, last_used_at=NOW - 9 * DAY, created_at=NOW - 400 * DAY))

    assert found.history_from == found.points[0].at == NOW - 9 * DAY
    assert found.points[-1].vitality == pytest.approx(100 * (0.5 + 0.5 * 4 / 9) * 0.5 ** (9 / 21))


def test_a_merged_memory_has_no_past_before_it_was_made() -> None:
    merged = Facts(use_count=4, last_used_at=NOW - 9 * DAY, created_at=NOW - 2 * DAY)

    assert history(merged).points[0].at == NOW - 2 * DAY


def test_uses_without_a_time_leave_no_past() -> None:
    found = history(Facts(use_count=4))

    assert (found.points, found.history_from) == ([], None)
    assert found.forecast[0].at == NOW


def test_keeping_counts_as_contact_and_not_as_a_recall() -> None:
    kept = Facts(last_used_at=NOW - 5 * DAY, created_at=NOW - 26 * DAY)

    found = history(kept, kept=[NOW - 12 * DAY, NOW - 5 * DAY])

    values = {point.at: point.vitality for point in found.points}
    before = max(at for at in values if at < NOW - 5 * DAY)
    assert found.recalls == []
    assert values[NOW - 12 * DAY] == values[NOW - 5 * DAY] == 50
    assert 38 < values[before] < 42  # since it was kept the time before, not since it was made
    assert found.points[-1].vitality == vitality(kept, DEFAULT_POLICY, NOW)


def test_a_contact_that_lies_ahead_of_a_clock_set_back_counts_now() -> None:
    found = history(Facts(last_used_at=NOW + DAY / 24, created_at=NOW - 60 * DAY))

    assert found.points[-1].vitality == found.forecast[0].vitality == 50


def test_the_future_goes_to_the_day_it_may_go() -> None:
    memory = Facts(created_at=NOW - 2 * DAY)

    found = history(memory)

    assert found.evict_at == evictable_at(memory, DEFAULT_POLICY, NOW)
    assert len(found.forecast) == 16
    assert (found.forecast[0].at, found.forecast[-1].at) == (NOW, found.evict_at)
    assert found.forecast[-1].vitality < found.floor <= found.forecast[-2].vitality


@pytest.mark.parametrize(
    ("memory", "options"),
    [
        (Facts(importance=10, created_at=NOW), {}),
        (Facts(), {"policy": replace(DEFAULT_POLICY, enabled=False)}),
        (Facts(), {"swept": False}),
    ],
)
def test_the_future_ends_after_90_days(memory: Facts, options: dict[str, Any]) -> None:
    found = history(memory, **options)

    assert found.forecast[-1].at == NOW + 90 * DAY
    assert found.evict_at is None or found.evict_at > NOW + 90 * DAY


def test_the_future_of_what_may_go_already_is_now() -> None:
    found = history(Facts(importance=1))

    assert found.evict_at == NOW
    assert [point.at for point in found.forecast] == [NOW]


@pytest.mark.parametrize("created_at", [NOW, NOW + DAY])
def test_a_memory_of_this_very_moment_has_one_point(created_at: datetime) -> None:
    found = history(Facts(created_at=created_at))

    assert [(point.at, point.vitality) for point in found.points] == [(NOW, 50)]


@given(
    ages=st.lists(st.floats(0, 120), max_size=12),
    born=st.floats(0, 150),
    logged=st.integers(0, 12),
    days=st.integers(1, 365),
    importance=st.integers(1, 10),
)
@settings(max_examples=600, deadline=None)
def test_the_rebuilt_past_is_what_was_really_shown(
    ages: list[float], born: float, logged: int, days: int, importance: int
) -> None:
    created_at = NOW - born * DAY
    uses = sorted(NOW - age * DAY for age in ages if age <= born)
    kept = uses[-logged:] if logged else []
    memory = Facts(importance, len(uses), uses[-1] if uses else None, created_at)

    found = history(memory, *kept, days=days)

    for point in found.points:
        so_far = [at for at in uses if at <= point.at]
        then = Facts(importance, len(so_far), so_far[-1] if so_far else None, created_at)
        assert point.vitality == pytest.approx(vitality(then, DEFAULT_POLICY, point.at), abs=1e-9)
    assert {at for at in kept if at >= NOW - days * DAY} <= {point.at for point in found.points}
    assert [point.at for point in found.points] == sorted({point.at for point in found.points})
    assert all(0 <= point.vitality <= 100 for point in (*found.points, *found.forecast))
