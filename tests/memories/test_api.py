"""What the REST interface answers: shapes, keys and scopes, paging, idempotency."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from memories.actions.editing import add_memory
from memories.actions.keys import issue_key
from memories.models import Account, Memory, MemoryEvent
from tests.conftest import Api
from tests.factories import AccountFactory, CategoryFactory, MemoryFactory
from tests.problems import problem
from tests.threads import at_once

pytestmark = pytest.mark.django_db


def test_a_memory_is_stored_read_changed_and_deleted(api: Api, ada: Account) -> None:
    client = api(ada)

    created = client.post("/api/memory", {"body": "Ada drinks tea.", "importance": 7}, format="json")
    path = f"/api/memory/{created.json()['id']}"
    changed = client.patch(path, {"kind": "preference"}, format="json")
    deleted = client.delete(path)

    assert created.status_code == 201
    assert created.json()["vitality"] == pytest.approx(50, abs=0.01)
    assert created.json()["evictable_at"] is not None
    assert created.json()["source"] == "agent"
    assert (changed.status_code, changed.json()["kind"]) == (200, "preference")
    assert deleted.status_code == 204
    problem(client.get(path), 404)
    restored = client.post(f"{path}/restore", {"keep": True}, format="json")
    assert restored.json()["status"] == "active"
    assert restored.json()["last_used_at"] is not None


def test_without_a_key_nothing_is_told(ada: Account) -> None:
    client = APIClient()

    refused = client.get("/api/memory")

    problem(refused, 401)
    assert "Bearer" in refused["WWW-Authenticate"]


@pytest.mark.parametrize("header", ["Authorization", "X-API-Key"])
def test_both_headers_carry_a_key(ada: Account, header: str) -> None:
    secret = issue_key(account=ada, name="k").secret
    value = f"Bearer {secret}" if header == "Authorization" else secret

    assert APIClient().get("/api/me", headers={header: value}).status_code == 200
    problem(APIClient().get("/api/me", headers={header: value[:-2]}), 401)


def test_a_reading_key_cannot_write(api: Api, ada: Account) -> None:
    client = api(ada, scopes=("read",))

    assert client.get("/api/memory").status_code == 200
    assert client.post("/api/memory/retrieve", {"query": " "}, format="json").status_code == 200
    problem(client.post("/api/memory", {"body": "x"}, format="json"), 403)
    assert not Memory.objects.exists()


def test_a_session_needs_its_csrf_token(ada: Account) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)

    problem(client.post("/api/memory", {"body": "x"}, content_type="application/json"), 403)


@pytest.mark.parametrize(
    "ordering", ["updated_at", "-created_at", "last_used_at", "-importance", "vitality", "-vitality"]
)
def test_paging_shows_every_row_once_in_order_both_ways(api: Api, ada: Account, ordering: str) -> None:
    ids = {MemoryFactory.create(owner=ada, importance=1 + n % 3).pk for n in range(11)}
    client, seen, starts = api(ada), [], []

    url = f"/api/memory?limit=4&ordering={ordering}"
    while url:
        page = client.get(url).json()
        seen.append([row["id"] for row in page["results"]])
        starts.append(page["previous"])
        url = page["next"]

    assert [len(page) for page in seen] == [4, 4, 3]
    assert {pk for page in seen for pk in page} == ids
    back = client.get(starts[2]).json()
    assert [row["id"] for row in back["results"]] == seen[1]
    assert starts[0] is None


def test_the_list_keeps_to_its_filters_and_pins_its_queries(api: Api, ada: Account) -> None:
    drawer = CategoryFactory.create(owner=ada)
    inside = MemoryFactory.create(owner=ada, category=drawer, kind="preference", importance=9)
    MemoryFactory.create(owner=ada)
    loose = MemoryFactory.create(owner=ada, category=None)
    MemoryFactory.create(owner=ada, status="deleted")
    client = api(ada)
    client.get("/api/memory")

    def ids(query: str) -> list[int]:
        return [row["id"] for row in client.get(f"/api/memory?{query}").json()["results"]]

    assert ids(f"categoryId={drawer.pk}") == [inside.pk]
    assert ids("categoryId=null") == [loose.pk]
    assert ids("kind=preference&importanceMin=9") == [inside.pk]
    assert len(ids("status=all")) == 4
    with CaptureQueriesContext(connection) as queries:
        client.get("/api/memory")
    assert len(queries) == 4  # the key, its use, the policy, the rows


def test_the_same_key_and_body_store_one_row(api: Api, ada: Account) -> None:
    client = api(ada)
    first = client.post("/api/memory", {"body": "once"}, format="json", HTTP_IDEMPOTENCY_KEY="k1")

    again = client.post("/api/memory", {"body": "once"}, format="json", HTTP_IDEMPOTENCY_KEY="k1")

    assert (again.status_code, again.json()) == (201, first.json())
    assert Memory.objects.count() == 1
    problem(client.post("/api/memory", {"body": "other"}, format="json", HTTP_IDEMPOTENCY_KEY="k1"), 422)


def test_a_failed_request_leaves_its_key_free(api: Api, ada: Account) -> None:
    client = api(ada)

    problem(client.post("/api/memory", {"body": ""}, format="json", HTTP_IDEMPOTENCY_KEY="k1"), 400)

    assert (
        client.post("/api/memory", {"body": "x"}, format="json", HTTP_IDEMPOTENCY_KEY="k1").status_code == 201
    )


def test_keys_of_two_accounts_do_not_meet(api: Api, ada: Account, cleo: Account) -> None:
    for account in (ada, cleo):
        api(account).post("/api/memory", {"body": "x"}, format="json", HTTP_IDEMPOTENCY_KEY="k1")

    assert Memory.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_two_identical_requests_at_once_store_one_row(api: Api) -> None:
    ada = AccountFactory.create()

    def send(client: APIClient) -> Any:
        return client.post("/api/memory", {"body": "once"}, format="json", HTTP_IDEMPOTENCY_KEY="k").json()

    answers = at_once([partial(send, api(ada)) for _ in range(4)])

    assert all(answer == answers[0] for answer in answers)
    assert Memory.objects.count() == 1


def test_a_stale_etag_is_refused(api: Api, ada: Account) -> None:
    client = api(ada)
    memory = add_memory(by=ada, body="Tea.")
    path = f"/api/memory/{memory.pk}"
    tag = client.get(path)["ETag"]

    assert client.patch(path, {"importance": 6}, format="json", HTTP_IF_MATCH=tag).status_code == 200
    problem(client.patch(path, {"importance": 7}, format="json", HTTP_IF_MATCH=tag), 412)


def test_a_batch_is_stored_in_order_or_not_at_all(api: Api, ada: Account) -> None:
    client = api(ada)

    stored = client.post("/api/memory/batch", {"memories": [{"body": "a"}, {"body": "b"}]}, format="json")
    refused = client.post("/api/memory/batch", {"memories": [{"body": "c"}, {"body": ""}]}, format="json")

    assert [row["body"] for row in stored.json()["results"]] == ["a", "b"]
    problem(refused, 400, "memories")
    assert Memory.objects.count() == 2


def test_merge_answers_with_the_reason_it_refuses(api: Api, ada: Account) -> None:
    ids = [MemoryFactory.create(owner=ada).pk for _ in range(2)]

    refused = problem(
        api(ada).post("/api/memory/merge", {"ids": ids, "body": "x"}, format="json"), 409, "ids"
    )

    assert "different categories" in refused["detail"]


def test_purge_trash_and_events(api: Api, ada: Account) -> None:
    client = api(ada)
    memory = add_memory(by=ada, body="Tea.")
    client.delete(f"/api/memory/{memory.pk}")

    assert client.post("/api/memory/empty-trash", {}, format="json").json() == {"purged": 1}
    events = client.get(f"/api/memory/{memory.pk}/events").json()["results"]
    assert [event["action"] for event in events] == ["purge", "delete", "add"]
    assert client.get("/api/memory/events?limit=1").json()["next"] is not None


def test_settings_need_their_revision_and_an_administrator(api: Api, ada: Account) -> None:
    root = AccountFactory.create(is_staff=True)
    client, change = api(root), {"runtime": {"memoryRetention": {"vitalityFloor": 20}}}

    problem(api(ada).patch("/api/config", change | {"revision": 1}, format="json"), 403)
    problem(client.patch("/api/config", change, format="json"), 428)
    tag = client.get("/api/config")["ETag"]
    saved = client.patch("/api/config", change, format="json", HTTP_IF_MATCH=tag)
    assert saved.json()["runtime"]["memoryRetention"]["vitalityFloor"] == 20
    stale = problem(client.patch("/api/config", change, format="json", HTTP_IF_MATCH=tag), 409)
    assert stale["current"]["runtime"] == saved.json()["runtime"]


@pytest.mark.parametrize(
    "change",
    [
        {"vitalityFloor": 0},
        {"vitalityFloor": 91},
        {"dailyDeletionLimit": 2.5},
        {"dailyDeletionLimit": 0},
        {"halfLifeByImportance": {"1": 0}},
        {"halfLifeByImportance": {"11": 5}},
        {"enabled": "yes"},
        {"floor": 5},
    ],
)
def test_settings_out_of_bounds_are_refused(api: Api, change: dict[str, Any]) -> None:
    client = api(AccountFactory.create(is_staff=True))

    problem(
        client.patch("/api/config", {"revision": 1, "runtime": {"memoryRetention": change}}, format="json"),
        400,
    )


def test_switches_are_read_fresh(api: Api, ada: Account) -> None:
    client = api(ada)

    assert client.patch("/api/me", {"autoSave": True}, format="json").json()["autoSave"] is True
    assert client.get("/api/me").json()["autoRecall"] is True
    problem(client.patch("/api/me", {"autoSave": "yes"}, format="json"), 400, "autoSave")
    assert client.patch("/api/me", {"language": "german"}, format="json").json()["language"] == "german"
    problem(client.patch("/api/me", {"language": "klingon"}, format="json"), 400, "language")
    assert client.get("/api/me").json()["language"] == "german"
    problem(client.patch("/api/me", {"is_staff": True}, format="json"), 400, "is_staff")


def test_a_key_is_shown_once_and_cannot_outgrow_its_maker(api: Api, ada: Account) -> None:
    client = api(ada, scopes=("write",))

    made = client.post("/api/keys", {"name": "n", "scopes": ["write"]}, format="json")

    assert made.json()["secret"].startswith("elw_")
    problem(client.post("/api/keys", {"name": "n", "scopes": ["read"]}, format="json"), 403, "scopes")
    listed = api(ada).get("/api/keys").content.decode()
    assert made.json()["secret"][12:] not in listed
    assert api(ada).delete(f"/api/keys/{made.json()['id']}").status_code == 204


def test_accounts_are_for_administrators(api: Api, ada: Account) -> None:
    root = api(AccountFactory.create(is_staff=True))
    problem(api(ada).get("/api/accounts"), 403)

    made = root.post("/api/accounts", {"username": "dora"}, format="json").json()
    key = root.post(f"/api/accounts/{made['id']}/keys", {"name": "agent"}, format="json").json()["secret"]

    dora = APIClient()
    dora.credentials(HTTP_X_API_KEY=key)
    assert dora.get("/api/me").json()["username"] == "dora"
    assert root.delete(f"/api/accounts/{made['id']}").json()["is_active"] is False
    problem(dora.get("/api/me"), 401)


def test_icons_and_names_of_categories_are_checked(api: Api, ada: Account) -> None:
    client = api(ada)

    problem(
        client.post("/api/memory/categories", {"name": "x", "icon": "Dragon"}, format="json"), 400, "icon"
    )
    made = client.post("/api/memory/categories", {"name": "x", "icon": "Rocket"}, format="json")
    assert made.json()["icon"] == "Rocket"
    problem(client.post("/api/memory/categories", {"name": "x"}, format="json"), 409, "name")
    path = f"/api/memory/categories/{made.json()['id']}"
    assert client.patch(path, {"color": "#ff0000"}, format="json").json()["color"] == "#ff0000"
    problem(client.patch(path, {"color": "red"}, format="json"), 400, "color")
    assert client.delete(path).status_code == 204


def test_no_body_or_secret_reaches_a_log(api: Api, ada: Account, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    client = api(ada)

    client.post("/api/memory", {"body": "the secret garden", "kind": ""}, format="json")
    client.post("/api/memory", {"body": "the secret garden"}, format="json")
    client.get("/api/memory/999999")

    own_lines = [line for line in caplog.messages if "django.db" not in line and not line.startswith("(")]
    assert not [line for line in own_lines if "garden" in line or "elw_" in line]
    assert MemoryEvent.objects.count() == 1


def test_a_key_is_made_for_the_future_and_does_not_outlive_its_maker(ada: Account) -> None:
    now = timezone.now()
    short = issue_key(account=ada, name="short", expires_at=now + timedelta(hours=1))
    client = APIClient()
    client.credentials(HTTP_X_API_KEY=short.secret)

    def ask(expires_at: datetime | None) -> Any:
        return client.post("/api/keys", {"name": "n", "expiresAt": expires_at}, format="json")

    problem(ask(now - timedelta(seconds=1)), 400, "expiresAt")
    problem(ask(now + timedelta(hours=2)), 403, "expiresAt")
    problem(ask(None), 403, "expiresAt")
    assert ask(now + timedelta(minutes=30)).status_code == 201
