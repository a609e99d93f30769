"""V14's rule in plain numbers, beside a naive reading of it."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maintenance.departures import Departure, Due, departures

FIRST = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
SWEEPS = [FIRST + day * DAY for day in range(10)]


def due(*days: int) -> list[Due]:
    """Return memories 1, 2, ... that are due at these sweeps."""
    return [Due(place + 1, FIRST + day * DAY) for place, day in enumerate(days)]


def going(found: list[Departure]) -> list[tuple[int, timedelta]]:
    return [(one.memory_id, one.at - FIRST) for one in found]


def test_each_goes_at_the_first_sweep_at_which_it_is_due() -> None:
    found = departures(due(2, 0, 5), recent=[], limit=5, sweeps=SWEEPS)

    assert going(found) == [(2, 0 * DAY), (1, 2 * DAY), (3, 5 * DAY)]


def test_the_limit_lets_the_rest_wait_and_the_lowest_ids_go_first() -> None:
    found = departures(due(0, 0, 0, 1, 0), recent=[], limit=2, sweeps=SWEEPS)

    assert going(found) == [(1, 0 * DAY), (2, 0 * DAY), (3, DAY), (4, DAY), (5, 2 * DAY)]


def test_what_is_due_after_the_last_sweep_stays() -> None:
    assert departures(due(10), recent=[], limit=2, sweeps=SWEEPS) == []


@pytest.mark.parametrize(
    ("ago", "at"),
    [
        (DAY, timedelta()),
        (timedelta(), DAY),
        (DAY - timedelta(seconds=1), DAY),
        (timedelta(hours=-1), 2 * DAY),
    ],
)
def test_recent_deletions_use_up_the_limit(ago: timedelta, at: timedelta) -> None:
    found = departures(due(0), recent=[FIRST - ago], limit=1, sweeps=SWEEPS)

    assert going(found) == [(1, at)]


@given(
    days=st.lists(st.integers(0, 12), max_size=40),
    limit=st.integers(1, 6),
    recent=st.lists(st.floats(0, 30), max_size=8),
)
@settings(max_examples=500, deadline=None)
def test_departures_agree_with_a_naive_reading(days: list[int], limit: int, recent: list[float]) -> None:
    lost = [FIRST - hours * HOUR for hours in recent]

    found = departures(due(*days), recent=list(lost), limit=limit, sweeps=SWEEPS)

    assert going(found) == going(naively(due(*days), lost, limit))


def naively(waiting: list[Due], lost: list[datetime], limit: int) -> list[Departure]:
    gone: list[Departure] = []
    for sweep in SWEEPS:
        for one in sorted(waiting, key=lambda memory: memory.memory_id):
            spent = sum(1 for moment in lost if moment > sweep - DAY)
            if one.at <= sweep and spent < limit and one.memory_id not in {g.memory_id for g in gone}:
                gone.append(Departure(one.memory_id, sweep))
                lost.append(sweep)
    return gone


@given(days=st.lists(st.integers(0, 12), max_size=60), limit=st.integers(1, 6))
@settings(max_examples=200, deadline=None)
def test_no_day_takes_more_than_the_limit(days: list[int], limit: int) -> None:
    found = departures(due(*days), recent=[], limit=limit, sweeps=SWEEPS)

    for one in found:
        assert sum(1 for other in found if one.at - DAY < other.at <= one.at) <= limit
    assert len({one.memory_id for one in found}) == len(found)
