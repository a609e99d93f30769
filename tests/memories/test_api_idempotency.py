"""R20 beyond the plain case: every path that creates, the end of the 24 hours, and bad keys."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from elowen.lib.hashing import text_hash
from memories.actions.purging import purge_memory
from memories.models import Account, ApiKey, Category, IdempotentReply, Memory, Project
from tests.conftest import Api
from tests.factories import CategoryFactory, MemoryFactory
from tests.problems import problem

pytestmark = pytest.mark.django_db

CREATING: list[tuple[str, dict[str, Any]]] = [
    ("/api/memory", {"body": "once"}),
    ("/api/memory/batch", {"memories": [{"body": "a"}, {"body": "b"}]}),
    ("/api/memory/categories", {"name": "once"}),
    ("/api/projects", {"slug": "once", "name": "Once"}),
]


def counts() -> list[int]:
    return [kind.objects.count() for kind in (Memory, Project)] + [
        Category.objects.exclude(name="General").count()
    ]


@pytest.mark.parametrize(("path", "body"), CREATING)
def test_what_creates_does_so_once(api: Api, ada: Account, path: str, body: dict[str, Any]) -> None:
    client = api(ada)
    first = client.post(path, body, format="json", HTTP_IDEMPOTENCY_KEY="k")
    after_first = counts()

    again = client.post(path, body, format="json", HTTP_IDEMPOTENCY_KEY="k")

    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert counts() == after_first


def test_an_account_is_made_once_and_its_password_is_not_to_be_guessed(api: Api, ada: Account) -> None:
    Account.objects.update(is_staff=True)
    body = {"username": "dora", "password": "correct horse battery"}

    answers = [
        api(ada).post("/api/accounts", body, format="json", HTTP_IDEMPOTENCY_KEY="k") for _ in range(2)
    ]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    plain = text_hash("POST /api/accounts\n" + json.dumps(body, sort_keys=True))
    assert bytes(IdempotentReply.objects.get().request_hash) != plain


@pytest.mark.parametrize("path", ["/api/keys", "/api/accounts/{}/keys"])
def test_a_key_is_made_once_and_its_secret_never_kept(api: Api, ada: Account, path: str) -> None:
    Account.objects.update(is_staff=True)
    client, path = api(ada), path.format(ada.pk)

    first = client.post(path, {"name": "laptop"}, format="json", HTTP_IDEMPOTENCY_KEY="k")
    again = client.post(path, {"name": "laptop"}, format="json", HTTP_IDEMPOTENCY_KEY="k")

    assert first.status_code == 201
    assert problem(again, status=409)["code"] == "secret_shown"
    assert ApiKey.objects.filter(name="laptop").count() == 1
    assert IdempotentReply.objects.get().reply is None


def test_a_merge_is_answered_alike_though_its_sources_are_gone(api: Api, ada: Account) -> None:
    category = CategoryFactory.create(owner=ada)
    ids = [MemoryFactory.create(owner=ada, category=category).pk for _ in range(2)]
    client, body = api(ada), {"ids": ids, "body": "both"}

    answers = [
        client.post("/api/memory/merge", body, format="json", HTTP_IDEMPOTENCY_KEY="k") for _ in range(2)
    ]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()


def test_after_a_day_the_key_is_free(api: Api, ada: Account) -> None:
    client = api(ada)
    client.post("/api/memory", {"body": "yesterday"}, format="json", HTTP_IDEMPOTENCY_KEY="k")
    IdempotentReply.objects.update(created_at=timezone.now() - timedelta(hours=24, seconds=1))

    today = client.post("/api/memory", {"body": "today"}, format="json", HTTP_IDEMPOTENCY_KEY="k")

    assert (today.status_code, today.json()["body"]) == (201, "today")
    assert IdempotentReply.objects.count() == 1


def test_a_key_does_not_pass_for_another_path(api: Api, ada: Account) -> None:
    client = api(ada)
    client.post("/api/memory/categories", {"name": "x"}, format="json", HTTP_IDEMPOTENCY_KEY="k")

    other = client.post("/api/memory", {"name": "x"}, format="json", HTTP_IDEMPOTENCY_KEY="k")

    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


@pytest.mark.parametrize("key", ["", "k" * 256, "tab\tkey"])
def test_a_bad_key_is_named(api: Api, ada: Account, key: str) -> None:
    answer = api(ada).post("/api/memory", {"body": "x"}, format="json", HTTP_IDEMPOTENCY_KEY=key)

    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == ["Idempotency-Key"]
    assert not Memory.objects.exists()


@pytest.mark.parametrize("batch", [False, True])
def test_a_purge_takes_the_body_out_of_the_remembered_reply(api: Api, ada: Account, batch: bool) -> None:
    client, one = api(ada), {"body": "to be forgotten"}
    path, body = ("/api/memory/batch", {"memories": [one]}) if batch else ("/api/memory", one)
    kept = client.post("/api/memory", {"body": "kept"}, format="json", HTTP_IDEMPOTENCY_KEY="other")
    client.post(path, body, format="json", HTTP_IDEMPOTENCY_KEY="k")

    purge_memory(memory_id=Memory.objects.get(body="to be forgotten").pk, by=ada)

    with connection.cursor() as cursor:
        cursor.execute("select count(*) from memories_idempotentreply where reply::text like '%forgotten%'")
        assert cursor.fetchone() == (0,)
    again = problem(client.post(path, body, format="json", HTTP_IDEMPOTENCY_KEY="k"), 409)
    assert again["code"] == "purged"
    assert Memory.objects.count() == 1
    repeated = client.post("/api/memory", {"body": "kept"}, format="json", HTTP_IDEMPOTENCY_KEY="other")
    assert repeated.json() == kept.json()
