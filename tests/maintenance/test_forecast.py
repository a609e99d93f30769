"""V14: what is foretold is what the sweeps then do, for everything that the reader may read."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import Schedule

from maintenance.forecast import forecast
from maintenance.retention import sweep
from maintenance.schedules import SWEEP_SCHEDULE, SWEEP_TASK, next_sweep_at
from memories.actions.editing import keep_memory
from memories.config import RETENTION, load_document, save_section
from memories.models import Account, Category, Memory, MemoryEvent
from memories.policy import DEFAULT_POLICY, RetentionPolicy, to_document
from tests.conftest import Api
from tests.factories import (
    AccountFactory,
    CategoryFactory,
    MemoryFactory,
    ProjectFactory,
    ProjectMemberFactory,
)
from tests.problems import problem

pytestmark = pytest.mark.django_db

START = datetime(2026, 5, 1, 12, tzinfo=UTC)
FIRST_SWEEP = START + timedelta(hours=7)
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(START, tick=False) as traveller:
        Schedule.objects.create(
            name=SWEEP_SCHEDULE, func=SWEEP_TASK, schedule_type=Schedule.MINUTES, next_run=FIRST_SWEEP
        )
        yield traveller


@pytest.fixture
def pool(ada: Account, ben: Account) -> Category:
    project = ProjectFactory.create(memory_shared=True)
    for account in (ada, ben):
        ProjectMemberFactory.create(project=project, account=account)
    category: Category = CategoryFactory.create(owner=None, project=project)
    return category


def store(policy: RetentionPolicy, by: Account) -> None:
    save_section(name=RETENTION, document=to_document(policy), revision=load_document()[1], by=by)


def faded(owner: Account, times: int = 1, **fields: object) -> list[Memory]:
    defaults = {"importance": 3, "created_at": START - timedelta(days=21)}
    return [MemoryFactory.create(owner=owner, **(defaults | fields)) for _ in range(times)]


def foretold(reader: Account, days: int = 30) -> list[tuple[int, datetime]]:
    return [(one.memory_id, one.at) for one in forecast(reader=reader, days=days).departures]


def test_the_next_sweep_takes_as_many_as_the_limit_and_the_rest_waits(ada: Account) -> None:
    memories = faded(ada, 7)

    coming = forecast(reader=ada, days=1)

    assert [one.memory_id for one in coming.departures] == [memory.pk for memory in memories[:5]]
    assert {one.at for one in coming.departures} == {FIRST_SWEEP}
    assert coming.waiting == 2
    assert coming.next_sweep_at == FIRST_SWEEP


def test_what_is_kept_is_no_longer_foretold(ada: Account) -> None:
    kept, going = faded(ada, 2)

    keep_memory(memory_id=kept.pk, by=ada)

    assert foretold(ada, 10) == [(going.pk, FIRST_SWEEP)]


def test_the_forecast_shows_ones_own_and_the_pools_and_no_stranger(
    ada: Account, ben: Account, pool: Category
) -> None:
    (own,), (private,) = faded(ada), faded(ben)
    (shared,) = faded(ben, category=pool)
    faded(AccountFactory.create())

    assert {memory_id for memory_id, _ in foretold(ada)} == {own.pk, shared.pk}
    assert {memory_id for memory_id, _ in foretold(ben)} == {private.pk, shared.pk}


def test_the_authors_own_memories_use_up_the_limit_of_what_is_shared(
    ada: Account, ben: Account, pool: Category
) -> None:
    faded(ben, 5)
    (shared,) = faded(ben, category=pool)

    assert foretold(ada) == [(shared.pk, FIRST_SWEEP + DAY)]


def test_nothing_is_foretold_while_retention_is_off(ada: Account) -> None:
    faded(ada)
    store(replace(DEFAULT_POLICY, enabled=False), ada)

    assert forecast(reader=ada, days=30).departures == []


@pytest.mark.parametrize("seed", range(10))
def test_the_sweeps_do_what_was_foretold(
    seed: int, ada: Account, ben: Account, pool: Category, clock: time_machine.Traveller
) -> None:
    random, days = Random(seed), 8
    store(
        replace(
            DEFAULT_POLICY,
            floor=random.choice([5, 10, 30, 55]),
            grace_days=random.choice([0, 3, 14]),
            daily_deletion_limit=random.choice([1, 2, 5]),
        ),
        ada,
    )
    for _ in range(40):
        random_memory(random, random.choice([ada, ben]), pool)
    for account in random.choices([ada, ben], k=random.randint(0, 9)):
        MemoryEvent.objects.create(
            memory_id=0, account_id=account.pk, action="delete", automatic=True,
            created_at=START - timedelta(hours=random.uniform(0, 15)),
        )  # fmt: skip
    coming = {reader.pk: foretold(reader, days) for reader in (ada, ben)}
    readable = {reader.pk: set(active(reader)) for reader in (ada, ben)}

    happened = swept_daily(days, clock)

    for reader in (ada, ben):
        assert coming[reader.pk] == [one for one in happened if one[0] in readable[reader.pk]]
    assert len(happened) > 0


def random_memory(random: Random, owner: Account, pool: Category) -> None:
    born = random.uniform(0, 90)
    used = random.random() < 0.3
    fields = {"category": pool} if random.random() < 0.3 else {}
    MemoryFactory.create(
        owner=owner,
        importance=random.randint(1, 6),
        created_at=START - born * DAY,
        use_count=3 if used else 0,
        last_used_at=START - born * DAY * random.random() if used else None,
        **fields,
    )


def active(reader: Account) -> list[int]:
    return list(Memory.objects.active().readable_by(reader).values_list("pk", flat=True))


def swept_daily(days: int, clock: time_machine.Traveller) -> list[tuple[int, datetime]]:
    """Sweep whenever it is planned."""
    for _ in range(days):
        clock.move_to(next_sweep_at(timezone.now()))
        sweep(now=timezone.now())
    gone = MemoryEvent.objects.filter(automatic=True).exclude(memory_id=0)
    return list(gone.order_by("created_at", "memory_id").values_list("memory_id", "created_at"))


@pytest.mark.parametrize("late", [timedelta(), timedelta(hours=5), timedelta(days=3)])
def test_an_overdue_sweep_comes_now_and_then_every_day(
    ada: Account, clock: time_machine.Traveller, late: timedelta
) -> None:
    clock.move_to(FIRST_SWEEP + late)
    now = timezone.now()
    faded(ada, 7)

    coming = foretold(ada, 3)
    happened = swept_daily(3, clock)

    assert {at for _, at in coming} == {now, now + DAY}
    assert coming == happened


def test_a_large_backlog_is_cut_to_what_the_sweeps_can_take(ada: Account) -> None:
    memories = faded(ada, 30)
    (later,) = faded(ada, created_at=START - timedelta(days=15), importance=3)

    coming = forecast(reader=ada, days=3)

    assert [one.memory_id for one in coming.departures] == [memory.pk for memory in memories[:15]]
    assert coming.waiting == 15 + 1
    assert later.pk not in {one.memory_id for one in coming.departures}


def test_rest_tells_what_goes_when_and_how_it_stands(api: Api, ada: Account) -> None:
    memories = faded(ada, 6, body="going")

    document = api(ada).get("/api/memory/forecast?days=2&limit=3").json()

    assert document | {"departures": None} == {
        "now": "2026-05-01T12:00:00Z",
        "enabled": True,
        "nextSweepAt": "2026-05-01T19:00:00Z",
        "dailyDeletionLimit": 5,
        "total": 6,
        "waiting": 0,
        "departures": None,
    }
    assert [row["memory"]["id"] for row in document["departures"]] == [memory.pk for memory in memories[:3]]
    assert document["departures"][0]["at"] == "2026-05-01T19:00:00Z"
    assert document["departures"][0]["memory"]["body"] == "going"
    assert document["departures"][0]["memory"]["vitality"] == 6.25


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("days=0", "days"),
        ("days=366", "days"),
        ("days=x", "days"),
        ("limit=501", "limit"),
        ("when=1", "when"),
    ],
)
def test_rest_refuses_a_bad_question(api: Api, ada: Account, query: str, field: str) -> None:
    problem(api(ada).get(f"/api/memory/forecast?{query}"), 400, field)


def test_rest_says_that_the_policy_is_unusable(api: Api, ada: Account) -> None:
    document = to_document(DEFAULT_POLICY)
    document["halfLifeByImportance"] = {"1": 1}
    save_section(name=RETENTION, document=document, revision=load_document()[1], by=ada)

    answer = problem(api(ada).get("/api/memory/forecast"), 503)

    assert "save them again" in answer["detail"]


def test_the_number_of_queries_does_not_grow(ada: Account) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            forecast(reader=ada, days=365)
        return len(seen)

    faded(ada, 1)
    few = queries()
    faded(ada, 30)

    assert queries() == few == 8
