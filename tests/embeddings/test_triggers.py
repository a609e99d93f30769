"""What the database keeps true by itself, whoever writes."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection
from django.utils import timezone

from embeddings.models import EmbeddingSpace, MemoryEmbedding, PendingMemory
from memories.models import Account, Category, Memory
from tests.factories import CategoryFactory, MemoryFactory

pytestmark = pytest.mark.django_db


def embedded(memory: Memory) -> None:
    space = EmbeddingSpace.objects.create(provider="local", endpoint_hash=b"x" * 32, model="m")
    MemoryEmbedding.objects.create(
        memory=memory,
        space=space,
        account_id=memory.owner_id,
        category_id=memory.category_id,
        body_hash=b"h" * 32,
        vec=[1, 0],
    )


def copies(memory: Memory) -> tuple[int | None, int | None]:
    row = MemoryEmbedding.objects.get(memory=memory)
    return row.account_id, row.category_id


def test_a_new_active_memory_waits_and_any_other_does_not(ada: Account) -> None:
    active = MemoryFactory.create(owner=ada)
    MemoryFactory.create(owner=ada, status=Memory.Status.ARCHIVED)

    waiting = PendingMemory.objects.values_list("memory_id", "account_id", "attempts")

    assert list(waiting) == [(active.pk, ada.pk, 0)]


def test_many_rows_of_one_statement_all_wait(ada: Account) -> None:
    Memory.objects.bulk_create(Memory(owner=ada, body=f"note {number}") for number in range(3))

    assert PendingMemory.objects.count() == 3


def test_a_changed_body_is_a_new_chance(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada)
    PendingMemory.objects.update(attempts=9, next_at=timezone.now() + timedelta(days=1))

    Memory.objects.filter(pk=memory.pk).update(body="something else")

    waiting = PendingMemory.objects.get()
    assert waiting.attempts == 0
    assert waiting.next_at <= timezone.now()


@pytest.mark.parametrize("change", [{"body": "Memory X"}, {"importance": 9}, {"use_count": 3}])
def test_what_leaves_the_body_as_it_is_queues_nothing(ada: Account, change: dict[str, object]) -> None:
    memory = MemoryFactory.create(owner=ada, body="Memory X")
    PendingMemory.objects.all().delete()

    Memory.objects.filter(pk=memory.pk).update(**change)

    assert not PendingMemory.objects.exists()


def test_a_body_changed_in_the_archive_waits_only_when_it_comes_back(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada, status=Memory.Status.ARCHIVED)

    Memory.objects.filter(pk=memory.pk).update(body="changed")
    archived = PendingMemory.objects.count()
    Memory.objects.filter(pk=memory.pk).update(status=Memory.Status.ACTIVE)

    assert (archived, PendingMemory.objects.count()) == (0, 1)


def test_the_copies_follow_owner_and_category(ada: Account, ben: Account) -> None:
    memory = MemoryFactory.create(owner=ada)
    embedded(memory)
    category = CategoryFactory.create(owner=ben)

    Memory.objects.filter(pk=memory.pk).update(owner=ben, category=category)

    assert copies(memory) == (ben.pk, category.pk)
    assert PendingMemory.objects.get().account_id == ben.pk


def test_the_category_is_copied_only_while_the_memory_is_active(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada)
    embedded(memory)

    Memory.objects.filter(pk=memory.pk).update(status=Memory.Status.ARCHIVED)
    archived = copies(memory)
    Memory.objects.filter(pk=memory.pk).update(status=Memory.Status.ACTIVE)

    assert archived == (ada.pk, None)
    assert copies(memory) == (ada.pk, memory.category_id)


def test_a_deleted_category_is_gone_from_the_copy(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada)
    embedded(memory)

    Category.objects.filter(pk=memory.category_id).delete()

    assert copies(memory) == (ada.pk, None)


def test_a_purged_memory_takes_everything_along(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada)
    embedded(memory)

    Memory.objects.filter(pk=memory.pk).delete()

    assert not MemoryEmbedding.objects.exists()
    assert not PendingMemory.objects.exists()


def test_a_zero_vector_is_refused(ada: Account) -> None:
    embedded(MemoryFactory.create(owner=ada))

    with pytest.raises(IntegrityError, match="vector_not_zero"):
        MemoryEmbedding.objects.update(vec=[0, 0])


def test_a_space_without_a_width_has_one_row() -> None:
    EmbeddingSpace.objects.create(provider="p", endpoint_hash=b"x", model="m", width=None)

    with pytest.raises(IntegrityError, match="one_row_per_space"):
        EmbeddingSpace.objects.create(provider="p", endpoint_hash=b"x", model="m", width=None)


def test_a_vector_of_1536_numbers_stays_in_its_row(ada: Account) -> None:
    embedded(MemoryFactory.create(owner=ada))
    MemoryEmbedding.objects.update(vec=[0.5] * 1536)

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = %s::regclass",
            ["embeddings_memoryembedding"],
        )
        assert cursor.fetchone() == (0,)
