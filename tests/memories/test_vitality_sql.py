"""V4: what SQL says about a row is what Python says about it."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DataError, connection, transaction
from django.db.models.expressions import RawSQL

from memories.models import Account, Memory
from memories.policy import DEFAULT_POLICY, RetentionPolicy
from memories.vitality import evictable_at, is_evictable, vitality
from memories.vitality_sql import evictable_at_sql, is_evictable_sql, vitality_sql
from tests.factories import MemoryFactory

type Expression = Callable[[RetentionPolicy, datetime], RawSQL]

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
BROKEN = replace(DEFAULT_POLICY, half_lives=(math.nan, 0, -1, math.inf, *DEFAULT_POLICY.half_lives[4:]))


def random_policy(chance: random.Random) -> RetentionPolicy:
    return RetentionPolicy(
        half_lives=tuple(chance.choice([chance.uniform(0.1, 365), chance.randint(1, 30)]) for _ in range(10)),
        floor=chance.choice([1, 12.5, 25, 50, 90, chance.uniform(1, 90)]),
        grace_days=chance.choice([0, 14, chance.uniform(0, 365)]),
    )


def random_row(chance: random.Random, owner: Account) -> Memory:
    """Ages are whole days or any microsecond, some in the future, some beyond a thousand half-lives."""
    ages = [chance.randint(-2, 90) * DAY, timedelta(microseconds=chance.randint(-(10**11), 10**15))]
    used = [None, NOW - chance.randint(0, 90) * DAY, NOW - timedelta(seconds=chance.uniform(-(10**5), 10**8))]
    return Memory(
        owner=owner,
        body="Tea.",
        importance=chance.randint(1, 10),
        use_count=chance.choice([0, 0, chance.randint(1, 30), 2**31 - 1]),
        created_at=NOW - chance.choice(ages),
        last_used_at=chance.choice(used),
    )


def store_random_rows(chance: random.Random, owner: Account) -> None:
    Memory.objects.bulk_create(random_row(chance, owner) for _ in range(2_000))


@pytest.mark.parametrize("seed", range(6))
def test_sql_and_python_agree_on_every_row(ada: Account, seed: int) -> None:
    chance = random.Random(seed)
    store_random_rows(chance, ada)
    policy = DEFAULT_POLICY if seed == 0 else random_policy(chance)

    rows: Any = Memory.objects.annotate(
        vitality=vitality_sql(policy, NOW),
        may_go=is_evictable_sql(policy, NOW),
        goes_at=evictable_at_sql(policy, NOW),
    )

    for row in rows:
        assert row.vitality == pytest.approx(vitality(row, policy, NOW), abs=1e-9, rel=0)
        assert row.may_go == is_evictable(row, policy, NOW)
        assert row.goes_at == evictable_at(row, policy, NOW)


@pytest.mark.parametrize(
    ("days", "changes", "may_go", "wait"),
    [
        (14, {"floor": 90.0}, False, 1),
        (14.00001, {"floor": 90.0}, True, 0),
        (21, {"floor": 25.0}, False, 1),
        (21.00001, {"floor": 25.0}, True, 0),
        (14.3, {"floor": 90.0, "grace_days": 14.3}, False, 1),
        (13.3, {"floor": 90.0, "grace_days": 14.3}, False, 2),
        (0, {}, False, 49),
        (400, {"enabled": False}, False, None),
        (400, {"floor": 0.0}, False, None),
        (0, {"grace_days": 1e9}, False, None),
    ],
)
def test_sql_and_python_agree_at_the_boundaries(
    ada: Account, days: float, changes: dict[str, float], may_go: bool, wait: int | None
) -> None:
    policy = replace(DEFAULT_POLICY, **changes)  # type: ignore[arg-type]
    goes_at = None if wait is None else NOW + wait * DAY
    MemoryFactory.create(owner=ada, created_at=NOW - days * DAY)

    row: Any = Memory.objects.annotate(
        may_go=is_evictable_sql(policy, NOW), goes_at=evictable_at_sql(policy, NOW)
    ).get()

    assert (row.may_go, row.goes_at) == (may_go, goes_at)
    assert (is_evictable(row, policy, NOW), evictable_at(row, policy, NOW)) == (may_go, goes_at)


def test_a_use_in_the_future_does_not_lift_a_memory_over_the_floor(ada: Account) -> None:
    MemoryFactory.create(owner=ada, created_at=NOW - 99 * DAY, last_used_at=NOW + 60 * DAY)
    policy = replace(DEFAULT_POLICY, floor=60)

    assert Memory.objects.values_list(evictable_at_sql(policy, NOW), flat=True).get() == NOW


def test_sql_finds_the_day_on_which_vitality_is_under_the_floor_by_the_least_bit(ada: Account) -> None:
    """The formula alone would name the day after, for some of these."""
    row = MemoryFactory.create(owner=ada, created_at=NOW, use_count=1)
    found = Memory.objects.filter(pk=row.pk)

    for day in range(15, 90):
        alive = found.values_list(vitality_sql(DEFAULT_POLICY, NOW + day * DAY), flat=True).get()
        policy = replace(DEFAULT_POLICY, floor=math.nextafter(alive, math.inf))
        assert found.values_list(evictable_at_sql(policy, NOW), flat=True).get() == NOW + day * DAY


@pytest.mark.parametrize("importance", [1, 2, 3, 4])
@pytest.mark.parametrize("expression", [vitality_sql, is_evictable_sql, evictable_at_sql])
def test_a_level_without_a_half_life_fails_the_query(
    ada: Account, importance: int, expression: Expression
) -> None:
    MemoryFactory.create(owner=ada, importance=importance, created_at=NOW - 15 * DAY)

    with pytest.raises(DataError, match="division by zero"), transaction.atomic():
        Memory.objects.annotate(value=expression(BROKEN, NOW)).get()


def test_a_broken_level_fails_for_the_rows_that_reach_it_only(ada: Account) -> None:
    MemoryFactory.create(owner=ada, importance=5, created_at=NOW - 90 * DAY)
    MemoryFactory.create(owner=ada, importance=1, created_at=NOW - 14 * DAY)

    gone = Memory.objects.annotate(may_go=is_evictable_sql(BROKEN, NOW)).filter(may_go=True)

    assert [row.importance for row in gone] == [5]
    assert not Memory.objects.annotate(may_go=is_evictable_sql(replace(BROKEN, enabled=False), NOW)).filter(
        may_go=True
    )


@pytest.mark.parametrize("expression", [vitality_sql, is_evictable_sql, evictable_at_sql])
def test_the_database_calculates_without_numeric(ada: Account, expression: Expression) -> None:
    rows: Any = Memory.objects.annotate(value=expression(DEFAULT_POLICY, NOW)).values_list("value")

    sql, params = rows.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"explain (verbose, costs off) {sql}", params)
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "numeric" not in plan
    assert "EXTRACT" not in plan


def test_rows_sort_by_vitality(ada: Account) -> None:
    faded, fresh, used = (
        MemoryFactory.create(owner=ada, created_at=NOW - 30 * DAY),
        MemoryFactory.create(owner=ada, created_at=NOW),
        MemoryFactory.create(owner=ada, created_at=NOW - 90 * DAY, last_used_at=NOW, use_count=9),
    )

    found = Memory.objects.alias(value=vitality_sql(DEFAULT_POLICY, NOW)).order_by("value")

    assert list(found) == [faded, fresh, used]
