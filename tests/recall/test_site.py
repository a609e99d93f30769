"""`GET /api/search`: the way to a page or a section of the help, by meaning where that is possible."""

from functools import partial
from typing import Any

import pytest
from rest_framework.test import APIClient

from embeddings import corpora
from embeddings.models import CorpusVector
from embeddings.queue import drain
from memories.models import Account
from recall.site import HELP, KINDS, PAGE, documents, find, items
from tests.conftest import Api
from tests.embeddings.conftest import Use
from tests.fakes.server import FakeServer, resets
from tests.problems import problem

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "/api/search"
# What somebody would type who does not know our words, and what should be among the first three.
QUESTIONS = [
    ("make a memory stay forever", "retention"),
    ("what will be deleted next", "retention#what-leaves-soon"),
    ("which language model understands German", "embeddings#the-bundled-models"),
    ("use my own llama.cpp instance", "embeddings#a-server-of-your-own"),
    ("put it behind nginx with https", "operations#behind-a-proxy"),
    ("how are results sorted", "recall"),
    ("curl example to store something", "help/api"),
    ("where can I see everything that is stored about me", "/memories"),
    ("switch to another model", "embeddings#changing-the-model"),
    ("address already in use", "operations#environment"),
]


@pytest.fixture
def help_texts() -> None:
    for kind in KINDS:
        corpora.register(kind, partial(documents, kind))


@pytest.fixture
def indexed(help_texts: None) -> None:
    """Have the bundled model index the real help."""
    drain()
    assert CorpusVector.objects.count() == len({item.document for item in items()})


def test_people_find_the_way_in_their_own_words(indexed: None, ada: Account) -> None:
    missed = {}
    for question, wanted in QUESTIONS:
        found, path = find(ada, question, limit=3)
        assert path == "semantic"
        urls = [one.item.url for one in found]
        if not any(wanted in url for url in urls):
            missed[question] = urls

    assert missed == {}


def test_a_row_says_what_it_is_and_where(indexed: None, ada: Account, api: Api) -> None:
    reply = api(ada, ("read",)).get(PATH, {"q": "leaving soon"})

    assert (reply.status_code, reply["X-Elowen-Recall"]) == (200, "semantic")
    first = reply.json()["results"][0]
    assert first.pop("score") > 0.5
    assert first == {
        "kind": PAGE,
        "title": "Leaving soon",
        "excerpt": "Which memories fade away next, on which day, and how to keep them.",
        "url": "/forecast",
    }


def test_pages_of_administrators_are_found_by_them_alone(indexed: None, ada: Account, api: Api) -> None:
    def urls() -> set[str]:
        found = api(ada).get(PATH, {"q": "retention settings of the administration", "limit": "50"})
        return {row["url"] for row in found.json()["results"]}

    members = urls()
    Account.objects.update(is_staff=True)

    assert not any(url.startswith(("/admin", "/settings")) for url in members)
    assert {"/settings/retention", "/admin/"} <= urls() - members


def test_without_a_model_words_find_the_way(ada: Account, server: FakeServer, use: Use, api: Api) -> None:
    use(server)
    server.always(resets())

    reply = api(ada).get(PATH, {"q": "leaving soon"})

    assert reply["X-Elowen-Recall"] == "keyword"
    assert reply.json()["results"][0]["url"] == "/forecast"


@pytest.mark.usefixtures("help_texts")
def test_before_the_help_is_indexed_words_find_the_way(ada: Account) -> None:
    found, path = find(ada, "leaving soon", limit=5)

    assert (path, found[0].item.url) == ("keyword", "/forecast")


@pytest.mark.parametrize("query", ["qwertzuiop", "!?", "%", "(", "\\", "漢字", "a" * 2_000])
def test_what_is_nowhere_is_not_found(ada: Account, query: str) -> None:
    assert find(ada, query, limit=5)[0] == []


@pytest.mark.parametrize("query", ["", "   "])
def test_an_empty_query_finds_nothing(ada: Account, api: Api, query: str) -> None:
    reply = api(ada).get(PATH, {"q": query})

    assert (reply.json(), reply["X-Elowen-Recall"]) == ({"results": []}, "empty")


@pytest.mark.parametrize(
    "query", [{}, {"q": "x", "limit": 0}, {"q": "x", "limit": 51}, {"q": "x" * 2_001}, {"q": "x", "p": 1}]
)
def test_bad_parameters_are_refused(ada: Account, api: Api, query: dict[str, Any]) -> None:
    problem(api(ada).get(PATH, query), 400)


def test_strangers_find_nothing() -> None:
    problem(APIClient().get(PATH, {"q": "x"}), 401)


def test_every_document_is_there_once_and_no_decision_among_them() -> None:
    found = [(item.kind, item.document) for item in items()]

    assert len(found) == len(set(found))
    assert {kind for kind, _ in found} == {PAGE, HELP}
    assert not any("/adr/" in item.url for item in items())


def test_the_page_of_the_help_shows_what_is_found(ada: Account, client: APIClient) -> None:
    client.force_login(ada)

    found = client.get("/help", {"q": "leaving soon"}).content.decode()
    nothing = client.get("/help", {"q": "qwertzuiop"}).content.decode()
    hostile = client.get("/help", {"q": '"><script>alert(1)</script>\x00'}).content.decode()

    assert "/forecast" in found
    assert "Nothing here is about this" in nothing
    assert "<script>alert" not in hostile
