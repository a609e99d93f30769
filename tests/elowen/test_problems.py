"""Whatever is wrong with a request, the answer is a problem document."""

import json

import pytest
from django.db import DataError, IntegrityError, connection, transaction
from django.test import Client
from rest_framework.test import APIClient

from elowen.api import problem_response
from elowen.lib.errors import Unavailable
from memories.models import Account
from tests.conftest import Api
from tests.factories import AccountFactory, CategoryFactory, MemoryFactory
from tests.problems import problem

pytestmark = pytest.mark.django_db


SURROGATES = [
    ("patch", "/api/memory/1", b'{"status": "\\ud800"}', "status"),
    ("post", "/api/memory", b'{"body": "x", "kind": "\\udfff"}', "kind"),
    ("post", "/api/memory/categories", b'{"name": "x", "icon": "\\ud800"}', "icon"),
    ("post", "/api/keys", b'{"name": "x", "scopes": ["\\ud800"]}', "scopes"),
    ("post", "/api/projects", b'{"slug": "\\ud800", "name": "x"}', "slug"),
]


@pytest.mark.parametrize(("method", "path", "raw", "field"), SURROGATES)
def test_a_lone_surrogate_is_refused_and_not_sent_back(
    api: Api, ada: Account, method: str, path: str, raw: bytes, field: str
) -> None:
    answer = getattr(api(ada), method)(path, raw, content_type="application/json")

    problem(answer, 400, field)
    assert b"\\ud" not in answer.content


NO_NUMBERS = [b"NaN", b"Infinity", b"-Infinity", b"9" * 5000]


@pytest.mark.parametrize("number", NO_NUMBERS)
def test_what_is_no_json_number_is_told_without_pythons_advice(api: Api, ada: Account, number: bytes) -> None:
    raw = b'{"body": "x", "importance": ' + number + b"}"

    document = problem(api(ada).post("/api/memory", raw, content_type="application/json"), 400)

    assert "sys." not in document["detail"]


HUGE = [b"1e999", b"-1e999", b"1" + b"0" * 400, b'"5"', b"true", b"null", b"[]"]


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("name", ["graceDays", "vitalityFloor", "dailyDeletionLimit"])
def test_a_number_beyond_all_bounds_is_refused(api: Api, name: str, number: bytes) -> None:
    raw = b'{"revision": 1, "runtime": {"memoryRetention": {"' + name.encode() + b'": ' + number + b"}}}"
    client = api(AccountFactory.create(is_staff=True))

    problem(client.patch("/api/config", raw, content_type="application/json"), 400, "runtime")


@pytest.mark.parametrize("raw", [b"[]", b"0", b'""', b"false", b"null", b"[{}]"])
@pytest.mark.parametrize("action", ["{}/restore", "{}/archive", "empty-trash"])
def test_a_body_that_may_be_left_out_is_still_an_object(
    api: Api, ada: Account, action: str, raw: bytes
) -> None:
    path = "/api/memory/" + action.format(MemoryFactory.create(owner=ada).pk)

    problem(api(ada).post(path, raw, content_type="application/json"), 400)
    assert api(ada).post(path, content_type="application/json").status_code == 200
    assert api(ada).post(path).status_code == 200


@pytest.mark.parametrize("path", ["/api/docs", "/api/schema"])
def test_pages_for_people_refuse_in_json_as_well(path: str) -> None:
    assert problem(APIClient().post(path), 405)["code"] == "method_not_allowed"


def test_the_document_is_json() -> None:
    answer = APIClient().get("/api/schema")

    assert answer["Content-Type"].startswith("application/vnd.oai.openapi+json")
    assert json.loads(answer.content)["openapi"].startswith("3.1")


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/memory"])
def test_a_foreign_host_hears_it_in_json(path: str) -> None:
    problem(APIClient().get(path, HTTP_HOST="evil.example"), 400)


def test_outside_of_the_api_errors_are_pages() -> None:
    answer = Client().get("/nothing-here")

    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")


def test_a_cookie_no_database_can_hold_is_bad_input() -> None:
    problem(Client().get("/api/me", headers={"cookie": 'sessionid="\\000abcdefgh"'}), 400)


def test_a_form_with_a_session_is_not_read(ada: Account) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)

    junk = client.generic("POST", "/api/memory", b"junk", content_type="multipart/form-data; boundary=x")

    problem(junk, 403)


BROKEN = [
    ("update memories_memory set importance = 11", 400),
    ("update memories_memory set kind = ''", 400),
    ("update memories_memory set body = null", 400),
    ("update memories_category set name = 'twin'", 409),
    ("update memories_memory set category_id = 1000000", 409),
]


@pytest.mark.parametrize(("statement", "status"), BROKEN)
def test_a_broken_constraint_is_bad_input_or_a_conflict(ada: Account, statement: str, status: int) -> None:
    MemoryFactory.create(owner=ada)
    CategoryFactory.create(owner=ada)

    with pytest.raises(IntegrityError) as broken, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"{statement}; set constraints all immediate")

    answer = problem_response(broken.value, {})
    assert answer is not None
    problem(answer, status)
    assert statement not in answer.content.decode()


def test_a_value_of_the_wrong_size_is_bad_input(db: None) -> None:
    with pytest.raises(DataError) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("select 1000000::smallint")

    problem(problem_response(refused.value, {}), 400)


def test_what_does_not_answer_is_503_and_a_fault_of_ours_is_nobodys_input() -> None:
    problem(problem_response(Unavailable(), {}), 503)
    assert problem_response(RuntimeError("a bug"), {}) is None


def test_each_kind_of_refusal_is_documented() -> None:
    responses = json.loads(APIClient().get("/api/schema").content)["paths"]["/api/memory"]["post"][
        "responses"
    ]

    documented = {"201", "400", "401", "403", "404", "405", "409", "412", "413", "415", "422", "428", "503"}
    assert set(responses) == documented
    assert all(set(responses[s]["content"]) == {"application/problem+json"} for s in documented - {"201"})


def test_health_needs_no_account() -> None:
    assert APIClient().get("/livez").json() == {"alive": True}
    assert APIClient().get("/readyz").json() == {"ready": True}
