"""Every kind of bad input: a problem document that names what is wrong, and nothing stored."""

from typing import Any

import pytest
from django.conf import LazySettings

from memories.models import Account, Memory
from tests.conftest import Api
from tests.factories import AccountFactory
from tests.problems import problem

pytestmark = pytest.mark.django_db


BAD_BODIES: list[tuple[Any, str]] = [
    ({}, "body"),
    ({"body": None}, "body"),
    ({"body": ""}, "body"),
    ({"body": "   "}, "body"),
    ({"body": 5}, "body"),
    ({"body": True}, "body"),
    ({"body": ["x"]}, "body"),
    ({"body": "nul\x00"}, "body"),
    ({"body": "x" * 100_001}, "body"),
    ({"body": "x", "kind": "k" * 41}, "kind"),
    ({"body": "x", "kind": ""}, "kind"),
    ({"body": "x", "importance": 0}, "importance"),
    ({"body": "x", "importance": 11}, "importance"),
    ({"body": "x", "importance": "5"}, "importance"),
    ({"body": "x", "importance": 5.5}, "importance"),
    ({"body": "x", "importance": True}, "importance"),
    ({"body": "x", "importance": 10**30}, "importance"),
    ({"body": "x", "categoryId": 10**30}, "categoryId"),
    ({"body": "x", "categoryId": 0}, "categoryId"),
    ({"body": "x", "categoryId": "1"}, "categoryId"),
    ({"body": "x", "projectId": -1}, "projectId"),
    ({"body": "x", "bodyy": "x"}, "bodyy"),
    ({"body": "x", "owner_id": 1}, "owner_id"),
]


@pytest.mark.parametrize(("data", "field"), BAD_BODIES)
def test_bad_input_names_its_field_and_stores_nothing(api: Api, ada: Account, data: Any, field: str) -> None:
    problem(api(ada).post("/api/memory", data, format="json"), 400, field)

    assert not Memory.objects.exists()


RAW: list[tuple[bytes, int]] = [
    (b'{"body": "\\ud800"}', 400),
    (b'{"\\ud800": "x", "body": "x"}', 400),
    (b"{", 400),
    (b"", 400),
    (b"[]", 400),
    (b'"text"', 400),
    (b"null", 400),
    (b'{"body": NaN}', 400),
    (b"\xff\xfe", 400),
    (b"[" * 100_000, 400),
    (b'{"importance": ' + b"9" * 10_000 + b', "body": "x"}', 400),
]


@pytest.mark.parametrize(("raw", "status"), RAW)
def test_bad_json_is_a_problem_and_stores_nothing(api: Api, ada: Account, raw: bytes, status: int) -> None:
    problem(api(ada).post("/api/memory", raw, content_type="application/json"), status)

    assert not Memory.objects.exists()


def test_only_json_is_taken(api: Api, ada: Account) -> None:
    problem(api(ada).post("/api/memory", "body=x", content_type="application/x-www-form-urlencoded"), 415)


def test_a_body_that_is_too_large_is_refused(api: Api, ada: Account, settings: LazySettings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000

    problem(api(ada).post("/api/memory", {"body": "x" * 2000}, format="json"), 413)


@pytest.mark.parametrize("path", ["/api/nothing", "/api/", "/api/memory/", "/api/memory/1/", "/api/memory/x"])
def test_an_unknown_path_is_a_problem(api: Api, ada: Account, path: str) -> None:
    problem(api(ada).get(path), 404)


def test_a_foreign_host_is_a_problem(api: Api, ada: Account) -> None:
    problem(api(ada).get("/api/memory", HTTP_HOST="evil.example"), 400)


def test_a_wrong_method_is_a_problem(api: Api, ada: Account) -> None:
    problem(api(ada).put("/api/memory", {}, format="json"), 405)


def test_an_id_beyond_the_database_is_not_found(api: Api, ada: Account) -> None:
    problem(api(ada).get(f"/api/memory/{10**30}"), 404)
    problem(api(ada).delete(f"/api/memory/{2**63}"), 404)


QUERIES = [
    ("status=lost", "status"),
    ("limit=0", "limit"),
    ("limit=501", "limit"),
    ("limit=many", "limit"),
    ("ordering=body", "ordering"),
    ("cursor=nonsense", "cursor"),
    ("cursor=W10", "cursor"),
    ("categoryId=x", "categoryId"),
    ("categoryId=99999999999999999999", "categoryId"),
    ("kind=%00", "kind"),
    ("q=%00", "q"),
    ("unknown=1", "unknown"),
    ("limit=1&limit=2", "limit"),
]


@pytest.mark.parametrize(("query", "field"), QUERIES)
def test_a_bad_parameter_is_named(api: Api, ada: Account, query: str, field: str) -> None:
    problem(api(ada).get(f"/api/memory?{query}"), 400, field)


@pytest.mark.parametrize("raw", [b"[]", b"0", b'""', b"null", b"false"])
def test_what_is_no_object_is_not_taken_for_nothing(api: Api, raw: bytes) -> None:
    client = api(AccountFactory.create(is_staff=True))

    for path in ("/api/memory/embedding/test", "/api/memory/empty-trash"):
        problem(client.post(path, raw, content_type="application/json"), 400)
