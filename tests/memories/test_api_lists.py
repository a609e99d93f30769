"""Paging of the lists, and what no cursor or order can break."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from memories.models import Account, ConfigSection
from tests.conftest import Api
from tests.factories import AccountFactory, CategoryFactory, MemoryFactory, ProjectMemberFactory

pytestmark = pytest.mark.django_db

LISTS = [
    "/api/memory",
    "/api/memory/events",
    "/api/memory/categories",
    "/api/projects",
    "/api/keys",
    "/api/accounts",
]


def forged(*parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("query", ["unknown=1", "limit=0", "limit=501", "limit=1&limit=1", "cursor=x"])
def test_every_list_names_a_bad_parameter(api: Api, path: str, query: str) -> None:
    answer = api(AccountFactory.create(is_staff=True)).get(f"{path}?{query}")

    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == [query.partition("=")[0]]


def test_small_lists_are_paged_as_well(api: Api, ada: Account) -> None:
    ids = [CategoryFactory.create(owner=ada).pk for _ in range(5)]
    client = api(ada)

    pages, url = [], "/api/memory/categories?limit=2"
    while url:
        page = client.get(url).json()
        pages.append([row["id"] for row in page["results"]])
        url = page["next"]

    assert pages[:2] == [ids[:2], ids[2:4]]
    assert sorted(pk for page in pages for pk in page)[: len(ids)] == ids


def test_members_are_paged_by_membership(api: Api, ada: Account) -> None:
    project = ProjectMemberFactory.create(account=ada).project
    ben = ProjectMemberFactory.create(project=project).account
    client = api(ada)

    first = client.get(f"/api/projects/{project.pk}/members?limit=1").json()
    second = client.get(first["next"]).json()

    assert [row["account_id"] for row in first["results"] + second["results"]] == [ada.pk, ben.pk]
    assert second["next"] is None


NOW = "2026-01-01T00:00:00+00:00"
FORGED = [
    ("importance", forged("importance", {"t": NOW}, 5, False, NOW)),
    ("importance", forged("importance", True, 5, False, NOW)),
    ("importance", forged("importance", 1.5, 5, False, NOW)),
    ("-updated_at", forged("-updated_at", 1.5, 5, False, NOW)),
    ("vitality", forged("vitality", {"t": NOW}, 5, False, NOW)),
    ("vitality", forged("importance", 5, 5, False, NOW)),
    ("importance", forged("importance", 5, 2**63, False, NOW)),
]


@pytest.mark.parametrize(("ordering", "cursor"), FORGED)
def test_a_made_up_cursor_is_refused(api: Api, ada: Account, ordering: str, cursor: str) -> None:
    MemoryFactory.create(owner=ada)

    answer = api(ada).get(f"/api/memory?ordering={ordering}&cursor={cursor}")

    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == ["cursor"]


@pytest.mark.parametrize("ordering", ["last_used_at", "-last_used_at"])
def test_what_was_never_used_comes_last_either_way(api: Api, ada: Account, ordering: str) -> None:
    used = [
        MemoryFactory.create(owner=ada, last_used_at=datetime(2026, 1, day, tzinfo=UTC)).pk for day in (1, 2)
    ]
    never = [MemoryFactory.create(owner=ada, last_used_at=None).pk for _ in range(3)]
    client, seen, url = api(ada), [], f"/api/memory?limit=2&ordering={ordering}"

    while url:
        page = client.get(url).json()
        seen += [row["id"] for row in page["results"]]
        url = page["next"]

    expected = [*used, *never] if ordering == "last_used_at" else [*reversed(used), *reversed(never)]
    assert seen == expected


def test_an_order_by_vitality_needs_usable_half_lives(api: Api, ada: Account) -> None:
    MemoryFactory.create(owner=ada)
    ConfigSection.objects.update_or_create(
        name="runtime.memoryRetention", defaults={"document": {"halfLifeByImportance": {"1": 3}}}
    )

    refused = api(ada).get("/api/memory?ordering=vitality")
    row = api(ada).get("/api/memory").json()["results"][0]

    assert refused.status_code == 503
    assert "half-lives" in refused.json()["detail"]
    assert (row["vitality"], row["evictable_at"]) == (None, None)
