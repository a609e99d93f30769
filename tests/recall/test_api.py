"""Recall over REST: shapes, headers, refusals, the list with `q`, and near-duplicates."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from elowen.lib.hashing import text_hash_hex
from embeddings.models import EmbeddingSpace
from memories.models import Account, Memory
from tests.conftest import Api
from tests.factories import CategoryFactory, MemoryFactory, ProjectFactory, ProjectMemberFactory
from tests.fakes.server import FakeServer, refuses
from tests.recall.conftest import Asks, SetLimits
from tests.recall.stores import remembers

pytestmark = pytest.mark.django_db

RETRIEVE, SIMILAR, LIST = "/api/memory/retrieve", "/api/memory/similar", "/api/memory"
HASH = "ab" * 32


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


def retrieve(client: APIClient, **asked: Any) -> Any:
    return client.post(RETRIEVE, {"query": "tea"} | asked, format="json")


def test_a_row_says_what_it_is_and_why_it_came(
    api: Api, ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    memory = remembers(space, 1, 0, owner=ada, body="Ada drinks tea.", kind="preference", importance=7)
    question(1, 0)

    reply = retrieve(api(ada, ("read",)))

    assert (reply.status_code, reply["X-Elowen-Recall"]) == (200, "semantic")
    assert "X-Elowen-Degraded" not in reply
    (row,) = reply.json()["memories"]
    assert row.pop("created_at").startswith("20")
    assert row.pop("updated_at").startswith("20")
    assert row.pop("score") == pytest.approx(0.8 + 0.1 * 6 / 9 + 0.1 * 0.5, abs=1e-3)
    assert row.pop("similarity") == pytest.approx(1)
    assert row == {
        "id": memory.pk,
        "owner_id": ada.pk,
        "category_id": memory.category_id,
        "body": "Ada drinks tea.",
        "kind": "preference",
        "importance": 7,
        "body_sha256": text_hash_hex("Ada drinks tea."),
    }


def test_count_bytes_and_exclusions_come_from_the_request(
    api: Api, ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    vectors = [(1, 0, 0, 0), (1, 2, 0, 0), (1, 0, 2, 0), (1, 0, 0, 2)]
    first, second, third, _ = [
        remembers(space, *vector, owner=ada, body=f"{n:010}", importance=10 - n)
        for n, vector in enumerate(vectors)
    ]
    question(1, 0, 0, 0)
    client = api(ada)
    delivered = [{"id": first.pk, "bodySha256": text_hash_hex(first.body)}]

    assert ids(retrieve(client, count=2).json()["memories"]) == [first.pk, second.pk]
    assert ids(retrieve(client, byteBudget=29).json()["memories"]) == [first.pk, second.pk]
    found = retrieve(client, count=2, exclude=delivered).json()["memories"]
    assert ids(found) == [second.pk, third.pk]


def test_headers_tell_a_failed_model(
    api: Api, ada: Account, server: FakeServer, space: EmbeddingSpace
) -> None:
    memory = MemoryFactory.create(owner=ada, body="tea")
    server.always(refuses(503))

    reply = retrieve(api(ada))

    assert (reply["X-Elowen-Recall"], reply["X-Elowen-Degraded"]) == ("recency", "true")
    assert ids(reply.json()["memories"]) == [memory.pk]
    assert reply.json()["memories"][0]["similarity"] is None


def test_a_blank_question_is_empty(api: Api, ada: Account, server: FakeServer, space: EmbeddingSpace) -> None:
    MemoryFactory.create(owner=ada)

    reply = retrieve(api(ada), query="  ")

    assert (reply.json(), reply["X-Elowen-Recall"], server.requests) == ({"memories": []}, "empty", [])


def test_the_project_brings_its_pool(
    api: Api, ada: Account, ben: Account, cleo: Account, space: EmbeddingSpace, question: Asks
) -> None:
    project = ProjectFactory.create(memory_shared=True)
    for account in (ada, ben):
        ProjectMemberFactory.create(project=project, account=account)
    CategoryFactory.create(owner=ada)
    pool = CategoryFactory.create(owner=None, project=project)
    memory = remembers(space, 1, 0, owner=ben, category=pool)
    question(1, 0)

    assert ids(retrieve(api(ada), projectId=project.pk).json()["memories"]) == [memory.pk]
    assert retrieve(api(ada)).json()["memories"] == []
    assert retrieve(api(cleo), projectId=project.pk).status_code in (403, 404)
    assert retrieve(api(ada), projectId=999_999).status_code == 404


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"query": None}, "query"),
        ({"query": 5}, "query"),
        ({"query": "a\x00b"}, "query"),
        ({"count": 0}, "count"),
        ({"count": 51}, "count"),
        ({"count": "5"}, "count"),
        ({"count": True}, "count"),
        ({"byteBudget": 0}, "byteBudget"),
        ({"byteBudget": 100_001}, "byteBudget"),
        ({"projectId": 0}, "projectId"),
        ({"projectId": 2**63}, "projectId"),
        ({"exclude": 5}, "exclude"),
        ({"exclude": [5]}, "exclude"),
        ({"exclude": [{"id": 1, "bodySha256": "short"}]}, "exclude"),
        ({"exclude": [{"id": 1, "bodySha256": "z" * 64}]}, "exclude"),
        ({"exclude": [{"bodySha256": HASH}]}, "exclude"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_bad_input_is_named(api: Api, ada: Account, asked: dict[str, Any], field: str) -> None:
    reply = retrieve(api(ada), **asked)

    assert reply.status_code == 400, reply.content
    assert any(name.startswith(field) for name in reply.json()["errors"])


def test_a_lone_surrogate_is_no_question(api: Api, ada: Account) -> None:
    reply = api(ada).post(RETRIEVE, b'{"query": "\\ud800"}', content_type="application/json")

    assert reply.status_code == 400


def test_a_stranger_and_a_key_that_only_writes_are_refused(api: Api, ada: Account) -> None:
    for path in (RETRIEVE, SIMILAR):
        assert APIClient().post(path, {"query": "tea"}, format="json").status_code == 401
        assert api(ada, ("write",)).post(path, {"query": "tea"}, format="json").status_code == 403


# --- Near-duplicates ---


def test_similar_finds_own_near_duplicates_nearest_first(
    api: Api, ada: Account, ben: Account, space: EmbeddingSpace, question: Asks
) -> None:
    near = remembers(space, 9, 3, owner=ada, body="Ada drinks green tea.")
    same = remembers(space, 1, 0, owner=ada, body="Ada drinks tea.", category=None)
    remembers(space, 1, 1, owner=ada)
    remembers(space, 1, 0, owner=ben)
    remembers(space, 1, 0, owner=ada, status="archived")
    question(1, 0)

    reply = api(ada).post(SIMILAR, {"body": "tea"}, format="json")

    assert ids(reply.json()["memories"]) == [same.pk, near.pk]
    assert [row["similarity"] for row in reply.json()["memories"]] == pytest.approx([1, 0.9487], abs=1e-3)


def test_similar_shows_at_most_five(api: Api, ada: Account, space: EmbeddingSpace, question: Asks) -> None:
    for _ in range(7):
        remembers(space, 1, 0, owner=ada)
    question(1, 0)

    assert len(api(ada).post(SIMILAR, {"body": "tea"}, format="json").json()["memories"]) == 5


def test_similar_says_nothing_when_the_model_fails(
    api: Api, ada: Account, server: FakeServer, space: EmbeddingSpace
) -> None:
    remembers(space, 1, 0, owner=ada, body="tea")
    server.always(refuses(500))

    reply = api(ada).post(SIMILAR, {"body": "tea"}, format="json")

    assert (reply.status_code, reply.json()) == (200, {"memories": []})


def test_the_bar_for_duplicates_can_be_set(
    api: Api, ada: Account, space: EmbeddingSpace, question: Asks, set_limits: SetLimits
) -> None:
    memory = remembers(space, 1, 1, owner=ada)
    question(1, 0)
    set_limits(memoryDuplicatePerMille=700)

    assert ids(api(ada).post(SIMILAR, {"body": "x"}, format="json").json()["memories"]) == [memory.pk]


# --- The list with `q` ---


def listed(client: APIClient, **query: Any) -> Any:
    return client.get(LIST, query)


def test_a_search_orders_by_nearness_within_the_filters(
    api: Api, ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    far = remembers(space, 1, 1, owner=ada, category=None)
    near = remembers(space, 1, 0, owner=ada, kind="preference")
    remembers(space, -1, 0, owner=ada)
    question(1, 0)

    reply = listed(api(ada), q="tea")

    assert (reply["X-Elowen-Recall"], ids(reply.json()["results"])) == ("semantic", [near.pk, far.pk])
    assert {"vitality", "evictable_at", "body"} <= set(reply.json()["results"][0])
    assert ids(listed(api(ada), q="tea", kind="preference").json()["results"]) == [near.pk]
    assert ids(listed(api(ada), q="tea", limit=1).json()["results"]) == [near.pk]


def test_a_search_sees_every_usable_pool_and_nobody_elses(
    api: Api, ada: Account, ben: Account, cleo: Account, space: EmbeddingSpace, question: Asks
) -> None:
    project = ProjectFactory.create(memory_shared=True)
    for account in (ada, ben):
        ProjectMemberFactory.create(project=project, account=account)
    shared = remembers(space, 1, 0, owner=ben, category=CategoryFactory.create(owner=None, project=project))
    remembers(space, 1, 0, owner=ben)
    question(1, 0)

    assert ids(listed(api(ada), q="tea").json()["results"]) == [shared.pk]
    assert listed(api(cleo), q="tea").json()["results"] == []


@pytest.mark.parametrize("fails", [False, True])
def test_a_search_falls_back_to_words(
    api: Api, ada: Account, server: FakeServer, space: EmbeddingSpace, question: Asks, fails: bool
) -> None:
    match = remembers(space, 0, 1, owner=ada, body="Ada drinks TEA.")
    remembers(space, 0, 1, owner=ada, body="Ada reads.")
    if fails:
        server.always(refuses(500))
    else:
        question(1, 0)

    reply = listed(api(ada), q="tea")

    assert (reply["X-Elowen-Recall"], ids(reply.json()["results"])) == ("keyword", [match.pk])


def test_a_search_finds_archived_memories_by_their_words(
    api: Api, ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    memory = MemoryFactory.create(owner=ada, body="Ada drinks tea.", status="archived")
    question(1, 0)

    assert ids(listed(api(ada), q="tea", status="archived").json()["results"]) == [memory.pk]
    assert listed(api(ada), q="tea").json()["results"] == []


def test_a_search_has_no_cursor_and_is_no_use(
    api: Api, ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    remembers(space, 1, 0, owner=ada)
    question(1, 0)
    before = list(Memory.objects.values())

    assert listed(api(ada), q="tea", cursor="abc").status_code == 400
    assert len(listed(api(ada), q="tea").json()["results"]) == 1
    assert list(Memory.objects.values()) == before
