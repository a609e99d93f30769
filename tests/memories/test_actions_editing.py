"""R7, R12-R19: what the writes to single memories promise."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from elowen.lib.errors import Invalid, NotFound, Refused, Stale
from elowen.lib.hashing import text_hash
from memories import audit
from memories.actions import editing
from memories.actions.editing import NewMemory
from memories.audit import Note
from memories.models import Account, BodyHash, Category, Memory, MemoryEvent
from memories.signals import memory_committed
from tests.factories import CategoryFactory, MemoryFactory, ProjectFactory, ProjectMemberFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def pool(ada: Account, ben: Account) -> Category:
    """A pool that Ada and Ben share."""
    project = ProjectFactory.create(slug="kolin", memory_shared=True)
    for account in (ada, ben):
        ProjectMemberFactory.create(project=project, account=account)
    return Category.objects.create(owner=None, project=project, name="kolin (shared)")


def events_of(memory: Memory) -> list[MemoryEvent]:
    return list(MemoryEvent.objects.filter(memory_id=memory.pk).order_by("pk"))


def test_add_stores_the_row_its_hash_and_its_event(ada: Account) -> None:
    memory = editing.add_memory(by=ada, body="  Ada drinks tea.\n", importance=7, origin={"client": "shell"})

    event = events_of(memory)[0]
    assert (memory.body, memory.kind, memory.importance, memory.status) == (
        "Ada drinks tea.",
        "fact",
        7,
        "active",
    )
    assert bytes(BodyHash.objects.get(memory=memory).sha256) == text_hash("Ada drinks tea.")
    assert (event.action, event.before, event.actor) == ("add", None, f"user:{ada.pk}")
    assert event.after == audit.snapshot(memory)
    assert event.account_id == ada.pk


def test_add_gives_a_home_so_that_it_can_be_recalled(ada: Account) -> None:
    memory = editing.add_memory(by=ada, body="Tea.")

    assert memory.category is not None
    assert (memory.category.name, memory.category.owner, memory.category.project) == ("General", ada, None)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "must not be empty"),
        (" \n\t ", "must not be empty"),
        ("x" * 100_001, "100,001"),
        ("nul\x00", "NUL"),
        ("half \ud800", "surrogate"),
    ],
)
def test_add_refuses_a_body_it_cannot_keep_and_stores_nothing(ada: Account, body: str, words: str) -> None:
    with pytest.raises(Invalid, match=words) as refusal:
        editing.add_memory(by=ada, body=body)

    assert refusal.value.field == "body"
    assert not Memory.objects.exists()
    assert not MemoryEvent.objects.exists()


@pytest.mark.parametrize(
    "body", ["x", "x" * 100_000, "\u202eright to left\u200b", "𝔘𝔫𝔦 🫖 中文", "a\u0301 ≠ á"]
)
def test_any_other_text_is_kept_byte_for_byte(ada: Account, body: str) -> None:
    memory = editing.add_memory(by=ada, body=body)

    memory.refresh_from_db()
    assert memory.body == body
    assert memory.body_bytes == len(body.encode())


def test_a_batch_is_stored_whole_or_not_at_all(ada: Account) -> None:
    with pytest.raises(Invalid):
        editing.add_memories(by=ada, entries=[NewMemory("good"), NewMemory("bad", importance=11)])

    assert not Memory.objects.exists()


def test_a_batch_costs_no_query_per_row(ada: Account) -> None:
    editing.add_memory(by=ada, body="creates the category")

    with CaptureQueriesContext(
        connection,
    ) as few:
        editing.add_memories(by=ada, entries=[NewMemory(f"few {n}") for n in range(2)])
    with CaptureQueriesContext(connection) as many:
        editing.add_memories(by=ada, entries=[NewMemory(f"many {n}") for n in range(100)])

    assert len(many) == len(few)


def test_a_broken_audit_write_leaves_nothing_behind(ada: Account) -> None:
    too_long_for_its_column = Note(actor="x" * 41)

    with pytest.raises(Exception, match="too long"):
        editing.add_memory(by=ada, body="Tea.", note=too_long_for_its_column)

    assert not Memory.objects.exists()


@pytest.mark.parametrize("value", [0, 11, -1])
def test_the_database_itself_refuses_an_importance_out_of_range(ada: Account, value: int) -> None:
    with pytest.raises(IntegrityError):
        MemoryFactory.create(owner=ada, importance=value)


@pytest.mark.parametrize("change", [{"status": "lost"}, {"source": "rumour"}, {"kind": ""}, {"body": ""}])
def test_the_database_itself_refuses_values_outside_its_sets(ada: Account, change: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError):
        MemoryFactory.create(owner=ada, **change)


def test_change_records_before_and_after_and_moves_updated_at(ada: Account) -> None:
    memory = editing.add_memory(by=ada, body="Ada drinks tea.")
    before = audit.snapshot(memory)

    changed = editing.change_memory(memory_id=memory.pk, by=ada, changes={"body": "Ada drinks mate."})

    event = events_of(memory)[-1]
    assert changed.updated_at > memory.updated_at
    assert (event.action, event.before, event.after) == ("update", before, audit.snapshot(changed))
    assert bytes(BodyHash.objects.get(memory=memory).sha256) == text_hash("Ada drinks mate.")


def test_a_change_that_changes_nothing_writes_nothing(ada: Account) -> None:
    memory = editing.add_memory(by=ada, body="Tea.")

    same = editing.change_memory(memory_id=memory.pk, by=ada, changes={"body": " Tea. ", "importance": 5})

    assert same.updated_at == memory.updated_at
    assert len(events_of(memory)) == 1


def test_change_refuses_a_row_that_moved(ada: Account) -> None:
    memory = editing.add_memory(by=ada, body="Tea.")
    tag = editing.etag(memory)
    editing.change_memory(memory_id=memory.pk, by=ada, changes={"importance": 6}, if_match=tag)

    with pytest.raises(Stale):
        editing.change_memory(memory_id=memory.pk, by=ada, changes={"importance": 7}, if_match=tag)

    memory.refresh_from_db()
    assert memory.importance == 6


def test_delete_and_restore_are_audited_and_leave_the_use_alone(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada, use_count=3, last_used_at=timezone.now())
    used_at = memory.last_used_at

    editing.delete_memory(memory_id=memory.pk, by=ada)
    restored = editing.restore_memory(memory_id=memory.pk, by=ada)

    assert [event.action for event in events_of(memory)] == ["delete", "restore"]
    assert (restored.status, restored.use_count, restored.last_used_at) == ("active", 3, used_at)


def test_restore_and_keep_counts_as_contact_and_says_so(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada, status="deleted")

    restored = editing.restore_memory(memory_id=memory.pk, by=ada, keep=True)

    assert restored.last_used_at is not None
    assert restored.use_count == 0
    assert events_of(memory)[-1].reason == "Kept: counts as contact."


def test_a_deleted_memory_can_be_stored_again_but_not_changed(ada: Account) -> None:
    memory = editing.add_memory(by=ada, body="Tea.")
    editing.delete_memory(memory_id=memory.pk, by=ada)

    assert editing.add_memory(by=ada, body="Tea.").pk != memory.pk
    with pytest.raises(NotFound):
        editing.change_memory(memory_id=memory.pk, by=ada, changes={"importance": 6})


WRITES: list[Callable[[int, Account], object]] = [
    lambda pk, by: editing.change_memory(memory_id=pk, by=by, changes={"body": "stolen"}),
    lambda pk, by: editing.archive_memory(memory_id=pk, by=by),
    lambda pk, by: editing.delete_memory(memory_id=pk, by=by),
    lambda pk, by: editing.restore_memory(memory_id=pk, by=by),
    lambda pk, by: editing.set_category(memory_id=pk, by=by, category_id=None),
]


@pytest.mark.parametrize("write", WRITES)
def test_a_stranger_and_a_missing_row_look_the_same(ada: Account, cleo: Account, write: Any) -> None:
    memory = editing.add_memory(by=ada, body="Tea.")

    with pytest.raises(NotFound):
        write(memory.pk, cleo)
    with pytest.raises(NotFound):
        write(memory.pk + 1_000, cleo)

    assert len(events_of(memory)) == 1


def test_members_have_parity_on_pool_rows_and_the_author_stays(
    ada: Account, ben: Account, pool: Category
) -> None:
    memory = editing.add_memory(by=ada, body="Deploys on Friday.", category_id=pool.pk)

    changed = editing.change_memory(memory_id=memory.pk, by=ben, changes={"body": "Never on Friday."})

    event = events_of(memory)[-1]
    assert changed.owner == ada
    assert (event.actor, event.account_id) == (f"user:{ben.pk}", ada.pk)


def test_another_authors_row_stays_in_its_pool(ada: Account, ben: Account, pool: Category) -> None:
    memory = editing.add_memory(by=ada, body="Tea.", category_id=pool.pk)
    own = CategoryFactory.create(owner=ben)

    for category_id in (None, own.pk):
        with pytest.raises(Refused):
            editing.set_category(memory_id=memory.pk, by=ben, category_id=category_id)

    assert editing.set_category(memory_id=memory.pk, by=ben, category_id=pool.pk).category == pool
    assert editing.set_category(memory_id=memory.pk, by=ada, category_id=None).category is None


def test_sharing_switched_off_holds_in_the_next_statement(ada: Account, ben: Account, pool: Category) -> None:
    memory = editing.add_memory(by=ada, body="Tea.", category_id=pool.pk)
    assert pool.project is not None
    pool.project.memory_shared = False
    pool.project.save()

    with pytest.raises(NotFound):
        editing.change_memory(memory_id=memory.pk, by=ben, changes={"importance": 1})

    assert Memory.objects.readable_by(ada).filter(pk=memory.pk).exists()


def test_a_project_gives_its_pool_to_sharers_and_a_category_to_the_rest(ada: Account, cleo: Account) -> None:
    shared = ProjectFactory.create(slug="kolin", memory_shared=True)
    private = ProjectFactory.create(slug="tabor")
    for project in (shared, private):
        ProjectMemberFactory.create(project=project, account=ada)

    in_pool = editing.add_memory(by=ada, body="Tea.", project_id=shared.pk)
    own = editing.add_memory(by=ada, body="Tea.", project_id=private.pk)

    assert in_pool.category is not None
    assert own.category is not None
    assert (in_pool.category.owner, in_pool.category.name) == (None, "kolin (shared)")
    assert (own.category.owner, own.category.name, own.category.project) == (ada, "tabor", private)
    with pytest.raises(Refused):
        editing.add_memory(by=cleo, body="Tea.", project_id=shared.pk)
    with pytest.raises(NotFound):
        editing.add_memory(by=ada, body="Tea.", project_id=shared.pk + 1_000)


def test_an_existing_namesake_is_never_bound_anew(ada: Account) -> None:
    project = ProjectFactory.create(slug="tabor")
    ProjectMemberFactory.create(project=project, account=ada)
    namesake = CategoryFactory.create(owner=ada, name="tabor")

    memory = editing.add_memory(by=ada, body="Tea.", project_id=project.pk)

    namesake.refresh_from_db()
    assert namesake.project is None
    assert memory.category is not None
    assert memory.category.name == "tabor (project)"


def test_deleting_a_category_leaves_its_memories_uncategorised(ada: Account) -> None:
    memory = editing.add_memory(by=ada, body="Tea.")
    assert memory.category is not None

    memory.category.delete()

    memory.refresh_from_db()
    assert (memory.category_id, memory.status) == (None, "active")


def test_news_goes_out_only_after_commit(
    ada: Account, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    heard: list[list[int]] = []

    def listen(memory_ids: list[int], **kwargs: object) -> None:
        heard.append(memory_ids)

    memory_committed.connect(listen)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            memory = editing.add_memory(by=ada, body="Tea.")
            assert heard == []
    finally:
        memory_committed.disconnect(listen)

    assert heard == [[memory.pk]]


def test_an_operator_acts_on_any_row_and_is_named(ada: Account, cleo: Account) -> None:
    memory = MemoryFactory.create(owner=ada, status="deleted")

    editing.restore_memory(memory_id=memory.pk, by=cleo, note=Note(operator=True, reason="asked by phone"))

    event = events_of(memory)[-1]
    assert (event.actor, event.reason) == (f"user:{cleo.pk}", "asked by phone")
