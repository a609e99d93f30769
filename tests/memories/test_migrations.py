"""V15 and V16: a populated database lives through the move from five levels to ten, and back."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import StateApps

from elowen.lib.errors import Stale
from memories import audit
from memories.actions.editing import add_memory
from memories.config import load_document, retention_policy, save_section
from memories.models import Account, ConfigEvent, ConfigSection, Memory, MemoryEvent
from memories.policy import DEFAULT_POLICY
from tests.database import let_tests_empty_the_trail
from tests.factories import MemoryFactory

type Migrate = Callable[[str], StateApps]

SECTION = "runtime.memoryRetention"
OLD = {
    "enabled": True,
    "halfLifeByImportance": {"1": 7, "2": 14, "3": 30, "4": 90, "5": 365},
    "vitalityFloor": 10,
    "graceDays": 14,
    "dailyDeletionLimit": 5,
}
FIRST, WIDENED, REMAPPED = "0001_initial", "0002_ten_levels_of_importance", "0003_remap_importance"


@pytest.fixture
def migrate(transactional_db: None) -> Iterator[Migrate]:
    def to(name: str) -> StateApps:
        executor = MigrationExecutor(connection)
        if name == "zero":
            executor.migrate([("memories", None)])
            return StateApps([], {})
        executor.migrate([("memories", name)])
        return MigrationExecutor(connection).loader.project_state([("memories", name)]).apps

    yield to
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    let_tests_empty_the_trail()


def old_memories(apps: StateApps, rows: list[dict[str, Any]]) -> list[Any]:
    Old = apps.get_model("memories", "Memory")
    account = apps.get_model("memories", "Account").objects.create(username="ada")
    return [
        Old.objects.create(owner_id=account.pk, body=f"Memory {place}", source="user", kind="fact", **row)
        for place, row in enumerate(rows)
    ]


def store_old_policy(apps: StateApps, document: Any, revision: int = 4) -> None:
    Section = apps.get_model("memories", "ConfigSection")
    Section.objects.update_or_create(name=SECTION, defaults={"document": document, "revision": revision})


def test_every_rank_of_every_status_moves_once_and_is_audited(migrate: Migrate) -> None:
    apps = migrate(WIDENED)
    rows = [
        {
            "importance": rank,
            "status": status,
            "use_count": rank,
            "last_used_at": datetime(2026, 1, rank, tzinfo=UTC),
        }
        for rank in (1, 2, 3, 4, 5)
        for status in ("active", "archived", "deleted")
    ]
    old = old_memories(apps, rows)

    migrate(REMAPPED)

    for row in old:
        new = Memory.objects.get(pk=row.pk)
        assert new.importance == row.importance * 2 - 1
        assert (new.status, new.updated_at, new.use_count) == (row.status, row.updated_at, row.use_count)
    changed = [row for row in old if row.importance > 1]  # rank 1 is level 1: nothing changed there
    events = {event.memory_id: event for event in MemoryEvent.objects.all()}
    assert set(events) == {row.pk for row in changed}
    for row in changed:
        event, new = events[row.pk], Memory.objects.get(pk=row.pk)
        assert (event.action, event.actor, event.account_id) == ("update", "migration", row.owner_id)
        assert event.after is not None
        assert _with_times(event.after) == _with_times(audit.snapshot(new))
        assert event.before == event.after | {"importance": row.importance}


def test_a_fresh_database_carries_the_old_block_through_the_history(migrate: Migrate) -> None:
    migrate("zero")
    apps = migrate(FIRST)
    assert apps.get_model("memories", "ConfigSection").objects.get(name=SECTION).document == OLD

    migrate(REMAPPED)

    assert retention_policy() == DEFAULT_POLICY
    event = ConfigEvent.objects.get()
    assert (event.section, event.actor, event.before, event.revision) == (SECTION, "migration", OLD, 2)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ({}, {}),
        ({"vitalityFloor": 25, "graceDays": 3, "enabled": True}, {"vitalityFloor": 25, "graceDays": 3}),
        ({"enabled": False}, {"enabled": False}),
        ({"vitalityFloor": 0}, {"vitalityFloor": 10, "enabled": False}),
        ({"vitalityFloor": 99, "graceDays": 999}, {"vitalityFloor": 90, "graceDays": 365}),
        ({"vitalityFloor": 0.5, "graceDays": -3}, {"vitalityFloor": 1, "graceDays": 0}),
        ({"halfLifeByImportance": {"1": "soon", "2": -1, "9": None}}, {}),
        ({"halfLifeByImportance": None, "vitalityFloor": "ten", "graceDays": None}, {}),
    ],
)
def test_the_stored_policy_becomes_the_ten_level_one(
    migrate: Migrate, stored: dict[str, Any], expected: dict[str, Any]
) -> None:
    apps = migrate(WIDENED)
    store_old_policy(apps, OLD | stored)

    migrate(REMAPPED)

    document = ConfigSection.objects.get(name=SECTION).document
    assert document["halfLifeByImportance"]["10"] == 180
    assert document["halfLifeByImportance"]["1"] == 1
    kept = {name: document[name] for name in ("enabled", "vitalityFloor", "graceDays", "dailyDeletionLimit")}
    defaults = {"enabled": True, "vitalityFloor": 10, "graceDays": 14, "dailyDeletionLimit": 5}
    assert kept == defaults | expected


def test_an_editor_that_was_open_is_refused(migrate: Migrate) -> None:
    apps = migrate(WIDENED)
    store_old_policy(apps, OLD, revision=4)

    migrate(REMAPPED)

    account = Account.objects.create(username="editor")
    with pytest.raises(Stale):
        save_section(name=SECTION, document=OLD, revision=4, by=account)
    assert load_document()[1] == 5


def test_a_hundred_thousand_rows_take_less_than_a_minute(migrate: Migrate) -> None:
    apps = migrate(WIDENED)
    account = apps.get_model("memories", "Account").objects.create(username="ada")
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into memories_memory (owner_id, body, kind, importance, status, source, use_count,"
            " created_at, updated_at, origin)"
            " select %s, 'Memory ' || n, 'fact', 1 + n %% 5, 'active', 'user', 0, now(), now(), '{}'"
            " from generate_series(1, 100000) n",
            [account.pk],
        )
        cursor.execute("set statement_timeout = '60s'")  # of each statement: the move is one

    migrate(REMAPPED)

    with connection.cursor() as cursor:
        cursor.execute("reset statement_timeout")
    assert Memory.objects.filter(importance__in=[1, 3, 5, 7, 9]).count() == 100_000
    assert MemoryEvent.objects.count() == 80_000


def test_an_empty_database_is_left_empty(migrate: Migrate) -> None:
    migrate(WIDENED)

    migrate(REMAPPED)

    assert not MemoryEvent.objects.exists()
    assert not ConfigEvent.objects.exists()
    assert not ConfigSection.objects.exists()


def test_going_back_rounds_even_levels_down_and_is_audited(migrate: Migrate) -> None:
    account = Account.objects.create(username="ada")
    levels = {MemoryFactory.create(owner=account, importance=level).pk: level for level in range(1, 11)}

    migrate(WIDENED)

    with connection.cursor() as cursor:
        cursor.execute("select id, importance from memories_memory")
        ranks = dict(cursor.fetchall())
        cursor.execute("select memory_id, actor from memories_memoryevent")
        audited = dict(cursor.fetchall())
    expected = {1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 6: 3, 7: 4, 8: 4, 9: 5, 10: 5}
    assert {levels[pk]: rank for pk, rank in ranks.items()} == expected
    assert audited == {pk: "migration" for pk, level in levels.items() if level > 1}


def test_history_stays_as_it_was_written(migrate: Migrate) -> None:
    apps = migrate(WIDENED)
    odd = '{"importance": 3,  "note": "spelled   oddly", "id": 1}'
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into memories_memoryevent"
            " (memory_id, action, before, actor, reason, model, automatic, created_at)"
            " values (1, 'add', %s, 'user:1', '', '', false, now())",
            [odd],
        )
        cursor.execute("select before::text from memories_memoryevent")
        before = cursor.fetchone()
    old_memories(apps, [{"importance": 3, "status": "active"}])

    migrate(REMAPPED)

    with connection.cursor() as cursor:
        cursor.execute("select before::text from memories_memoryevent order by id limit 1")
        assert cursor.fetchone() == before


@pytest.mark.django_db
def test_the_trail_refuses_every_change(ada: Account) -> None:
    memory = add_memory(by=ada, body="Tea.")
    event = MemoryEvent.objects.get(memory_id=memory.pk)

    for attempt in (event.delete, lambda: MemoryEvent.objects.update(actor="nobody"), event.save):
        with pytest.raises(IntegrityError, match="append-only"):
            _in_savepoint(attempt)


@pytest.mark.django_db
def test_the_trail_refuses_to_be_emptied(ada: Account) -> None:
    add_memory(by=ada, body="Tea.")

    def empty() -> None:
        with connection.cursor() as cursor:
            cursor.execute("alter table memories_memoryevent enable trigger keeps_all")
            cursor.execute("truncate memories_memoryevent")

    with pytest.raises(IntegrityError, match="append-only"):
        _in_savepoint(empty)


@pytest.mark.django_db
def test_a_body_changed_outside_the_application_loses_its_hash(ada: Account) -> None:
    memory = add_memory(by=ada, body="Tea.")

    with connection.cursor() as cursor:
        cursor.execute("update memories_memory set importance = 6 where id = %s", [memory.pk])
        untouched = Memory.objects.filter(pk=memory.pk, body_hash__isnull=False).exists()
        cursor.execute("update memories_memory set body = 'Mate.' where id = %s", [memory.pk])

    assert untouched
    assert Memory.objects.filter(pk=memory.pk, body_hash__isnull=True).exists()


def _with_times(row: dict[str, Any]) -> dict[str, Any]:
    """PostgreSQL leaves out the zeros at the end of a second; the moment is the same."""
    times = {name: datetime.fromisoformat(row[name]) for name in row if name.endswith("_at") and row[name]}
    return row | times


def _in_savepoint(attempt: Callable[[], object]) -> None:

    with transaction.atomic():
        attempt()
