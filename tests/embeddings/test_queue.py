"""The drain against a scripted server: what is sent, in which order, and what a failure leaves behind."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ
from pytest_django import DjangoAssertNumQueries

from elowen.lib.hashing import text_hash
from embeddings import pending, tasks
from embeddings.actions.reindexing import reconcile
from embeddings.embedding import embed_query
from embeddings.models import EmbeddingSpace, MemoryEmbedding, PendingMemory
from embeddings.pending import claim
from embeddings.queue import drain
from memories import leases
from memories.actions.editing import add_memory, change_memory
from memories.models import Account, Heartbeat, Memory
from memories.signals import memory_committed
from tests.embeddings.conftest import Use
from tests.embeddings.queues import indexed, make_due, remember, waiting
from tests.fakes.server import FakeServer, gives_vectors, refuses, refuses_texts, resets

pytestmark = pytest.mark.django_db(transaction=True)


def test_everything_that_waits_is_indexed_and_asked_for_once(
    ada: Account, server: FakeServer, use: Use
) -> None:
    use(server)
    memories = remember(ada, "one", "two", "three")

    stored = drain()

    assert stored == 3
    assert indexed() == {memory.pk for memory in memories}
    assert [sorted(request.texts) for request in server.requests] == [["one", "three", "two"]]
    assert (drain(), len(server.requests), waiting()) == (0, 1, {})


def test_a_memory_is_found_with_the_bundled_model(ada: Account) -> None:
    nuts, _ = remember(ada, "My sister cannot eat nuts.", "The train leaves at seven.")

    drain()

    asked = embed_query("Who is allergic to peanuts?", account_id=ada.pk)
    rows = MemoryEmbedding.objects.filter(space=asked.space)
    nearest = max(rows, key=lambda row: float(asked.vector @ row.vec))
    assert (nearest.memory_id, len(rows), asked.space.dims) == (nuts.pk, 2, len(asked.vector))


def test_requests_hold_at_most_50_texts(ada: Account, server: FakeServer, use: Use) -> None:
    use(server)
    Memory.objects.bulk_create(Memory(owner=ada, body=f"note {number}") for number in range(120))

    drain()

    assert [len(request.texts) for request in server.requests] == [50, 50, 20]


def test_requests_hold_at_most_60000_characters_of_texts_cut_to_16000(
    ada: Account, server: FakeServer, use: Use
) -> None:
    use(server)
    remember(ada, *("ä" * 30_000 for _ in range(7)))

    drain()

    assert [[len(text) for text in request.texts] for request in server.requests] == [
        [16_000] * 3,
        [16_000] * 3,
        [16_000],
    ]
    assert len(indexed()) == 7


def test_the_hash_is_that_of_the_whole_body(ada: Account, server: FakeServer, use: Use) -> None:
    use(server)
    remember(ada, "long " * 5_000)

    drain()

    assert bytes(MemoryEmbedding.objects.get().body_hash) == text_hash("long " * 5_000)


def test_a_large_account_does_not_starve_a_small_one(
    ada: Account, ben: Account, server: FakeServer, use: Use
) -> None:
    use(server)
    Memory.objects.bulk_create(Memory(owner=ada, body=f"ada {number}") for number in range(100))
    remember(ben, "ben 0", "ben 1")

    drain()

    assert {"ben 0", "ben 1"} < set(server.requests[0].texts)


def test_a_failed_request_puts_its_batch_off_and_ends_the_drain(
    ada: Account, server: FakeServer, use: Use
) -> None:
    use(server)
    server.always(resets())
    Memory.objects.bulk_create(Memory(owner=ada, body=f"note {number}") for number in range(60))

    assert drain() == 0

    assert len(server.requests) == 1
    assert sorted(waiting().values()) == [0] * 10 + [1] * 50
    assert leases.take(pending.LEASE, seconds=1, holder="test")


def test_each_failure_doubles_the_wait(ada: Account, server: FakeServer, use: Use) -> None:
    use(server)
    server.always(refuses(503))
    remember(ada, "one")
    waits = []

    for _ in range(4):
        make_due()
        before = timezone.now()
        drain()
        waits.append(round((PendingMemory.objects.get().next_at - before).total_seconds(), -1))

    assert [round(wait / 15) for wait in waits] == [1, 2, 4, 8]


def test_a_text_that_is_refused_waits_alone(ada: Account, server: FakeServer, use: Use) -> None:
    use(server)
    server.always(refuses_texts(lambda text: text == "bad"))
    *good, bad = remember(ada, "one", "two", "three", "bad")

    drain()

    assert indexed() == {memory.pk for memory in good}
    assert waiting() == {bad.pk: 1}


def test_an_endpoint_that_refuses_every_text_has_failed(ada: Account, server: FakeServer, use: Use) -> None:
    use(server)
    server.always(refuses(400))
    Memory.objects.bulk_create(Memory(owner=ada, body=f"note {number}") for number in range(53))

    assert drain() == 0

    assert sorted(waiting().values()) == [0] * 3 + [1] * 50


def test_rows_that_failed_often_come_last_and_alone(ada: Account, server: FakeServer, use: Use) -> None:
    use(server)
    remember(ada, "bad 1", "bad 2")
    PendingMemory.objects.update(attempts=pending.SUSPECT_ATTEMPTS)
    remember(ada, "one", "two")

    drain()

    assert [request.texts for request in server.requests] == [["one", "two"], ["bad 1"], ["bad 2"]]


def test_rows_that_need_nothing_are_taken_off_without_a_request(
    ada: Account, server: FakeServer, use: Use
) -> None:
    use(server)
    fresh, archived = remember(ada, "one", "two")
    drain()
    Memory.objects.filter(pk=fresh.pk).update(status=Memory.Status.ARCHIVED)
    Memory.objects.filter(pk=fresh.pk).update(status=Memory.Status.ACTIVE)
    Memory.objects.filter(pk=archived.pk).update(body="changed")
    Memory.objects.filter(pk=archived.pk).update(status=Memory.Status.ARCHIVED)

    drain()

    assert (len(server.requests), waiting()) == (1, {})


def test_a_vector_whose_hash_is_missing_is_made_anew(ada: Account, server: FakeServer, use: Use) -> None:
    use(server)
    (memory,) = remember(ada, "one")
    drain()
    memory.body_hash.delete()

    assert reconcile() == 1
    drain()

    assert len(server.requests) == 2
    assert reconcile() == 0


def test_a_server_that_changes_its_width_is_refused(ada: Account, server: FakeServer, use: Use) -> None:
    use(server)
    remember(ada, "one")
    drain()
    server.always(gives_vectors(width=4))
    remember(ada, "two")

    assert drain() == 0
    assert EmbeddingSpace.objects.get().dims == 8


def test_a_batch_is_claimed_and_read_with_one_query_along_an_index(
    ada: Account, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    Memory.objects.bulk_create(Memory(owner=ada, body="note " * 60) for _ in range(5_000))
    space = EmbeddingSpace.objects.create(provider="p", endpoint_hash=b"x", model="m")

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        values: dict[str, Any] = {"space": space.pk, "count": 50, "suspects": False, "without": []}
        cursor.execute(f"EXPLAIN {pending.CLAIM}", values)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    with django_assert_num_queries(1):
        batch = claim(space)

    assert len(batch) == 50
    assert "Seq Scan on memories_memory" not in plan
    assert "pending_by_turn" in plan


def test_reconcile_queues_what_lacks_a_vector_and_drops_what_needs_none(
    ada: Account, server: FakeServer, use: Use
) -> None:
    use(server, model="a")
    stays, lost, archived = remember(ada, "one", "two", "three")
    drain()
    MemoryEmbedding.objects.filter(memory=lost).delete()
    Memory.objects.filter(pk=archived.pk).update(body="changed")
    Memory.objects.filter(pk=archived.pk).update(status=Memory.Status.ARCHIVED)

    assert reconcile() == 1
    assert waiting() == {lost.pk: 0}
    use(server, model="b")
    assert reconcile() == 1
    assert set(waiting()) == {stays.pk, lost.pk}


def test_reconcile_anew_forgets_the_failures_of_other_settings(ada: Account) -> None:
    (memory,) = remember(ada, "one")
    PendingMemory.objects.update(attempts=7, next_at=timezone.now() + timedelta(hours=1))

    reconcile(anew=True)

    assert waiting() == {memory.pk: 0}
    assert OrmQ.objects.count() == 1


def test_wake_ups_are_one_until_the_drain_begins(ada: Account) -> None:
    for _ in range(3):
        memory_committed.send(Memory, memory_ids=[1])
    asleep = OrmQ.objects.count()
    leases.begin(pending.LEASE)
    memory_committed.send(Memory, memory_ids=[1])

    assert (asleep, OrmQ.objects.count()) == (1, 2)


def test_a_write_asks_for_the_task_that_indexes_it(ada: Account, server: FakeServer, use: Use) -> None:
    use(server)
    memory = add_memory(by=ada, body="old")
    asked = [task.func() for task in OrmQ.objects.all()]
    tasks.drain_queue()
    change_memory(memory_id=memory.pk, by=ada, changes={"body": "new"})
    tasks.drain_queue()

    assert asked == ["embeddings.tasks.drain_queue"]
    assert [request.texts for request in server.requests] == [["old"], ["new"]]
    assert bytes(MemoryEmbedding.objects.get().body_hash) == text_hash("new")
    assert Heartbeat.objects.get().name == "queue"


def test_a_change_of_importance_asks_the_model_for_nothing(
    ada: Account, server: FakeServer, use: Use
) -> None:
    use(server)
    memory = add_memory(by=ada, body="one")
    tasks.drain_queue()
    change_memory(memory_id=memory.pk, by=ada, changes={"importance": 9})
    tasks.drain_queue()

    assert len(server.requests) == 1
