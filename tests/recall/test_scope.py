"""Where a recall looks, and where it must not."""

from typing import Any

import pytest

from elowen.lib.errors import NotFound, Refused
from embeddings.models import EmbeddingSpace, MemoryEmbedding
from memories.models import Account, Memory, ProjectMember
from recall.retrieval import Recall, retrieve
from recall.scope import RecallScope, recall_scope
from tests.factories import CategoryFactory, ProjectFactory, ProjectMemberFactory
from tests.fakes.server import FakeServer, refuses
from tests.recall.conftest import Asks
from tests.recall.stores import remembers

pytestmark = pytest.mark.django_db


def recall(account: Account, query: str = "tea", **limits: Any) -> Recall:
    return retrieve(account=account, query=query, scope=recall_scope(account), **limits)


def ids(found: Recall) -> list[int]:
    return [one.memory.pk for one in found.memories]


def test_memories_of_others_never_appear(
    ada: Account, cleo: Account, server: FakeServer, space: EmbeddingSpace, question: Asks
) -> None:
    remembers(space, 1, 0, owner=ada, body="tea")
    scope = recall_scope(ada)  # a scope authorises nothing by itself
    question(1, 0)

    assert retrieve(account=cleo, query="tea", scope=scope) == Recall([], "empty")
    server.always(refuses(500))
    assert retrieve(account=cleo, query="tea", scope=scope) == Recall([], "empty", degraded=True)


def test_uncategorised_memories_are_in_no_scope(ada: Account, space: EmbeddingSpace, question: Asks) -> None:
    CategoryFactory.create(owner=ada)
    remembers(space, 1, 0, owner=ada, category=None, body="tea")
    question(1, 0)

    assert recall(ada, "tea").path == "empty"


def test_where_a_memory_is_now_decides_and_not_the_copy_beside_its_vector(
    ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    inside = CategoryFactory.create(owner=ada)
    project = ProjectFactory.create()
    ProjectMemberFactory.create(project=project, account=ada)
    outside = CategoryFactory.create(owner=ada, project=project)
    memory = remembers(space, 1, 0, owner=ada, category=outside, body="tea")
    MemoryEmbedding.objects.filter(memory=memory).update(category_id=inside.pk)
    question(1, 0)

    assert recall(ada, "tea").memories == []


def test_an_empty_scope_finds_nothing(ada: Account, space: EmbeddingSpace, question: Asks) -> None:
    remembers(space, 1, 0, owner=ada, body="tea")
    question(1, 0)

    assert retrieve(account=ada, query="tea", scope=RecallScope()).path == "empty"


@pytest.mark.parametrize("status", ["archived", "deleted"])
def test_what_is_not_active_is_not_recalled(
    ada: Account, space: EmbeddingSpace, question: Asks, status: str
) -> None:
    memory = remembers(space, 1, 0, owner=ada, body="tea")
    Memory.objects.filter(pk=memory.pk).update(status=status)
    question(1, 0)

    assert recall(ada, "tea").path == "empty"


def test_a_scope_holds_global_categories_and_those_of_the_project(ada: Account, ben: Account) -> None:
    project, other = ProjectFactory.create(memory_shared=True), ProjectFactory.create(memory_shared=True)
    for place in (project, other):
        ProjectMemberFactory.create(project=place, account=ada)
    own, of_project = CategoryFactory.create(owner=ada), CategoryFactory.create(owner=ada, project=project)
    pool = CategoryFactory.create(owner=None, project=project)
    CategoryFactory.create(owner=ada, project=other)
    CategoryFactory.create(owner=None, project=other)
    CategoryFactory.create(owner=ben)

    assert recall_scope(ada).category_ids == (own.pk,)
    assert recall_scope(ada, project.pk).category_ids == (own.pk, of_project.pk, pool.pk)


def test_a_project_that_is_unknown_or_not_the_accounts_is_refused_and_not_ignored(cleo: Account) -> None:
    project = ProjectFactory.create()

    with pytest.raises((NotFound, Refused)):
        recall_scope(cleo, project.pk)
    with pytest.raises(NotFound):
        recall_scope(cleo, 999_999)


def test_a_revoked_pool_is_gone_in_the_next_call_even_with_an_old_scope(
    ada: Account, ben: Account, server: FakeServer, space: EmbeddingSpace, question: Asks
) -> None:
    project = ProjectFactory.create(memory_shared=True)
    for account in (ada, ben):
        ProjectMemberFactory.create(project=project, account=account)
    pool = CategoryFactory.create(owner=None, project=project)
    memory = remembers(space, 1, 0, owner=ben, category=pool, body="tea")
    question(1, 0)
    scope = recall_scope(ada, project.pk)
    before = retrieve(account=ada, query="tea", scope=scope)

    ProjectMember.objects.filter(project=project, account=ada).delete()

    assert ids(before) == [memory.pk]
    assert retrieve(account=ada, query="tea", scope=scope).path == "empty"
    server.always(refuses(500))
    assert retrieve(account=ada, query="tea", scope=scope).path == "empty"
