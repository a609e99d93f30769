"""R21: what a merge keeps, and what it refuses before anything is retired."""

from datetime import timedelta

import pytest
from django.utils import timezone

from elowen.lib.errors import Conflict
from memories import audit
from memories.actions.merging import merge_memories
from memories.models import Account, Category, Memory, MemoryEvent
from tests.factories import CategoryFactory, MemoryFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def drawer(ada: Account) -> Category:
    drawer: Category = CategoryFactory.create(owner=ada)
    return drawer


def test_merge_keeps_the_best_of_its_sources(ada: Account, drawer: Category) -> None:
    now = timezone.now()
    first = MemoryFactory.create(owner=ada, category=drawer, importance=3, use_count=2, last_used_at=now)
    second = MemoryFactory.create(
        owner=ada, category=drawer, importance=8, use_count=5, last_used_at=now - timedelta(days=1)
    )

    merged = merge_memories(by=ada, ids=[second.pk, first.pk, first.pk], body="Both.")

    assert (merged.category, merged.kind, merged.source) == (drawer, "fact", "merge")
    assert (merged.importance, merged.use_count, merged.last_used_at) == (8, 7, now)
    assert set(Memory.objects.filter(status="deleted")) == {first, second}


def test_merge_records_every_source_whole(ada: Account, drawer: Category) -> None:
    sources = [MemoryFactory.create(owner=ada, category=drawer) for _ in range(2)]
    before = {source.pk: audit.snapshot(source) for source in sources}

    merged = merge_memories(by=ada, ids=[source.pk for source in sources], body="Both.")

    deletes = MemoryEvent.objects.filter(action="delete")
    event = MemoryEvent.objects.get(action="merge")
    assert {row.memory_id: row.before for row in deletes} == before
    assert all(row.after and row.after["status"] == "deleted" for row in deletes)
    assert event.after == audit.snapshot(merged) | {"source_ids": sorted(before)}


def test_merge_skips_what_is_inactive_or_not_accessible(
    ada: Account, cleo: Account, drawer: Category
) -> None:
    good = MemoryFactory.create(owner=ada, category=drawer)
    archived = MemoryFactory.create(owner=ada, category=drawer, status="archived")
    foreign = MemoryFactory.create(owner=cleo)

    merge_memories(by=ada, ids=[good.pk, archived.pk, foreign.pk], body="One.")

    archived.refresh_from_db()
    foreign.refresh_from_db()
    assert (archived.status, foreign.status) == ("archived", "active")


def test_uncategorised_memories_merge_with_each_other(ada: Account) -> None:
    ids = [MemoryFactory.create(owner=ada, category=None).pk for _ in range(2)]

    assert merge_memories(by=ada, ids=ids, body="Both.").category is None


def test_merge_refuses_before_anything_is_retired(ada: Account, cleo: Account, drawer: Category) -> None:
    here = MemoryFactory.create(owner=ada, category=drawer)
    there = MemoryFactory.create(owner=ada)
    nowhere = MemoryFactory.create(owner=ada, category=None)
    other_kind = MemoryFactory.create(owner=ada, category=drawer, kind="preference")
    foreign = MemoryFactory.create(owner=cleo)

    for ids in ([here.pk, there.pk], [here.pk, nowhere.pk], [here.pk, other_kind.pk], [foreign.pk], []):
        with pytest.raises(Conflict):
            merge_memories(by=ada, ids=ids, body="Both.")

    assert not Memory.objects.exclude(status="active").exists()
    assert not MemoryEvent.objects.exists()


def test_an_explicit_kind_settles_different_kinds(ada: Account, drawer: Category) -> None:
    ids = [MemoryFactory.create(owner=ada, category=drawer, kind=kind).pk for kind in ("fact", "preference")]

    assert merge_memories(by=ada, ids=ids, body="Both.", kind="preference").kind == "preference"
