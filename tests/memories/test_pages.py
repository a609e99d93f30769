from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from memories.actions.editing import add_memory, change_memory, delete_memory, set_category
from memories.models import Account, Category, Memory
from tests.factories import PASSWORD, CategoryFactory, MemoryFactory, ProjectFactory, ProjectMemberFactory

LIST = "/memories"


@pytest.fixture
def page(client: Client, ada: Account) -> Client:
    """A browser in which Ada is signed in."""
    client.force_login(ada)
    return client


@pytest.fixture
def pool(ada: Account, ben: Account) -> Category:
    project = ProjectFactory.create(memory_shared=True)
    for account in (ada, ben):
        ProjectMemberFactory.create(project=project, account=account)
    category: Category = CategoryFactory.create(owner=None, project=project, name="Shared")
    return category


def text(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.parametrize("address", [LIST, "/memories/1"])
def test_a_page_sends_a_stranger_to_sign_in_and_back(client: Client, db: None, address: str) -> None:
    answer = client.get(address)

    assert answer.status_code == 302
    assert answer.headers["Location"] == f"{reverse('sign-in')}?next={address}"


def test_signing_in_and_out(client: Client, ada: Account) -> None:
    wrong = client.post("/sign-in", {"username": "ada", "password": "not this"})
    right = client.post("/sign-in", {"username": "ada", "password": PASSWORD, "next": ""})

    assert "correct username and password" in wrong.content.decode()
    assert right.headers["Location"] == LIST
    assert "ada" in text(client, LIST)
    assert client.post("/sign-out").headers["Location"] == "/sign-in"
    assert client.get(LIST).status_code == 302


def test_the_root_leads_to_the_list(page: Client) -> None:
    assert page.get("/").headers["Location"] == LIST


def test_the_list_is_newest_first_and_shows_no_row_of_a_stranger(page: Client, ada: Account) -> None:
    for body in ("first", "second"):
        MemoryFactory.create(owner=ada, body=body)
    MemoryFactory.create(body="of somebody else")

    content = text(page, LIST)

    assert content.index("second") < content.index("first")
    assert "of somebody else" not in content


def test_the_list_shows_the_pool_of_a_sharer_until_sharing_ends(
    page: Client, ben: Account, pool: Category
) -> None:
    memory = MemoryFactory.create(owner=ben, category=pool, body="for both of us")

    before = text(page, LIST)
    assert pool.project is not None
    pool.project.memory_shared = False
    pool.project.save()

    assert "for both of us" in before
    assert "for both of us" not in text(page, LIST)
    assert page.get(f"/memories/{memory.pk}").status_code == 404


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", {"active"}),
        ("?status=archived", {"archived"}),
        ("?status=deleted", {"deleted"}),
        ("?status=all", {"active", "archived", "deleted"}),
        ("?status=nonsense", {"active"}),
    ],
)
def test_the_status_is_chosen_in_the_address(page: Client, ada: Account, query: str, shown: set[str]) -> None:
    for status in Memory.Status.values:
        MemoryFactory.create(owner=ada, status=status, body=f"this one is {status}")

    content = text(page, LIST + query)

    assert {status for status in Memory.Status.values if f"this one is {status}" in content} == shown


def test_pages_of_the_list_meet_without_gap_or_repetition(page: Client, ada: Account) -> None:
    category = CategoryFactory.create(owner=ada)
    memories = MemoryFactory.create_batch(120, owner=ada, category=category)
    address, seen = LIST, []

    while address:
        context = page.get(address).context
        seen += [row.memory.pk for row in context["rows"]]
        address = LIST + context["older_url"] if context["older_url"] else ""

    assert seen == sorted((memory.pk for memory in memories), reverse=True)


@pytest.mark.parametrize("before", ["x", "-1", "9" * 40, "", "²"])
def test_an_odd_page_address_shows_the_newest(page: Client, ada: Account, before: str) -> None:
    MemoryFactory.create(owner=ada, body="still here")

    assert "still here" in text(page, f"{LIST}?before={before}")


@pytest.mark.parametrize("rows", [1, 20])
def test_the_list_asks_as_often_for_many_rows_as_for_one(
    page: Client, ada: Account, rows: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    MemoryFactory.create_batch(rows, owner=ada)

    with django_assert_num_queries(4):  # session, account, memories, policy
        page.get(LIST)


def test_the_list_shows_how_a_long_body_begins(page: Client, ada: Account) -> None:
    MemoryFactory.create(owner=ada, body="a" * 5_000)

    content = text(page, LIST)

    assert "a" * 240 + "…" in content
    assert "a" * 241 not in content


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        ("active", "curl http://testserver/api/memory"),
        ("deleted", "trash is empty"),
        ("archived", "archived"),
    ],
)
def test_an_empty_list_says_what_to_do(page: Client, status: str, advice: str) -> None:
    assert advice in text(page, f"{LIST}?status={status}")


def test_a_fresh_memory_has_half_its_vitality_and_a_day_of_eviction(page: Client, ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada, importance=7)

    context = page.get(f"/memories/{memory.pk}").context

    assert context["reading"].vitality == pytest.approx(50, abs=0.1)
    assert context["reading"].evictable_at > timezone.now() + timedelta(days=14)
    assert "Important preference" in text(page, f"/memories/{memory.pk}")


def test_a_memory_in_the_trash_has_no_day_of_eviction(page: Client, ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada, status=Memory.Status.DELETED)

    assert page.get(f"/memories/{memory.pk}").context["reading"].evictable_at is None


def test_a_body_is_text_and_not_markup(page: Client, ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada, body="<script>alert(1)</script>")

    for address in (LIST, f"/memories/{memory.pk}"):
        assert "<script>alert" not in text(page, address)


def test_a_stranger_finds_no_memory(client: Client, cleo: Account, ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada)
    client.force_login(cleo)

    answer = client.get(f"/memories/{memory.pk}")

    assert answer.status_code == 404
    assert "not yours to see" in answer.content.decode()


def test_the_history_names_who_changed_what(page: Client, ada: Account) -> None:
    memory = add_memory(by=ada, body="Tea at four o'clock")
    change_memory(memory_id=memory.pk, by=ada, changes={"body": "Tea at five o'clock", "importance": 8})
    delete_memory(memory_id=memory.pk, by=ada)

    content = text(page, f"/memories/{memory.pk}")

    assert "<del>four</del><ins>five</ins>" in content
    assert "<del>5</del> <ins>8</ins>" in content
    assert "<del>active</del> <ins>deleted</ins>" in content
    assert content.count("by ada") == 3


def test_sharers_see_the_whole_history_with_the_category_names_they_may_know(
    client: Client, ada: Account, ben: Account, pool: Category
) -> None:
    memory = add_memory(by=ada, body="for the team")
    set_category(memory_id=memory.pk, by=ada, category_id=pool.pk)
    client.force_login(ben)

    content = text(client, f"/memories/{memory.pk}")

    assert "<del>another category</del> <ins>Shared</ins>" in content


def test_no_page_has_inline_style_or_script(page: Client, ada: Account) -> None:
    memory = add_memory(by=ada, body="x")

    for address in (LIST, f"/memories/{memory.pk}", "/memories/999999"):
        content = page.get(address).content.decode()
        assert " style=" not in content
        assert "<style" not in content
        assert "<script" not in content
