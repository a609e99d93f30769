"""Every route and every method, tried by a second account with the first one's ids, and by nobody."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.test import APIClient

from memories.actions.editing import add_memory
from memories.actions.keys import issue_key
from memories.actions.projects import create_project
from memories.models import Account, ApiKey, Category, Memory, Project
from tests.conftest import Api
from tests.factories import CategoryFactory

pytestmark = pytest.mark.django_db

SECRET = "xylophone-marmalade"
METHODS = ("get", "post", "put", "patch", "delete", "options", "head")
OPEN = {"api/schema", "api/docs"}
BODIES: dict[str, Any] = {
    "body": "mine",
    "name": "mine",
    "query": SECRET,
    "keep": True,
    "importance": 1,
}


def routes(resolver: Any = None, prefix: str = "") -> Iterator[str]:
    for pattern in (resolver or get_resolver()).url_patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, path)
        elif isinstance(pattern, URLPattern) and path.startswith("api/"):
            yield path


ROUTES = sorted(set(routes()))


@pytest.fixture
def adas(ada: Account, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Ids of everything Ada has, all of it named after a secret."""
    category = CategoryFactory.create(owner=ada, name=SECRET)
    memory = add_memory(by=ada, body=f"Ada's {SECRET}", category_id=category.pk)
    project = create_project(by=ada, slug=SECRET, name=SECRET)
    key = issue_key(account=ada, name=SECRET).key
    return {
        "memory_id": memory.pk,
        "category_id": category.pk,
        "project_id": project.pk,
        "key_id": key.pk,
        "account_id": ada.pk,
    }


def filled(route: str, ids: dict[str, int]) -> str:
    for name, value in ids.items():
        route = route.replace(f"<int:{name}>", str(value))
    return "/" + route


def bodies(ids: dict[str, int]) -> list[dict[str, Any]]:
    memory, category, project, account = (
        ids[n] for n in ("memory_id", "category_id", "project_id", "account_id")
    )
    return [
        {},
        {"body": SECRET[:4]},
        {"body": "x", "categoryId": category},
        {"body": "x", "projectId": project},
        {"query": SECRET, "projectId": project},
        {"query": SECRET},
        {"ids": [memory]},
        {"ids": [memory], "body": "merged"},
        {"memories": [{"body": "x", "categoryId": category}]},
        {"categoryId": category},
        {"categoryId": None},
        {"importance": 1},
        {"keep": True},
        {"name": "x", "projectId": project},
        {"name": "x"},
        {"accountId": account},
        {"userIds": [account]},
        {"slug": "stolen", "name": "stolen"},
    ]


def state_of(ada: Account) -> str:
    rows = [
        list(Memory.objects.filter(owner=ada).order_by("pk").values()),
        list(Category.objects.filter(owner=ada).order_by("pk").values()),
        list(
            Project.objects.filter(members=ada).order_by("pk").values("pk", "slug", "name", "memory_shared")
        ),
        list(Project.objects.filter(members=ada).values_list("members", flat=True)),
        list(ApiKey.objects.filter(account=ada).order_by("pk").values("pk", "name", "revoked_at", "digest")),
        list(Account.objects.filter(pk=ada.pk).values()),
    ]
    return json.dumps(rows, default=str)


def test_the_matrix_knows_every_route() -> None:
    assert len(ROUTES) >= 30
    assert all("<int:" not in filled(route, dict.fromkeys(KNOWN_IDS, 1)) for route in ROUTES)


KNOWN_IDS = ("memory_id", "category_id", "project_id", "key_id", "account_id")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("route", [route for route in ROUTES if route not in OPEN])
def test_a_stranger_gets_and_changes_nothing(
    api: Api, ada: Account, cleo: Account, adas: dict[str, int], route: str, method: str
) -> None:
    client, path, before = api(cleo), filled(route, adas), state_of(ada)

    for body in bodies(adas) if method in ("post", "put", "patch") else [None]:
        answer = client.generic(
            method.upper(),
            path,
            json.dumps(body) if body is not None else "",
            content_type="application/json",
        )
        assert answer.status_code < 500, (path, method, body)
        assert SECRET not in answer.content.decode().replace(f'"{SECRET}"', ""), (path, method, body)
        assert f"Ada's {SECRET}" not in answer.content.decode()

    assert state_of(ada) == before


@pytest.mark.parametrize("route", [route for route in ROUTES if route not in OPEN])
def test_nobody_gets_nothing(ada: Account, adas: dict[str, int], route: str) -> None:
    for method in METHODS:
        answer = APIClient().generic(
            method.upper(), filled(route, adas), "{}", content_type="application/json"
        )
        assert answer.status_code in (401, 404), (route, method)
        assert SECRET not in answer.content.decode()
