"""V6 and V7: defaults, bounds, and what becomes of odd values."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.policy import BOUNDS, DEFAULT_POLICY, RetentionPolicy, clamp, from_document, to_document

CURRENT = RetentionPolicy(
    enabled=False, half_lives=(9.0,) * 10, floor=20, grace_days=7, daily_deletion_limit=8
)
HUGE = 10**400  # JSON allows it, a float does not


def test_defaults_and_bounds() -> None:
    assert to_document(DEFAULT_POLICY) == {
        "enabled": True,
        "halfLifeByImportance": {
            "1": 1, "2": 3, "3": 7, "4": 14, "5": 21, "6": 30, "7": 45, "8": 60, "9": 90, "10": 180,
        },
        "vitalityFloor": 10,
        "graceDays": 14,
        "dailyDeletionLimit": 5,
    }  # fmt: skip
    assert {name: (bounds.low, bounds.high) for name, bounds in BOUNDS.items()} == {
        "halfLifeByImportance": (0.1, 365),
        "vitalityFloor": (1, 90),
        "graceDays": (0, 365),
        "dailyDeletionLimit": (1, 200),
    }


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("vitalityFloor", 30, 30),
        ("vitalityFloor", 0.5, 1),
        ("vitalityFloor", 91, 90),
        ("vitalityFloor", 0, 20),
        ("vitalityFloor", -1, 20),
        ("vitalityFloor", math.nan, 20),
        ("vitalityFloor", math.inf, 20),
        ("vitalityFloor", HUGE, 20),
        ("vitalityFloor", "30", 20),
        ("vitalityFloor", None, 20),
        ("vitalityFloor", True, 20),
        ("dailyDeletionLimit", 6, 6),
        ("dailyDeletionLimit", 6.4, 6),
        ("dailyDeletionLimit", 6.6, 7),
        ("dailyDeletionLimit", 0.2, 1),
        ("dailyDeletionLimit", 201, 200),
        ("dailyDeletionLimit", 0, 8),
        ("dailyDeletionLimit", -5, 8),
        ("dailyDeletionLimit", math.nan, 8),
        ("dailyDeletionLimit", -math.inf, 8),
        ("graceDays", 0, 0),
        ("graceDays", 2.5, 2.5),
        ("graceDays", -1, 0),
        ("graceDays", 366, 365),
        ("graceDays", math.inf, 7),
        ("graceDays", math.nan, 7),
        ("graceDays", "3", 7),
        ("enabled", True, True),
        ("enabled", False, False),
        ("enabled", None, False),
        ("enabled", "yes", False),
        ("enabled", 1, False),
    ],
)
def test_a_change_is_clamped_or_leaves_what_was_there(name: str, value: object, kept: object) -> None:
    changed = to_document(clamp(CURRENT, {name: value}))

    assert changed == to_document(CURRENT) | {name: kept}


@pytest.mark.parametrize(
    ("value", "kept"),
    [(30, 30), (0.01, 0.1), (400, 365), (0, 9), (-2, 9), (math.nan, 9), (math.inf, 9), ("7", 9), (None, 9)],
)
def test_half_lives_merge_level_by_level(value: object, kept: float) -> None:
    changed = clamp(CURRENT, {"halfLifeByImportance": {"3": value, "10": 12}})

    assert changed == replace(CURRENT, half_lives=(9, 9, kept, 9, 9, 9, 9, 9, 9, 12))


@pytest.mark.parametrize("table", [None, 7, "soon", [1, 2, 3], {}, {"0": 5, "11": 5}])
def test_a_table_that_is_none_changes_no_half_life(table: object) -> None:
    assert clamp(CURRENT, {"halfLifeByImportance": table}) == CURRENT


def test_the_limit_is_a_whole_number() -> None:
    assert type(clamp(CURRENT, {"dailyDeletionLimit": 6.6}).daily_deletion_limit) is int


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "enabled": st.booleans() | st.none() | st.text(),
            "halfLifeByImportance": st.dictionaries(
                st.integers(0, 12).map(str), st.floats() | st.integers() | st.none()
            )
            | st.none(),
            "vitalityFloor": st.floats() | st.integers() | st.text(),
            "graceDays": st.floats() | st.integers() | st.none(),
            "dailyDeletionLimit": st.floats() | st.integers() | st.booleans(),
        },
    )
)
def test_whatever_is_sent_the_policy_stays_in_its_bounds(document: dict[str, Any]) -> None:
    policy = clamp(CURRENT, document)

    assert all(0.1 <= days <= 365 for days in policy.half_lives)
    assert 1 <= policy.floor <= 90
    assert 0 <= policy.grace_days <= 365
    assert 1 <= policy.daily_deletion_limit <= 200
    assert from_document(json.loads(json.dumps(to_document(policy)))) == policy


def test_nothing_stored_is_the_default() -> None:
    assert from_document({}) == DEFAULT_POLICY


@pytest.mark.parametrize("name", ["vitalityFloor", "graceDays", "dailyDeletionLimit"])
@pytest.mark.parametrize("value", [None, "ten", [], {}, True, HUGE, math.nan])
def test_a_stored_value_that_is_no_number_is_the_default(name: str, value: object) -> None:
    assert from_document({name: value}) == DEFAULT_POLICY


@pytest.mark.parametrize(
    ("table", "unusable"),
    [
        ({"1": 2}, range(2, 11)),
        ({str(level): 2 for level in range(1, 6)}, range(6, 11)),
        ({str(level): 0 for level in range(1, 11)}, range(1, 11)),
        ({str(level): "2" for level in range(1, 11)}, range(1, 11)),
        ({str(level): HUGE for level in range(1, 11)}, range(1, 11)),
        (None, range(1, 11)),
        ([1, 2, 3], range(1, 11)),
    ],
)
def test_a_half_life_that_is_not_stored_is_not_made_up(table: object, unusable: range) -> None:
    policy = from_document({"halfLifeByImportance": table})

    for level in range(1, 11):
        if level in unusable:
            with pytest.raises(ValueError, match=f"importance {level}"):
                policy.half_life(level)
        else:
            assert policy.half_life(level) == 2


def test_a_broken_policy_can_be_stored_again_and_mended_level_by_level() -> None:
    broken = from_document({"halfLifeByImportance": {"1": 2, "2": "soon"}})

    text = json.dumps(to_document(broken), allow_nan=False)
    still_broken = from_document(json.loads(text))
    mended = clamp(still_broken, {"halfLifeByImportance": {str(level): 3 for level in range(2, 11)}})

    with pytest.raises(ValueError, match="importance 2"):
        still_broken.half_life(2)
    assert mended.half_lives == (2, *[3] * 9)
