"""E15: failures in a row, each operation on its own, counted by all processes and reported at the third."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import pytest
from django.db import connection

from elowen.lib.errors import Unavailable
from elowen.providers.errors import ContentRefused, InvalidAnswer, TransportFailed
from embeddings.connections import NoConnection, OnHold
from embeddings.embedding import embed_query
from embeddings.failures import Operation, failed, forget_old
from embeddings.models import FailureSequence
from embeddings.queue import drain
from memories.models import Account, Memory
from tests.conftest import Api
from tests.embeddings.conftest import Use
from tests.embeddings.queues import indexed, make_due, remember, waiting
from tests.factories import CategoryFactory
from tests.fakes.server import FakeServer, gives, refuses, refuses_texts, resets
from tests.maintenance.test_metrics import metrics
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def reports(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """What was reported so far: the message of each error that was logged."""
    messages = list[str]()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    listener, logger = Listener(logging.ERROR), logging.getLogger("embeddings.failures")
    logger.addHandler(listener)
    yield messages
    logger.removeHandler(listener)


def counts() -> dict[tuple[str, int, str], int]:
    rows = FailureSequence.objects.values_list("operation", "account_id", "subject", "count")
    return {(operation, account, subject): count for operation, account, subject, count in rows}


def ask(account: Account) -> None:
    with suppress(Unavailable):
        embed_query("tea", account_id=account.pk)


def try_again() -> None:
    make_due()
    drain()


# --- Questions ---


def test_the_third_failure_in_a_row_is_reported_and_no_other(
    ada: Account, server: FakeServer, use: Use, reports: list[str]
) -> None:
    use(server)
    server.always(resets())
    seen = []

    for _ in range(5):
        ask(ada)
        seen.append(len(reports))

    assert seen == [0, 0, 1, 1, 1]
    assert reports == ["memory.embed_failed: embedding of a question, 3 in a row, transport_failed"]
    assert counts() == {("query", ada.pk, ""): 5}


def test_a_success_ends_the_sequence(ada: Account, server: FakeServer, use: Use, reports: list[str]) -> None:
    use(server)
    server.then(resets(), resets())
    for _ in range(3):
        ask(ada)
    assert counts() == {}
    server.then(resets(), resets())

    ask(ada)
    ask(ada)

    assert (counts(), reports) == ({("query", ada.pk, ""): 2}, [])


def test_all_ways_to_ask_share_one_sequence(
    ada: Account, server: FakeServer, use: Use, api: Api, reports: list[str]
) -> None:
    use(server)
    server.always(refuses(500))
    CategoryFactory.create(owner=ada)  # without a scope nothing is asked
    client = api(ada)

    client.post("/api/memory/retrieve", {"query": "tea"}, format="json")
    client.get("/api/memory", {"q": "tea"})
    client.post("/api/memory/similar", {"body": "tea"}, format="json")

    assert (len(server.requests), counts()) == (3, {("query", ada.pk, ""): 3})


def test_one_accounts_success_does_not_end_anothers_sequence(
    ada: Account, ben: Account, server: FakeServer, use: Use
) -> None:
    use(server)
    server.then(resets())

    ask(ada)
    ask(ben)

    assert counts() == {("query", ada.pk, ""): 1}


def test_an_answer_without_sense_is_reported_at_once(
    ada: Account, server: FakeServer, use: Use, reports: list[str]
) -> None:
    use(server)
    server.always(gives({"data": []}))
    remember(ada, "one")

    drain()

    assert reports == ["memory.embed_failed: request for memories, 1 in a row, invalid_answer"]


@pytest.mark.parametrize("error", [NoConnection(), OnHold()])
def test_where_nothing_was_sent_nothing_has_failed(ada: Account, error: Unavailable) -> None:
    failed(Operation.QUERY, ada.pk, error)

    assert counts() == {}


def test_processes_that_fail_at_once_count_together_and_report_once(ada: Account, reports: list[str]) -> None:
    fail = partial(failed, Operation.QUERY, ada.pk, TransportFailed())

    at_once([fail for _ in range(8)])

    assert counts() == {("query", ada.pk, ""): 8}
    assert len(reports) == 1


# --- The queue ---


def test_requests_that_fail_are_reported_at_the_third(
    ada: Account, ben: Account, server: FakeServer, use: Use, reports: list[str]
) -> None:
    use(server)
    server.always(refuses(503))
    remember(ada, "hers")
    remember(ben, "his")

    for _ in range(3):
        try_again()

    assert counts() == {("transport", 0, ""): 3}  # a server of one's own serves all in one request
    assert reports == ["memory.embed_failed: request for memories, 3 in a row, transport_failed"]
    server.always(refuses_texts(lambda text: False))
    try_again()
    assert (counts(), waiting()) == ({}, {})


def test_a_refused_text_is_reported_at_its_third_time_and_forgotten_when_it_passes(
    ada: Account, server: FakeServer, use: Use, reports: list[str]
) -> None:
    use(server)
    server.always(refuses_texts(lambda text: text == "bad"))
    bad, _ = remember(ada, "bad", "good")

    for _ in range(3):
        try_again()

    assert counts() == {("refused", ada.pk, str(bad.pk)): 3}
    assert reports == ["memory.embed_failed: text of a memory, 3 in a row, content_refused"]
    Memory.objects.filter(pk=bad.pk).update(body="better")
    try_again()
    assert counts() == {}


@contextmanager
def no_vector_for(memory: Memory) -> Iterator[None]:
    """While this lasts, the database itself refuses this memory's vector."""
    with connection.cursor() as cursor:
        cursor.execute(f"""
            CREATE FUNCTION refuse_vector() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = 'data_exception'; END $$;
            CREATE TRIGGER refuse_vector BEFORE INSERT OR UPDATE ON embeddings_memoryembedding
            FOR EACH ROW WHEN (new.memory_id = {memory.pk}) EXECUTE FUNCTION refuse_vector();
        """)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION refuse_vector CASCADE")


def test_a_vector_that_cannot_be_stored_keeps_out_no_other(
    ada: Account, server: FakeServer, use: Use, reports: list[str]
) -> None:
    use(server)
    bad, *good = remember(ada, "bad", "one", "two")

    with no_vector_for(bad):
        for _ in range(3):
            try_again()
        assert indexed() == {memory.pk for memory in good}
        assert counts() == {("write", ada.pk, str(bad.pk)): 3}
    assert reports == ["memory.embed_failed: storing of a vector, 3 in a row, DataError"]

    try_again()
    assert (counts(), waiting()) == ({}, {})


# --- What is seen of it ---


def test_what_was_reported_is_counted_in_the_metrics_and_listed(
    ada: Account, api: Api, reports: list[str]
) -> None:
    Account.objects.filter(pk=ada.pk).update(is_staff=True)
    for _ in range(3):
        failed(Operation.REFUSED, ada.pk, ContentRefused(), subject="7")
    failed(Operation.QUERY, ada.pk, TransportFailed())
    failed(Operation.CORPUS, None, InvalidAnswer(), subject="help:start")

    found = metrics(api(ada))

    assert found["elowen_embedding_failures", "refused"] == 1
    assert found["elowen_embedding_failures", "query"] == 0
    assert found["elowen_embedding_failures", "corpus"] == 1
    assert reports[1].startswith("search.index_embed_failed: ")


def test_what_nobody_tried_again_is_forgotten(ada: Account) -> None:
    failed(Operation.QUERY, ada.pk, TransportFailed())
    failed(Operation.QUERY, ada.pk + 1, TransportFailed())
    FailureSequence.objects.filter(account_id=ada.pk).update(last_at="2020-01-01T00:00Z")

    forget_old()

    assert counts() == {("query", ada.pk + 1, ""): 1}
