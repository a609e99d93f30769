"""V15 and V16: a populated database lives through the move from five levels to ten, and back."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import StateApps

from elowen.lib.errors import Stale
from memories import audit
from memories.actions.editing import add_memory
from memories.config import load_document, retention_policy, save_section
from memories.models import Account, ConfigEvent, ConfigSection, Memory, MemoryEvent
from memories.policy import DEFAULT_POLICY, to_document
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
        ({"vitalityFloor": -5, "enabled": True}, {"vitalityFloor": 10, "enabled": False}),
        ({"vitalityFloor": 10**400, "graceDays": 10**400, "dailyDeletionLimit": 10**400}, {}),
        ({"dailyDeletionLimit": 999}, {"dailyDeletionLimit": 200}),
        ({"dailyDeletionLimit": 7.8, "enabled": "yes"}, {"dailyDeletionLimit": 8}),
    ],
)
def test_the_stored_policy_becomes_the_ten_level_one(
    migrate: Migrate, stored: dict[str, Any], expected: dict[str, Any]
) -> None:
    apps = migrate(WIDENED)
    store_old_policy(apps, OLD | stored)

    migrate(REMAPPED)

    document = ConfigSection.objects.get(name=SECTION).document
    assert document["halfLifeByImportance"] == to_document(DEFAULT_POLICY)["halfLifeByImportance"]
    kept = {name: document[name] for name in ("enabled", "vitalityFloor", "graceDays", "dailyDeletionLimit")}
    defaults = {"enabled": True, "vitalityFloor": 10, "graceDays": 14, "dailyDeletionLimit": 5}
    assert kept == defaults | expected


def test_an_editor_that_was_open_is_refused(migrate: Migrate) -> None:
    apps = migrate(WIDENED)
    store_old_policy(apps, OLD, revision=4)

    migrate(REMAPPED)

    editor = apps.get_model("memories", "Account").objects.create(username="editor")
    account = Account(pk=editor.pk, username=editor.username)  # the table has not all columns of today
    with pytest.raises(Stale):
        save_section(name=SECTION, document=OLD, revision=4, by=account)
    assert load_document()[1] == 5
    assert retention_policy() == DEFAULT_POLICY


def test_the_revision_moves_on_from_that_of_the_whole_document(migrate: Migrate) -> None:
    apps = migrate(WIDENED)
    store_old_policy(apps, OLD, revision=4)
    Section = apps.get_model("memories", "ConfigSection")
    Section.objects.create(name="embedding", document={}, revision=9)
    before = Section.objects.get(name=SECTION).updated_at

    migrate(REMAPPED)

    row, event = ConfigSection.objects.get(name=SECTION), ConfigEvent.objects.get()
    assert (row.revision, load_document()[1], event.revision) == (10, 10, 10)
    assert row.updated_at > before
    assert (event.before, event.after, event.actor) == (OLD, row.document, "migration")


def test_a_move_that_cannot_be_recorded_is_not_made(migrate: Migrate) -> None:
    """The settings come last: when they fail, the memories and their events are as they were."""
    apps = migrate(WIDENED)
    store_old_policy(apps, OLD, revision=4)
    [old] = old_memories(apps, [{"importance": 4, "status": "active"}])
    with connection.cursor() as cursor:
        cursor.execute("alter table memories_configevent add constraint full_up check (id < 0)")

    with pytest.raises(IntegrityError, match="full_up"):
        migrate(REMAPPED)

    with connection.cursor() as cursor:
        cursor.execute("alter table memories_configevent drop constraint full_up")
    old.refresh_from_db()
    assert old.importance == 4
    assert not MemoryEvent.objects.exists()
    assert apps.get_model("memories", "ConfigSection").objects.get(name=SECTION).document == OLD


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
    started = time.monotonic()

    migrate(REMAPPED)

    assert time.monotonic() - started < 60
    assert Memory.objects.filter(importance__in=[1, 3, 5, 7, 9]).count() == 100_000
    assert MemoryEvent.objects.count() == 80_000


def test_a_write_in_flight_is_in_both_pictures_of_its_row(migrate: Migrate) -> None:
    [old] = old_memories(migrate(WIDENED), [{"importance": 4, "status": "active"}])
    with ThreadPoolExecutor(1) as pool, psycopg.connect(**connection.get_connection_params()) as writer:
        writer.execute("update memories_memory set use_count = 7 where id = %s", [old.pk])
        moving = pool.submit(_in_a_thread, migrate, REMAPPED)
        _wait_for_a_waiter()
        writer.commit()
        moving.result(timeout=30)

    event = MemoryEvent.objects.get()
    assert [picture and picture["use_count"] for picture in (event.before, event.after)] == [7, 7]
    assert Memory.objects.get().use_count == 7


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
        cursor.execute("select memory_id, actor, action, before, after from memories_memoryevent")
        audited = {row[0]: row[1:] for row in cursor.fetchall()}
    expected = {1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 6: 3, 7: 4, 8: 4, 9: 5, 10: 5}
    assert {levels[pk]: rank for pk, rank in ranks.items()} == expected
    assert set(audited) == {pk for pk, level in levels.items() if level > 1}
    for pk, (actor, action, before, after) in audited.items():
        was, now = json.loads(before), json.loads(after)
        assert (actor, action) == ("migration", "update")
        assert set(was) == set(audit.SNAPSHOT_FIELDS)
        assert was == now | {"importance": levels[pk]}
        assert now["importance"] == ranks[pk]


def test_there_and_back_is_where_it_began(migrate: Migrate) -> None:
    apps = migrate(WIDENED)
    store_old_policy(apps, OLD | {"vitalityFloor": 25, "enabled": False}, revision=4)
    old = old_memories(apps, [{"importance": rank, "status": "archived"} for rank in (1, 2, 3, 4, 5)])

    migrate(REMAPPED)
    apps = migrate(WIDENED)

    section = apps.get_model("memories", "ConfigSection").objects.get(name=SECTION)
    assert section.document == OLD | {"vitalityFloor": 25, "enabled": False}
    assert section.revision == 6  # one for each way
    ranks = apps.get_model("memories", "Memory").objects.order_by("pk").values_list("pk", "importance")
    assert list(ranks) == [(row.pk, row.importance) for row in old]
    events = apps.get_model("memories", "ConfigEvent").objects.order_by("pk")
    assert [(event.revision, event.actor) for event in events] == [(5, "migration"), (6, "migration")]


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


def _in_a_thread(migrate: Migrate, name: str) -> None:
    try:
        migrate(name)
    finally:
        connection.close()


def _wait_for_a_waiter() -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute(
                "select from pg_locks where not granted"
                " and (relation = 'memories_memory'::regclass or locktype = 'transactionid')"
            )
            if cursor.fetchone() is not None:
                return
        time.sleep(0.02)
    raise AssertionError("The migration waits for nobody.")


def _in_savepoint(attempt: Callable[[], object]) -> None:
    with transaction.atomic():
        attempt()
