"""The drain while others write, change the settings, or drain as well."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event

import pytest
from django.db import connection, transaction

from elowen.lib.hashing import text_hash
from embeddings import pending
from embeddings.actions.reindexing import reconcile
from embeddings.embedding import embed_query
from embeddings.models import EmbeddingSpace, MemoryEmbedding
from embeddings.pending import claim
from embeddings.queue import drain
from memories import leases
from memories.models import Account, Lease, Memory
from tests.embeddings.conftest import Use
from tests.embeddings.queues import indexed, make_due, remember, waiting
from tests.fakes.server import FakeServer, holds
from tests.threads import at_once, in_thread

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def drain_under_way(server: FakeServer) -> Iterator[Event]:
    """While this lasts, a drain waits for the server's answer; set the event to let it go on earlier."""
    release = Event()
    server.then(holds(release))
    working = in_thread(drain)
    server.wait_for_requests(1)
    try:
        yield release
    finally:
        release.set()
        working.join(10)


def test_an_edit_during_the_request_wins(ada: Account, server: FakeServer, use: Use) -> None:
    use(server)
    (memory,) = remember(ada, "old")

    with drain_under_way(server):
        Memory.objects.filter(pk=memory.pk).update(body="new")

    assert [request.texts for request in server.requests] == [["old"], ["new"]]
    assert bytes(MemoryEmbedding.objects.get().body_hash) == text_hash("new")


def test_no_transaction_is_open_during_the_request(ada: Account, server: FakeServer, use: Use) -> None:
    use(server)
    remember(ada, "one")

    with drain_under_way(server), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND xact_start IS NOT NULL AND backend_type = 'client backend'"
        )
        others = cursor.fetchone()

    assert others == (0,)


def test_a_late_vector_of_another_space_is_refused_at_equal_width(
    ada: Account, server: FakeServer, use: Use
) -> None:
    use(server, model="a")
    (memory,) = remember(ada, "one")

    with drain_under_way(server):
        use(server, model="b")

    assert [request.json["model"] for request in server.requests] == ["a"]
    assert not MemoryEmbedding.objects.exists()
    assert set(waiting()) == {memory.pk}
    reconcile(anew=True)
    drain()
    assert MemoryEmbedding.objects.get().space.model == "b"
    assert (indexed(), waiting()) == ({memory.pk}, {})


def test_settings_that_went_and_came_back_meanwhile_mix_nothing(
    ada: Account, server: FakeServer, use: Use
) -> None:
    use(server, model="a")
    first, second = Event(), Event()
    server.then(holds(first), holds(second))
    remember(ada, "one")
    under_a = in_thread(drain)
    server.wait_for_requests(1)
    use(server, model="b")
    leases.release(leases.Fence(pending.LEASE, 1))
    make_due()
    under_b = in_thread(drain)
    server.wait_for_requests(2)
    use(server, model="a")

    second.set()
    under_b.join(10)
    first.set()
    under_a.join(10)

    row = MemoryEmbedding.objects.get()
    assert [request.json["model"] for request in server.requests[:2]] == ["a", "b"]
    assert row.space.model == "a"
    asked = embed_query("one", account_id=ada.pk)
    assert row.vec == pytest.approx([float(number) for number in asked.vector], abs=1e-3)


def test_two_drains_at_once_ask_for_nothing_twice(ada: Account, server: FakeServer, use: Use) -> None:
    use(server)
    remember(ada, "one")

    with drain_under_way(server):
        second = drain()

    assert (second, len(server.requests), len(indexed())) == (0, 1, 1)


def test_two_claims_at_once_share_no_row(ada: Account) -> None:
    Memory.objects.bulk_create(Memory(owner=ada, body=f"note {number}") for number in range(80))
    space = EmbeddingSpace.objects.create(provider="p", endpoint_hash=b"x", model="m")

    claims = at_once([partial(claim, space) for _ in range(3)])

    ids = [one.memory_id for claimed in claims for one in claimed]
    assert len(ids) == len(set(ids)) > 0


def test_who_comes_while_the_lease_is_held_is_served_after_all(
    ada: Account, server: FakeServer, use: Use
) -> None:
    use(server)
    remember(ada, "one")

    with drain_under_way(server):
        remember(ada, "two")
        assert drain() == 0

    assert (len(indexed()), waiting()) == (2, {})


def wait_until_blocked() -> None:
    deadline = time.monotonic() + 10
    with connection.cursor() as cursor:
        while time.monotonic() < deadline:
            cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
            if cursor.fetchone():
                return
    raise AssertionError("Nobody waits for a lock.")


def test_who_comes_between_the_last_look_and_the_release_is_served_too(
    ada: Account, server: FakeServer, use: Use
) -> None:
    use(server)
    remember(ada, "one")

    with drain_under_way(server) as release, transaction.atomic():
        Lease.objects.select_for_update().get()
        release.set()
        wait_until_blocked()  # the drain has found nothing more and wants to give the lease back
        in_thread(lambda: remember(ada, "two")).join(10)

    assert (len(indexed()), waiting()) == (2, {})
