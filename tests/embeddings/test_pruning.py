"""E14: vectors of a model that was in use once are deleted on request, with an entry in the log."""

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from elowen.lib.errors import Conflict, NotFound, Refused
from embeddings.actions.pruning import prune_space
from embeddings.actions.reindexing import reconcile
from embeddings.config import active_space
from embeddings.corpora import register
from embeddings.models import CorpusVector, EmbeddingSpace, MemoryEmbedding
from embeddings.queue import drain
from memories.models import Account
from tests.embeddings.conftest import Use
from tests.embeddings.queues import remember
from tests.fakes.server import FakeServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def spaces(ada: Account, server: FakeServer, use: Use) -> tuple[EmbeddingSpace, EmbeddingSpace]:
    """One that was in use, and the one in use; both with a vector of a memory and one of a text."""
    remember(ada, "tea")
    register("help", lambda: ["one"])
    rows = []
    for model in ("old", "new"):
        use(server, model=model)
        rows.append(EmbeddingSpace.objects.row_of(active_space()))
        index_everything()
    return rows[0], rows[1]


def index_everything() -> None:
    reconcile(anew=True)  # which a change of the settings asks for
    drain()


def left(space: EmbeddingSpace) -> tuple[int, int]:
    return (
        MemoryEmbedding.objects.filter(space=space).count(),
        CorpusVector.objects.filter(space=space).count(),
    )


def test_only_the_vectors_of_that_space_go_and_the_log_says_so(
    admin_user: Account, spaces: tuple[EmbeddingSpace, EmbeddingSpace]
) -> None:
    old, new = spaces
    assert (left(old), left(new)) == ((1, 1), (1, 1))

    assert prune_space(space_id=old.pk, by=admin_user) == 2

    assert (left(old), left(new)) == ((0, 0), (1, 1))
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id, entry.change_message) == (
        admin_user, str(old.pk), "Deleted 2 vectors",
    )  # fmt: skip


def test_a_change_back_embeds_all_of_it_again(
    admin_user: Account, server: FakeServer, use: Use, spaces: tuple[EmbeddingSpace, EmbeddingSpace]
) -> None:
    prune_space(space_id=spaces[0].pk, by=admin_user)

    use(server, model="old")
    index_everything()

    assert left(spaces[0]) == (1, 1)


def test_texts_count_as_complete_no_longer(
    admin_user: Account, server: FakeServer, use: Use, spaces: tuple[EmbeddingSpace, EmbeddingSpace]
) -> None:
    """There and back before the next model has begun with them: the note is still that of the first."""
    use(server, model="next")
    prune_space(space_id=spaces[1].pk, by=admin_user)

    use(server, model="new")
    index_everything()

    assert left(spaces[1]) == (1, 1)


def test_the_space_in_use_stays(admin_user: Account, spaces: tuple[EmbeddingSpace, EmbeddingSpace]) -> None:
    with pytest.raises(Conflict):
        prune_space(space_id=spaces[1].pk, by=admin_user)

    assert left(spaces[1]) == (1, 1)
    assert not LogEntry.objects.exists()


def test_only_an_administrator_may(
    ada: Account, admin_user: Account, spaces: tuple[EmbeddingSpace, EmbeddingSpace]
) -> None:
    with pytest.raises(Refused):
        prune_space(space_id=spaces[0].pk, by=ada)
    with pytest.raises(NotFound):
        prune_space(space_id=0, by=admin_user)

    assert left(spaces[0]) == (1, 1)


def test_the_administration_tells_what_it_did_and_what_it_left(
    admin_client: Client, spaces: tuple[EmbeddingSpace, EmbeddingSpace]
) -> None:
    answer = admin_client.post(
        "/admin/embeddings/embeddingspace/",
        {"action": "prune", "_selected_action": [one.pk for one in spaces]},
        follow=True,
    )

    said = sorted(str(message) for message in answer.context["messages"])
    assert "in use" in said[0]
    assert "deleted 2 vectors" in said[1]
