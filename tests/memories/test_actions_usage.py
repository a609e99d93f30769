"""R18 and R24: purging, and counting what was delivered."""

from collections import Counter

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone

from elowen.lib.errors import NotFound
from memories.actions.purging import empty_trash, purge_memories, purge_memory
from memories.actions.usage import mark_used
from memories.models import Account, BodyHash, Memory, MemoryEvent, MemoryUse
from tests.factories import MemoryFactory

pytestmark = pytest.mark.django_db


def test_each_occurrence_counts_once_and_foreign_ids_count_nothing(ada: Account, cleo: Account) -> None:
    mine, foreign = MemoryFactory.create(owner=ada), MemoryFactory.create(owner=cleo)
    now = timezone.now()

    counted = mark_used(reader=ada, ids=[mine.pk, mine.pk, foreign.pk, 10**12], now=now)

    mine.refresh_from_db()
    foreign.refresh_from_db()
    assert counted == 2
    assert (mine.use_count, mine.last_used_at, foreign.use_count) == (2, now, 0)
    assert Counter(MemoryUse.objects.values_list("memory", "account")) == {(mine.pk, ada.pk): 2}


def test_a_use_is_not_an_edit(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada)
    updated_at = memory.updated_at

    mark_used(reader=ada, ids=[memory.pk], now=timezone.now())

    memory.refresh_from_db()
    assert memory.updated_at == updated_at
    assert not MemoryEvent.objects.exists()


def test_a_failed_count_leaves_the_callers_transaction_whole(ada: Account) -> None:
    with transaction.atomic():
        memory = MemoryFactory.create(owner=ada)
        with pytest.raises(DatabaseError):
            mark_used(reader=ada, ids=[10**30], now=timezone.now())

    assert Memory.objects.filter(pk=memory.pk).exists()


def test_purge_is_audited_first_and_takes_everything_with_it(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada)
    mark_used(reader=ada, ids=[memory.pk], now=timezone.now())

    purge_memory(memory_id=memory.pk, by=ada)

    event = MemoryEvent.objects.get()
    assert (event.action, event.after, event.memory_id) == ("purge", None, memory.pk)
    assert event.before is not None
    assert event.before["body"] == memory.body
    assert not Memory.objects.exists()
    assert not BodyHash.objects.exists()
    assert not MemoryUse.objects.exists()


def test_a_batch_purge_skips_foreign_ids_silently(ada: Account, cleo: Account) -> None:
    mine, foreign = MemoryFactory.create(owner=ada), MemoryFactory.create(owner=cleo)

    assert purge_memories(by=ada, ids=[mine.pk, foreign.pk, mine.pk]) == 1
    assert list(Memory.objects.all()) == [foreign]


def test_purging_a_strangers_memory_finds_nothing(ada: Account, cleo: Account) -> None:
    memory = MemoryFactory.create(owner=ada)

    with pytest.raises(NotFound):
        purge_memory(memory_id=memory.pk, by=cleo)


def test_emptying_the_trash_takes_only_ones_own_deleted_rows(ada: Account, cleo: Account) -> None:
    gone = [MemoryFactory.create(owner=ada, status="deleted") for _ in range(3)]
    kept = [MemoryFactory.create(owner=ada), MemoryFactory.create(owner=cleo, status="deleted")]

    assert empty_trash(by=ada) == len(gone)
    assert set(Memory.objects.all()) == set(kept)


def test_a_failing_purge_purges_nothing(ada: Account) -> None:
    from memories.audit import Note

    ids = [MemoryFactory.create(owner=ada).pk for _ in range(3)]

    with pytest.raises(DatabaseError), transaction.atomic():
        purge_memories(by=ada, ids=ids, note=Note(actor="x" * 41))

    assert Memory.objects.count() == 3
