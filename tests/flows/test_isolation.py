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
from memories.models import Account, ApiKey, Category, Memory, MemoryEvent, Project, ProjectMember
from tests.conftest import Api
from tests.factories import CategoryFactory

pytestmark = pytest.mark.django_db

SECRET = "xylophone-marmalade"
METHODS = ("get", "post", "put", "patch", "delete", "options", "head")

# A new route has to be entered here, under what a stranger may have of it.
OPEN = {"api/schema", "api/docs"}
ADMINISTRATORS = {
    "api/accounts",
    "api/accounts/<int:account_id>",
    "api/accounts/<int:account_id>/keys",
}
COMMON = {
    "api/config",
    "api/search",
    "api/memory/embedding",
    "api/memory/embedding/test",
    "api/memory/embedding/reindex",
}
OWN = {
    "api/me",
    "api/keys",
    "api/projects",
    "api/memory",
    "api/memory/batch",
    "api/memory/merge",
    "api/memory/purge",
    "api/memory/empty-trash",
    "api/memory/events",
    "api/memory/categories",
    "api/memory/retrieve",
    "api/memory/explain",
    "api/memory/similar",
    "api/memory/forecast",
}
# Each with its methods and a body that its owner could send: for a stranger the id alone decides.
NAMED: dict[str, dict[str, Any]] = {
    "api/keys/<int:key_id>": {"delete": None},
    "api/projects/<int:project_id>": {"get": None, "patch": {"name": "taken"}, "delete": None},
    "api/projects/<int:project_id>/members": {"get": None, "post": {"accountId": "account_id"}},
    "api/projects/<int:project_id>/members/<int:account_id>": {"delete": None},
    "api/projects/<int:project_id>/memory-members": {"get": None},  # writing is for administrators
    "api/memory/categories/<int:category_id>": {"get": None, "patch": {"name": "taken"}, "delete": None},
    "api/memory/<int:memory_id>": {"get": None, "patch": {"importance": 1}, "delete": None},
    "api/memory/<int:memory_id>/restore": {"post": {"keep": True}},
    "api/memory/<int:memory_id>/archive": {"post": {}},
    "api/memory/<int:memory_id>/purge": {"delete": None},
    "api/memory/<int:memory_id>/category": {"put": {"categoryId": None}},
    "api/memory/<int:memory_id>/events": {"get": None},
    "api/memory/<int:memory_id>/keep": {"post": {}},
    "api/memory/<int:memory_id>/vitality-history": {"get": None},
}
CLOSED = sorted(ADMINISTRATORS | COMMON | OWN | set(NAMED))
# Administrators manage every project, and get nothing else by being that.
CALLS = [
    (route, method, staff)
    for route in sorted(NAMED)
    for method in NAMED[route]
    for staff in ([False] if route.startswith("api/projects") else [False, True])
]


def routes(resolver: Any = None, prefix: str = "") -> Iterator[str]:
    for pattern in (resolver or get_resolver()).url_patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, path)
        elif isinstance(pattern, URLPattern) and path.startswith("api/"):
            yield path


@pytest.fixture
def adas(ada: Account) -> dict[str, int]:
    """Ids of one of everything Ada has; each name and text holds the secret."""
    category = CategoryFactory.create(owner=ada, name=f"{SECRET}-category")
    memory = add_memory(by=ada, body=f"Ada's {SECRET}", kind=f"{SECRET}-kind", category_id=category.pk)
    project = create_project(by=ada, slug=f"{SECRET}-project", name=f"{SECRET}-project")
    key = issue_key(account=ada, name=f"{SECRET}-key").key
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
        {"body": f"Ada's {SECRET}"},
        {"body": "x", "categoryId": category},
        {"body": "x", "projectId": project},
        {"query": SECRET, "projectId": project},
        {"query": SECRET},
        {"query": "q", "exclude": [{"id": memory}]},
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
        {"slug": f"{SECRET}-project", "name": "taken"},
        {"username": "ada"},
        {"revision": 1, "runtime": {"memoryRetention": {"enabled": False}}},
    ]


def queries(ids: dict[str, int]) -> list[str]:
    named = f"projectId={ids['project_id']}", f"categoryId={ids['category_id']}", f"q={SECRET}"
    return ["", "status=all&limit=500", *(f"status=all&{one}" for one in named), f"kind={SECRET}-kind"]


def state() -> str:
    """Return everything there is of Ada's; the stranger starts with nothing."""
    ada = Account.objects.get(username="ada")
    rows = [
        list(Memory.objects.filter(owner=ada).order_by("pk").values()),
        list(Category.objects.filter(owner=ada).order_by("pk").values()),
        list(Project.objects.filter(members=ada).order_by("pk").values()),
        list(ProjectMember.objects.filter(project__members=ada).order_by("pk").values()),
        list(ApiKey.objects.filter(account=ada).order_by("pk").values("pk", "name", "revoked_at", "digest")),
        list(MemoryEvent.objects.filter(account_id=ada.pk).order_by("pk").values()),
        list(Account.objects.filter(pk=ada.pk).values()),
    ]
    return json.dumps(rows, default=str)


def send(client: APIClient, method: str, path: str, body: Any = None) -> Any:
    data = "" if body is None else json.dumps(body)
    return client.generic(method.upper(), path, data, content_type="application/json")


def without_echo(answer: Any, body: Any) -> str:
    """Return the answer's text; of what the stranger has just stored, only what it did not say itself."""
    text: str = answer.content.decode()
    if answer.status_code == 201:
        for value in body.values():
            text = text.replace(json.dumps(value), "")
    return text


def test_the_matrix_has_every_route() -> None:
    assert set(routes()) == OPEN | set(CLOSED)


@pytest.mark.parametrize(("route", "method", "staff"), CALLS)
def test_a_foreign_id_is_not_found(
    api: Api, adas: dict[str, int], cleo: Account, ada: Account, route: str, method: str, staff: bool
) -> None:
    Account.objects.filter(pk=cleo.pk).update(is_staff=staff)
    body = NAMED[route][method]
    if body == {"accountId": "account_id"}:
        body = {"accountId": cleo.pk}
    path, before = filled(route, adas), state()

    strange = send(api(cleo), method, path, body)
    missing = send(api(cleo), method, filled(route, dict.fromkeys(adas, 2**40)), body)

    assert strange.status_code == missing.status_code == 404
    assert strange.json() == missing.json()
    assert state() == before
    assert send(api(ada), method, path, body).status_code < 300  # the owner's door is the same one


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("route", CLOSED)
def test_a_stranger_gets_and_changes_nothing(
    api: Api, cleo: Account, adas: dict[str, int], route: str, method: str
) -> None:
    client, path, before = api(cleo), filled(route, adas), state()
    refused = (401, 403, 404, 405)

    for body in bodies(adas) if method in ("post", "put", "patch") else [None]:
        answer = send(client, method, path, body)
        assert SECRET not in without_echo(answer, body), (path, method, body)
        assert answer.status_code < 500, (path, method, body)
        if route in NAMED and method != "options":
            assert answer.status_code in (*refused, 400), (path, method, body)
        if route in ADMINISTRATORS:
            assert answer.status_code in refused, (path, method, body)

    assert state() == before


@pytest.mark.parametrize("route", [route for route in CLOSED if route not in NAMED])
def test_no_filter_or_search_reaches_a_strangers_rows(
    api: Api, cleo: Account, adas: dict[str, int], route: str
) -> None:
    for query in queries(adas):
        answer = api(cleo).get(f"{filled(route, adas)}?{query}")
        assert SECRET not in answer.content.decode(), query
        assert f'"owner_id":{adas["account_id"]}' not in answer.content.decode(), query


@pytest.mark.parametrize("route", CLOSED)
def test_nobody_gets_nothing(adas: dict[str, int], route: str) -> None:
    for method in METHODS:
        answer = send(APIClient(), method, filled(route, adas), {})
        assert answer.status_code == 401, (route, method)
        assert SECRET not in answer.content.decode()
