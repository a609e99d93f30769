"""S12: what an explanation tells is what a recall does."""

from typing import Any

import pytest

from elowen.lib.hashing import text_hash_hex
from embeddings.models import EmbeddingSpace
from memories.models import Account, Memory, MemoryUse
from recall.explaining import REASONS, explain
from recall.retrieval import Version, retrieve
from recall.scope import RecallScope, recall_scope
from tests.conftest import Api
from tests.factories import CategoryFactory, MemoryFactory, ProjectFactory, ProjectMemberFactory
from tests.fakes.server import FakeServer, refuses
from tests.problems import problem
from tests.recall.conftest import Asks, SetLimits
from tests.recall.stores import remembers

pytestmark = pytest.mark.django_db

EXPLAIN = "/api/memory/explain"


def fates(account: Account, query: str, **options: Any) -> dict[str, str]:
    told = explain(account=account, query=query, scope=recall_scope(account), **options)
    return {one.memory.body: one.fate for one in told.candidates}


@pytest.fixture
def by_meaning(set_limits: SetLimits) -> None:
    set_limits(memoryLexicalWeightPerMille=0)


@pytest.mark.usefixtures("by_meaning")
def test_each_fate_is_told(ada: Account, space: EmbeddingSpace, question: Asks) -> None:
    question(1, 0, 0)
    best = remembers(space, 1, 0, 0, owner=ada, body="best", importance=10)
    remembers(space, 1, 0.01, 0, owner=ada, body="best in other words", importance=9)
    remembers(space, 1, 0, 0.8, owner=ada, body="long " * 30, importance=9)
    remembers(space, 1, 0.8, 0, owner=ada, body="had it", importance=8)
    remembers(space, 1, 1.2, 0, owner=ada, body="second", importance=8)
    remembers(space, 1, 0.9, 0.5, owner=ada, body="best", importance=8)
    remembers(space, 1, 2, 0, owner=ada, body="last", importance=1)
    remembers(space, 0, 1, 0, owner=ada, body="apart")
    had_it = Version(Memory.objects.get(body="had it").pk)

    told = explain(
        account=ada, query="?", scope=recall_scope(ada), count=2, byte_budget=100, exclude=[had_it]
    )

    assert [(one.memory.body.strip()[:20], one.fate) for one in told.candidates] == [
        ("best", "picked"),
        ("best in other words", "paraphrase"),
        ("long long long long ", "does not fit"),
        ("had it", "delivered"),
        ("best", "same text"),
        ("second", "picked"),
        ("last", "after the last"),
        ("apart", "below the floor"),
    ]
    repeating = {one.fate: one.repeats for one in told.candidates if one.repeats}
    assert repeating["paraphrase"] == best.pk


@pytest.mark.parametrize("lexical", [0, 400, 1000])
@pytest.mark.parametrize("query", ["tea", "green tea in the pot", "zzz", "%"])
def test_what_is_picked_is_what_a_recall_gives(
    ada: Account, space: EmbeddingSpace, question: Asks, set_limits: SetLimits, query: str, lexical: int
) -> None:
    set_limits(memoryLexicalWeightPerMille=lexical)
    question(1, 0)
    for number in range(20):
        remembers(space, 1, number / 4 - 2, owner=ada, body=f"{'green ' * (number % 3)}tea {number % 7}")
    MemoryFactory.create(owner=ada, body="a pot")
    asked: dict[str, Any] = {"account": ada, "query": query, "scope": recall_scope(ada), "count": 5}

    told, given = explain(**asked), retrieve(**asked)

    assert told.path == given.path
    assert [one.memory.pk for one in told.picked] == [one.memory.pk for one in given.memories]
    scores = [one.score for one in given.memories]
    assert [one.score for one in told.picked] == pytest.approx(
        scores, abs=1e-6
    )  # time passed between the two
    ranked = [one.score for one in told.candidates if one.score is not None]
    assert ranked == sorted(ranked, reverse=True)
    assert len({one.memory.pk for one in told.candidates}) == len(told.candidates)


def test_each_path_has_its_reason(
    ada: Account, server: FakeServer, space: EmbeddingSpace, question: Asks
) -> None:
    def reason(query: str, **options: Any) -> tuple[str, str]:
        told = explain(account=ada, query=query, scope=recall_scope(ada), **options)
        return told.path, told.reason

    question(1, 0)
    tea = remembers(space, 1, 0, owner=ada, body="tea")
    MemoryFactory.create(owner=ada, body="bergamot is a fruit")

    assert reason("anything") == ("semantic", REASONS["semantic"])
    assert reason("fruit", exclude=[Version(tea.pk)]) == ("keyword", REASONS["words"])
    assert reason("anything", exclude=[Version(tea.pk)]) == ("empty", REASONS["passed over"])
    question(0, 1)
    assert reason("amot is") == ("keyword", REASONS["keyword"])
    assert reason("nothing") == ("empty", REASONS["nothing"])
    assert reason("  ") == ("empty", REASONS["no text"])
    server.always(refuses(503))
    assert reason("tea") == ("recency", REASONS["recency"])
    nowhere = explain(account=ada, query="tea", scope=RecallScope())
    assert (nowhere.path, nowhere.reason) == ("empty", REASONS["no scope"])


def test_words_are_told_with_their_rarity(ada: Account, space: EmbeddingSpace, question: Asks) -> None:
    question(1, 0)
    for number in range(4):
        MemoryFactory.create(owner=ada, body=f"tea {number}")
    MemoryFactory.create(owner=ada, body="bergamot")

    told = explain(account=ada, query="the teas, bergamot or lime?", scope=recall_scope(ada))

    assert [(one.lexeme, one.held) for one in told.words] == [("lime", 0), ("bergamot", 1), ("tea", 4)]
    assert told.words[0].weight > told.words[1].weight > told.words[2].weight > 0


def test_the_model_and_its_failure_are_named(ada: Account, server: FakeServer, space: EmbeddingSpace) -> None:
    MemoryFactory.create(owner=ada, body="tea")
    server.always(refuses(503))

    told = explain(account=ada, query="tea", scope=recall_scope(ada))

    assert (told.provider, told.model) == ("endpoint", space.model)
    assert told.failure


def test_nothing_counts_as_used(ada: Account, space: EmbeddingSpace, question: Asks) -> None:
    question(1, 0)
    memory = remembers(space, 1, 0, owner=ada, body="tea")

    explain(account=ada, query="tea", scope=recall_scope(ada))

    memory.refresh_from_db()
    assert (memory.use_count, memory.last_used_at, MemoryUse.objects.count()) == (0, None, 0)


def test_over_rest(api: Api, ada: Account, space: EmbeddingSpace, question: Asks) -> None:
    question(1, 0)
    memory = remembers(space, 1, 0, owner=ada, body="tea " * 200, importance=7)

    reply = api(ada, ("read",)).post(EXPLAIN, {"query": "tea"}, format="json").json()

    assert (reply["path"], reply["model"]) == ("semantic", space.model)
    assert reply["limits"] | {"count": 10, "lexical_weight": 0.4, "floor": 0.2} == reply["limits"]
    (row,) = reply["candidates"]
    assert (row["id"], row["fate"], row["importance"], row["words"]) == (memory.pk, "picked", 7, 1)
    assert (row["excerpt"], row["body_bytes"]) == (memory.body[:300], 800)
    assert row["cosine"] == pytest.approx(1)


def test_others_memories_are_told_to_nobody(
    api: Api, ada: Account, ben: Account, space: EmbeddingSpace, question: Asks
) -> None:
    question(1, 0)
    remembers(space, 1, 0, owner=ben, body="Ben's tea")
    project = ProjectFactory.create(memory_shared=True)
    ProjectMemberFactory.create(project=project, account=ben)
    pool = CategoryFactory.create(owner=None, project=project)
    remembers(space, 1, 0, owner=ben, body="the pool's tea", category=pool)
    CategoryFactory.create(owner=ada)

    assert fates(ada, "tea") == {}
    scope = RecallScope((pool.pk,))  # as if access had been revoked after it was resolved
    assert explain(account=ada, query="tea", scope=scope).candidates == []
    assert [one.held for one in explain(account=ada, query="tea", scope=scope).words] == [0]
    client = api(ada)
    problem(client.post(EXPLAIN, {"query": "tea", "projectId": project.pk}, format="json"), 403)
    wrong = {"query": "tea", "exclude": [{"id": 1, "bodySha256": text_hash_hex("tea")[:-1]}]}
    problem(client.post(EXPLAIN, wrong, format="json"), 400)
