"""E14: texts that are the same for everybody share the queue, after all memories, and are paid for once."""

import time
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from embeddings.corpora import batches, index_corpora, register
from embeddings.embedding import Run
from embeddings.models import CorpusDigest, CorpusVector, EmbeddingSpace, FailureSequence
from embeddings.queue import drain
from memories.models import Account
from tests.embeddings.conftest import Use
from tests.embeddings.queues import indexed, remember
from tests.fakes.server import (
    FakeServer,
    Received,
    Reply,
    gives_vectors,
    refuses,
    refuses_texts,
)
from tests.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)


def asked(server: FakeServer) -> list[list[str]]:
    return [sorted(request.texts) for request in server.requests]


def stored(name: str = "help") -> int:
    return CorpusVector.objects.filter(corpus=name).count()


def later(hours: int = 3) -> None:
    """Have the failures so far be that old."""
    FailureSequence.objects.update(last_at=timezone.now() - timedelta(hours=hours))


def test_memories_go_first(ada: Account, server: FakeServer, use: Use) -> None:
    use(server)
    register("help", lambda: ["one", "two"])
    remember(ada, "memory")

    drain()

    assert asked(server) == [["memory"], ["one", "two"]]
    assert stored() == 2


def test_a_memory_written_meanwhile_goes_before_the_next_request(
    ada: Account, server: FakeServer, use: Use
) -> None:
    use(server)
    texts = [f"text {number}" for number in range(20)]
    register("help", lambda: texts)

    def written_meanwhile(request: Received) -> Reply:
        in_thread(lambda: remember(ada, "memory")).join(10)
        return gives_vectors()(request)

    server.then(written_meanwhile)

    drain()

    assert [len(one) for one in asked(server)] == [8, 1, 8, 4]
    assert asked(server)[1] == ["memory"]
    assert (stored(), len(indexed())) == (20, 1)


def test_what_is_complete_costs_one_statement_and_no_request(server: FakeServer, use: Use) -> None:
    use(server)
    register("help", lambda: ["one", "two"])
    register("pages", lambda: ["three"])
    drain()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        drain()

    assert len(server.requests) == 2
    touching = [one["sql"] for one in queries.captured_queries if "corpus" in one["sql"]]
    assert len(touching) == 1
    assert CorpusDigest.objects.count() == 2


def test_only_what_changed_is_asked_for_and_what_went_is_dropped(server: FakeServer, use: Use) -> None:
    use(server)
    register("help", lambda: ["one", "two"])
    drain()
    register("help", lambda: ["two", "three"])

    drain()

    assert asked(server) == [["one", "two"], ["three"]]
    assert stored() == 2


def test_another_model_has_vectors_of_its_own_and_the_way_back_is_free(server: FakeServer, use: Use) -> None:
    register("help", lambda: ["one"])
    for model in ("a", "b", "a"):
        use(server, model=model)
        drain()

    assert [request.json["model"] for request in server.requests] == ["a", "b"]
    assert stored() == 2


def test_a_refused_text_keeps_out_no_other_and_is_tried_ever_more_rarely(
    server: FakeServer, use: Use
) -> None:
    use(server)
    server.always(refuses_texts(lambda text: text == "bad"))
    register("help", lambda: ["bad", "good", "fine"])
    drain()
    first = len(server.requests)

    drain()
    assert (stored(), len(server.requests)) == (2, first)
    later()
    drain()

    row = FailureSequence.objects.get()
    assert asked(server)[first:] == [["bad"]]
    assert (row.operation, row.count, row.code) == ("corpus", 2, "content_refused")
    server.always(gives_vectors())
    later()
    drain()
    assert (stored(), FailureSequence.objects.exists()) == (3, False)


def test_a_failing_model_is_left_alone_for_a_while(server: FakeServer, use: Use) -> None:
    use(server)
    server.always(refuses(503))
    register("help", lambda: ["one"])

    drain()
    drain()
    asked_at_first = len(server.requests)
    later()
    drain()

    assert (asked_at_first, len(server.requests)) == (1, 2)
    assert FailureSequence.objects.get().count == 2


def test_a_server_on_hold_is_not_asked_and_has_not_failed(server: FakeServer, use: Use) -> None:
    use(server)
    server.always(refuses(429, headers={"Retry-After": "600"}))
    register("help", lambda: ["one"])
    drain()
    later()

    drain()

    assert len(server.requests) == 1
    assert FailureSequence.objects.get().count == 1


def test_a_change_of_the_model_during_the_request_stores_nothing(server: FakeServer, use: Use) -> None:
    use(server, model="a")
    register("help", lambda: ["one"])

    def changed_meanwhile(request: Received) -> Reply:
        in_thread(lambda: use(server, model="b")).join(10)
        return gives_vectors()(request)

    server.then(changed_meanwhile)
    drain()
    assert stored() == 0
    drain()

    assert CorpusVector.objects.get().space.model == "b"


def test_a_width_that_differs_from_that_of_the_memories_is_refused(
    ada: Account, server: FakeServer, use: Use
) -> None:
    use(server)
    remember(ada, "memory")
    drain()
    server.always(gives_vectors(width=4))
    register("help", lambda: ["one"])

    drain()

    assert (stored(), EmbeddingSpace.objects.get().dims) == (0, 8)
    assert FailureSequence.objects.get().code == "width_changed"


def test_a_request_is_small_so_that_a_memory_need_not_wait_long() -> None:
    long = {bytes([number]): "x" * 5_000 for number in range(5)}
    longest = {bytes([number]): "x" * 25_000 for number in range(2)}
    short = {bytes([number]): "x" for number in range(17)}

    assert [len(batch) for batch in batches(long)] == [2, 2, 1]
    assert [[len(text) for text in batch.values()] for batch in batches(longest)] == [[16_000], [16_000]]
    assert [len(batch) for batch in batches(short)] == [8, 8, 1]
    assert list(batches({})) == []


@pytest.mark.parametrize(("ends_in_s", "holds_on", "requests"), [(0, True, 1), (99, True, 3), (99, False, 0)])
def test_it_ends_when_time_is_up_or_the_lease_is_lost(
    server: FakeServer, use: Use, ends_in_s: float, holds_on: bool, requests: int
) -> None:
    use(server)
    register("help", lambda: [f"text {number}" for number in range(20)])

    is_done = index_corpora(Run.start(), until=time.monotonic() + ends_in_s, holds_on=lambda: holds_on)

    assert (is_done, len(server.requests)) == (requests == 3, requests)
    assert CorpusDigest.objects.exists() is is_done
