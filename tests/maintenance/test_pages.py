"""P7: the page that tells what leaves, and keeps what is ticked."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from maintenance import views
from memories.config import RETENTION, load_document, save_section
from memories.models import Account, Category, Memory, MemoryEvent
from tests.factories import CategoryFactory, MemoryFactory, ProjectFactory, ProjectMemberFactory

pytestmark = pytest.mark.django_db

PAGE = "/forecast"


@pytest.fixture
def page(client: Client, ada: Account) -> Client:
    client.force_login(ada)
    return client


@pytest.fixture
def pool(ada: Account, ben: Account) -> Category:
    project = ProjectFactory.create(memory_shared=True)
    for account in (ada, ben):
        ProjectMemberFactory.create(project=project, account=account)
    category: Category = CategoryFactory.create(owner=None, project=project, name="Shared")
    return category


def faded(owner: Account, times: int = 1, **fields: object) -> list[Memory]:
    defaults = {"importance": 3, "created_at": timezone.now() - timedelta(days=21)}
    return [MemoryFactory.create(owner=owner, **(defaults | fields)) for _ in range(times)]


def text(client: Client, address: str = PAGE) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def told(client: Client, *ids: object) -> list[str]:
    answer = client.post(f"{PAGE}?days=7", {"memory": list(ids)}, follow=True)
    assert answer.redirect_chain == [(f"{PAGE}?days=7", 302)]
    return [str(message) for message in answer.context["messages"]]


def test_a_stranger_is_sent_to_sign_in(client: Client, ada: Account) -> None:
    (memory,) = faded(ada)

    assert client.get(PAGE)["Location"] == f"/sign-in?next={PAGE}"
    assert client.post(PAGE, {"memory": [memory.pk]}).status_code == 302
    memory.refresh_from_db()
    assert memory.last_used_at is None


def test_what_leaves_is_listed_by_day_with_author_and_pool(
    page: Client, ada: Account, ben: Account, pool: Category
) -> None:
    faded(ada, 6, body="mine is leaving")
    faded(ben, body="of the pool", category=pool)
    faded(ben, body="private to Ben")

    content = text(page)

    assert content.count("mine is leaving") == 6
    assert content.count("<h2") == 2  # five today, one tomorrow
    assert "of the pool" in content
    assert "Shared" in content
    assert "ben" in content
    assert "private to Ben" not in content


def test_what_is_ticked_is_kept_and_the_rest_leaves(page: Client, ada: Account) -> None:
    kept, left = faded(ada, 2)

    assert told(page, kept.pk) == ["Kept: 1. They fade anew from this moment on."]

    content = text(page, f"{PAGE}?days=7")
    assert f'value="{kept.pk}"' not in content
    assert f'value="{left.pk}"' in content
    assert MemoryEvent.objects.get().memory_id == kept.pk


def test_what_is_not_ones_own_or_no_id_is_not_kept(page: Client, ada: Account, ben: Account) -> None:
    (foreign,), (own,) = faded(ben), faded(ada)

    said = told(page, foreign.pk, own.pk, 2**40, "x", "-1", "9" * 40)

    foreign.refresh_from_db()
    assert foreign.last_used_at is None
    assert said == ["Kept: 1. They fade anew from this moment on.", "No longer there or no longer yours: 2."]


def test_nothing_ticked_is_said(page: Client) -> None:
    assert told(page) == ["Nothing was ticked, so nothing has changed."]


@pytest.mark.parametrize(
    ("query", "days"), [("", 30), ("?days=7", 7), ("?days=365", 365), ("?days=8", 30), ("?days=x", 30)]
)
def test_the_horizon_is_one_of_a_few(page: Client, query: str, days: int) -> None:
    assert f"Nothing leaves within {days} days" in text(page, PAGE + query)


def test_switched_off_retention_is_said(page: Client, ada: Account) -> None:
    faded(ada)
    save_section(name=RETENTION, document={"enabled": False}, revision=load_document()[1], by=ada)

    assert "Retention is switched off" in text(page)


def test_unusable_settings_are_said_and_are_no_error(page: Client, ada: Account) -> None:
    broken = {"halfLifeByImportance": {"3": 0}}
    save_section(name=RETENTION, document=broken, revision=load_document()[1], by=ada)

    assert "save them again" in text(page)


def test_a_long_forecast_is_cut_and_says_so(
    page: Client, ada: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "SHOWN", 3)
    faded(ada, 7)

    content = text(page)

    assert content.count('name="memory"') == 3
    assert "4 more follow" in content


def test_the_page_has_no_hidden_queries(
    page: Client, ada: Account, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    faded(ada, 9)

    with django_assert_num_queries(11):  # session, account, eight of the forecast, the rows
        text(page)
