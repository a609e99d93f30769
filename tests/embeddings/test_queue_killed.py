"""A worker killed ten times during a drain: nothing is lost, and only what was in flight is paid twice."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Event

import pytest

from embeddings.models import MemoryEmbedding
from embeddings.queue import drain
from memories.models import Account, Memory
from tests.embeddings.conftest import Use
from tests.embeddings.queues import make_due, waiting
from tests.fakes.server import FakeServer, gives_vectors, holds
from tests.processes import go, python

pytestmark = pytest.mark.django_db(transaction=True)

KILLS = 10
DRAIN = "from embeddings.queue import drain; drain()"


@pytest.fixture
def workers() -> Iterator[list[subprocess.Popen[str]]]:
    with ExitStack() as stack:
        processes = [stack.enter_context(python(DRAIN)) for _ in range(KILLS)]
        for process in processes:
            stack.callback(process.kill)
        yield processes


def test_a_worker_killed_ten_times_loses_nothing_and_pays_twice_only_for_what_was_in_flight(
    ada: Account, server: FakeServer, use: Use, workers: list[subprocess.Popen[str]]
) -> None:
    use(server)
    Memory.objects.bulk_create(Memory(owner=ada, body=f"note {number}") for number in range(900))
    in_flight, never = Counter[str](), Event()

    for number, one in enumerate(workers):
        seen = len(server.requests)
        # Some die while they wait for an answer, some just after it, wherever they are by then.
        server.then(gives_vectors(), holds(never) if number % 2 else gives_vectors())
        go(one)
        server.wait_for_requests(seen + 2)
        one.kill()
        one.wait()
        in_flight.update(server.requests[-1].texts)
        make_due()  # what it had claimed, as time does; its lease ended with it
    killed_at = len(indexed_bodies())
    drain()

    sent = Counter(text for request in server.requests for text in request.texts)
    assert 0 < killed_at < 900
    assert max(sent.values()) > 1  # or no kill has hit anything
    assert (indexed_bodies(), waiting()) == ({f"note {number}" for number in range(900)}, {})
    assert all(times <= 1 + in_flight[text] for text, times in sent.items())
    assert all(worker.returncode == -9 for worker in workers)
    never.set()


def indexed_bodies() -> set[str]:
    return set(MemoryEmbedding.objects.values_list("memory__body", flat=True))
