"""E1 to E5: a change between two servers while serving, and back. Nothing of one meets the other's."""

from collections.abc import Callable, Iterator
from threading import Event

import pytest

from embeddings.actions.reindexing import reconcile
from embeddings.config import SECTION, EmbeddingConfig, active_space
from embeddings.models import EmbeddingSpace, MemoryEmbedding
from embeddings.queue import drain
from memories.models import Account, ConfigSection, Memory
from recall.retrieval import Recall, retrieve
from recall.scope import recall_scope
from tests.embeddings.test_connections import Connect, admin, connect
from tests.factories import MemoryFactory
from tests.fakes.server import FakeServer, Rows, gives_vectors, holds
from tests.threads import in_thread

__all__ = ["admin", "connect"]

pytestmark = pytest.mark.django_db(transaction=True)

type ChangeTo = Callable[[FakeServer], None]


def backwards(rows: Rows) -> Rows:
    """The vectors of another model: as good among themselves, and meaningless beside the first one's."""
    return [row | {"embedding": row["embedding"][::-1]} for row in rows]


@pytest.fixture
def other() -> Iterator[FakeServer]:
    """A second server. It gives the same model name and the same width, and other vectors."""
    with FakeServer(gives_vectors(change=backwards)) as fake:
        yield fake


@pytest.fixture(params=["own", "connected"])
def change_to(
    request: pytest.FixtureRequest, connect: Connect, server: FakeServer, other: FakeServer
) -> ChangeTo:
    """Have a server serve from now on: one's own, or one at which an account is connected."""
    provider = "endpoint"
    if request.param == "connected":
        provider = "compatible"
        connect(0, base_url=server.base)
        connect(1, base_url=other.base)

    def change(chosen: FakeServer) -> None:
        config = EmbeddingConfig(provider, "m", chosen.base)
        ConfigSection.objects.update_or_create(name=SECTION, defaults={"document": config.to_document()})
        reconcile(anew=True)

    return change


def recall(account: Account, query: str) -> Recall:
    return retrieve(account=account, query=query, scope=recall_scope(account))


def first(found: Recall) -> tuple[str, str]:
    return found.path, found.memories[0].memory.body


def asked(server: FakeServer) -> list[str]:
    return [text for request in server.requests for text in request.texts]


def spaces_of(memory: Memory) -> int:
    return MemoryEmbedding.objects.filter(memory=memory).values("space").count()


def test_there_and_back_costs_only_what_was_written_between(
    ada: Account, server: FakeServer, other: FakeServer, change_to: ChangeTo
) -> None:
    tea = MemoryFactory.create(owner=ada, body="green tea at noon")
    MemoryFactory.create(owner=ada, body="a loud train to town")
    change_to(server)
    drain()
    change_to(other)
    drain()
    MemoryFactory.create(owner=ada, body="written between")
    drain()
    under_b = first(recall(ada, "green tea"))

    change_to(server)
    drain()

    assert under_b == first(recall(ada, "green tea")) == ("semantic", "green tea at noon")
    assert spaces_of(tea) == EmbeddingSpace.objects.count() == 2
    texts = ["green tea at noon", "a loud train to town"]
    assert sorted(asked(server)) == sorted([*texts, "written between", "green tea"])
    assert sorted(asked(other)) == sorted([*texts, "written between", "green tea"])


def test_before_anything_is_embedded_anew_no_vector_of_the_old_server_is_compared(
    ada: Account, server: FakeServer, other: FakeServer, change_to: ChangeTo
) -> None:
    MemoryFactory.create(owner=ada, body="green tea at noon")
    change_to(server)
    drain()

    change_to(other)

    by_words = recall(ada, "noon green tea")
    assert first(by_words) == ("keyword", "green tea at noon")
    assert [one.similarity for one in by_words.memories] == [None]
    assert recall(ada, "a loud train").memories == []
    drain()
    assert first(recall(ada, "noon green tea")) == ("semantic", "green tea at noon")


def test_a_question_on_its_way_during_the_change_is_compared_where_it_was_asked(
    ada: Account, server: FakeServer, other: FakeServer, change_to: ChangeTo
) -> None:
    MemoryFactory.create(owner=ada, body="green tea at noon")
    MemoryFactory.create(owner=ada, body="a loud train to town")
    change_to(server)
    drain()
    release, found = Event(), list[Recall | Exception]()
    server.then(holds(release))

    def ask() -> None:
        try:
            found.append(recall(ada, "noon tea"))
        except Exception as error:
            found.append(error)

    asking = in_thread(ask)
    server.wait_for_requests(2)
    change_to(other)
    drain()
    release.set()
    asking.join(10)

    assert isinstance(found[0], Recall)
    assert first(found[0]) == ("semantic", "green tea at noon")
    similarity = found[0].memories[0].similarity
    assert similarity == pytest.approx(first_similarity_under(server, ada, change_to), abs=1e-3)


def first_similarity_under(server: FakeServer, account: Account, change_to: ChangeTo) -> float | None:
    change_to(server)
    return recall(account, "noon tea").memories[0].similarity


def test_a_late_answer_of_the_old_server_is_stored_nowhere(
    ada: Account, server: FakeServer, other: FakeServer, change_to: ChangeTo
) -> None:
    memory = MemoryFactory.create(owner=ada, body="green tea at noon")
    change_to(server)
    release = Event()
    server.then(holds(release))
    working = in_thread(drain)
    server.wait_for_requests(1)

    change_to(other)
    release.set()
    working.join(10)  # it goes on with the new one

    row = MemoryEmbedding.objects.get(memory=memory)
    assert row.space == EmbeddingSpace.objects.row_of(active_space())
    assert (asked(server), asked(other)) == (["green tea at noon"], ["green tea at noon"])
