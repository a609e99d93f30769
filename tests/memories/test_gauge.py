"""Pages, administration and REST tell the same of a memory, whatever the stored policy looks like."""

import pytest
from django.test import Client

from memories.models import Account, ConfigSection
from tests.conftest import Api
from tests.factories import AccountFactory, MemoryFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def broken_policy() -> None:
    ConfigSection.objects.update_or_create(
        name="runtime.memoryRetention", defaults={"document": {"halfLifeByImportance": {"5": -1}}}
    )


@pytest.mark.usefixtures("broken_policy")
def test_a_malformed_policy_closes_no_page(api: Api, ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada)
    page, console = Client(), Client()
    page.force_login(ada)
    console.force_login(AccountFactory.create(is_staff=True, is_superuser=True))

    row = api(ada).get(f"/api/memory/{memory.pk}").json()

    assert (row["vitality"], row["evictable_at"]) == (None, None)
    for client, address in (
        (page, "/memories"),
        (page, f"/memories/{memory.pk}"),
        (console, "/admin/memories/memory/"),
        (console, f"/admin/memories/memory/{memory.pk}/change/"),
    ):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "unknown" in answer.content.decode(), address


@pytest.mark.parametrize("status", ["archived", "deleted"])
def test_a_sweep_takes_active_memories_only(api: Api, ada: Account, status: str) -> None:
    MemoryFactory.create(owner=ada, status=status)

    row = api(ada).get(f"/api/memory?status={status}").json()["results"][0]

    assert row["vitality"] is not None
    assert row["evictable_at"] is None
