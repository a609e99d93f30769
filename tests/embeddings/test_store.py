"""Compare and set: a vector is stored only for the very body, in the very space it was computed for."""

from threading import Event

import numpy as np
import pytest
from django.db import DatabaseError, IntegrityError, transaction

from elowen.lib.hashing import text_hash
from elowen.providers.vectors import Vector
from embeddings.actions.storing import Computed, store_vectors
from embeddings.config import active_space
from embeddings.embedding import WidthChanged
from embeddings.models import EmbeddingSpace, MemoryEmbedding, PendingMemory
from embeddings.scoring import hydrate_vectors, vector_cursor, vector_param
from embeddings.space import EmbeddingSpaceChanged
from memories.models import Account, BodyHash, Memory
from tests.embeddings.conftest import Use
from tests.factories import MemoryFactory
from tests.fakes.server import FakeServer
from tests.threads import in_thread

pytestmark = pytest.mark.django_db


def vector(*numbers: float) -> Vector:
    return np.array(numbers, np.float32)


def computed(memory: Memory, *numbers: float) -> Computed:
    return Computed(memory.pk, text_hash(memory.body), vector(*(numbers or (0.6, 0.8))))


def test_a_vector_is_stored_with_what_the_scan_filters_by(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada)

    stored = store_vectors(space=active_space(), computed=[computed(memory)])

    row = MemoryEmbedding.objects.get()
    assert (stored, row.memory_id) == (1, memory.pk)
    assert (row.account_id, row.category_id) == (ada.pk, memory.category_id)
    assert bytes(row.body_hash) == text_hash(memory.body)
    assert not PendingMemory.objects.exists()


def test_vectors_come_back_as_they_went(ada: Account) -> None:
    first, second = MemoryFactory.create(owner=ada), MemoryFactory.create(owner=ada)
    store_vectors(space=active_space(), computed=[computed(first, 1, 0), computed(second, 0.5, -0.25)])

    back = hydrate_vectors(EmbeddingSpace.objects.get().pk, [first.pk, second.pk, 999_999])

    assert {pk: row.tolist() for pk, row in back.items()} == {first.pk: [1, 0], second.pk: [0.5, -0.25]}
    assert {row.dtype for row in back.values()} == {np.dtype(np.float32)}


def test_a_vector_is_a_parameter_of_any_statement() -> None:
    with vector_cursor() as cursor:
        row = cursor.execute(
            "SELECT %(a)s::halfvec <=> %(b)s::halfvec, %(a)s::halfvec::text",
            {"a": vector_param(vector(1, 0)), "b": vector_param(vector(0, 1))},
        ).fetchone()

    assert row == (1.0, "[1,0]")


def test_errors_of_the_vector_cursor_are_those_of_django() -> None:
    values = [vector_param(vector(1, 0)), vector_param(vector(1))]

    with pytest.raises(DatabaseError, match="different halfvec"), vector_cursor() as cursor:
        cursor.execute("SELECT %s::halfvec <=> %s::halfvec", values)


def test_a_second_vector_replaces_the_first(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada)
    store_vectors(space=active_space(), computed=[computed(memory, 1, 0)])

    store_vectors(space=active_space(), computed=[computed(memory, 0, 1)])

    assert MemoryEmbedding.objects.get().vec == [0, 1]


def test_an_edited_body_refuses_the_vector_of_the_old_one_and_stays_pending(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada, body="old")
    late = computed(memory)
    Memory.objects.filter(pk=memory.pk).update(body="new")

    assert store_vectors(space=active_space(), computed=[late]) == 0
    assert not MemoryEmbedding.objects.exists()
    assert PendingMemory.objects.filter(memory=memory).exists()


def test_one_stale_vector_does_not_hold_up_the_rest_of_its_batch(ada: Account) -> None:
    good, edited, gone, archived = (MemoryFactory.create(owner=ada) for _ in range(4))
    batch = [computed(memory) for memory in (good, edited, gone, archived)]
    Memory.objects.filter(pk=edited.pk).update(body="new")
    Memory.objects.filter(pk=gone.pk).delete()
    Memory.objects.filter(pk=archived.pk).update(status=Memory.Status.ARCHIVED)

    assert store_vectors(space=active_space(), computed=batch) == 1
    assert MemoryEmbedding.objects.get().memory_id == good.pk


def test_the_body_itself_decides_where_a_stored_hash_is_wrong_or_missing(ada: Account) -> None:
    wrong, missing = MemoryFactory.create(owner=ada), MemoryFactory.create(owner=ada, hashed=False)
    BodyHash.objects.filter(memory=wrong).update(sha256=b"?" * 32)

    stored = store_vectors(space=active_space(), computed=[computed(wrong), computed(missing)])

    assert stored == 2
    assert {bytes(row.sha256) for row in BodyHash.objects.all()} == {
        text_hash(wrong.body),
        text_hash(missing.body),
    }


def test_another_space_is_refused_at_equal_width(ada: Account, server: FakeServer, use: Use) -> None:
    memory = MemoryFactory.create(owner=ada)
    use(server, model="one")
    late = active_space()
    use(server, model="two")

    with pytest.raises(EmbeddingSpaceChanged):
        store_vectors(space=late, computed=[computed(memory)])
    assert not MemoryEmbedding.objects.exists()
    assert PendingMemory.objects.exists()


def test_a_space_takes_only_the_width_of_its_first_vector(ada: Account) -> None:
    first, second = MemoryFactory.create(owner=ada), MemoryFactory.create(owner=ada)
    store_vectors(space=active_space(), computed=[computed(first, 1, 0)])

    with pytest.raises(WidthChanged):
        store_vectors(space=active_space(), computed=[computed(second, 1, 0, 0)])
    assert MemoryEmbedding.objects.get().memory_id == first.pk


def test_a_zero_vector_stores_nothing(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada)

    with pytest.raises(IntegrityError, match="vector_not_zero"):
        store_vectors(space=active_space(), computed=[computed(memory, 0, 0)])


@pytest.mark.django_db(transaction=True)
def test_a_row_that_somebody_is_editing_is_skipped_without_waiting(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada, body="old")
    editing, done = Event(), Event()

    def edit() -> None:
        with transaction.atomic():
            Memory.objects.filter(pk=memory.pk).update(body="new")
            editing.set()
            assert done.wait(10)

    editor = in_thread(edit)
    assert editing.wait(10)
    stored = store_vectors(space=active_space(), computed=[computed(memory)])
    done.set()
    editor.join(10)

    assert stored == 0
    assert PendingMemory.objects.filter(memory=memory).exists()
