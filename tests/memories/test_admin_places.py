from typing import Any

import pytest
from django.test import Client

from memories.actions.editing import add_memory
from memories.models import Account, Category, Memory, Project, ProjectMember
from tests.factories import CategoryFactory, ProjectFactory, ProjectMemberFactory

CATEGORIES = "/admin/memories/category/"
PROJECTS = "/admin/memories/project/"
CATEGORY = {"name": "Kitchen", "description": "", "color": "#64748b", "icon": "Home", "project": ""}
PROJECT = {"slug": "elowen", "name": "Elowen", "root_path": "/srv/elowen"}


def members(*rows: dict[str, Any], known: int = 0) -> dict[str, Any]:
    """Return the part of the project form that lists its members."""
    counts = {"memberships-TOTAL_FORMS": len(rows), "memberships-INITIAL_FORMS": known}
    return counts | {f"memberships-{n}-{name}": v for n, row in enumerate(rows) for name, v in row.items()}


def told(console: Client, address: str, data: dict[str, Any]) -> list[str]:
    answer = console.post(address, data, follow=True)
    return [str(message) for message in answer.context["messages"]]


def membership(project: Project) -> set[tuple[str, bool, bool]]:
    rows = ProjectMember.objects.filter(project=project)
    return set(rows.values_list("account__username", "is_manager", "on_share_list"))


def test_a_category_is_made_for_its_owner(admin_client: Client, ada: Account) -> None:
    told(admin_client, f"{CATEGORIES}add/", CATEGORY | {"owner": ada.pk})

    category = Category.objects.get()
    assert (category.owner, category.name, category.icon) == (ada, "Kitchen", "Home")


def test_a_category_needs_an_owner(admin_client: Client, ada: Account) -> None:
    project = ProjectFactory.create()

    answer = admin_client.post(f"{CATEGORIES}add/", CATEGORY | {"project": project.pk})

    assert "owner" in answer.context["adminform"].form.errors
    assert not Category.objects.exists()


@pytest.mark.parametrize("change", [False, True])
def test_a_category_cannot_be_bound_to_a_project_of_others(
    admin_client: Client, ada: Account, change: bool
) -> None:
    project = ProjectFactory.create()
    if change:
        category = CategoryFactory.create(owner=ada)
    address = f"{CATEGORIES}{category.pk}/change/" if change else f"{CATEGORIES}add/"

    said = told(admin_client, address, CATEGORY | {"owner": ada.pk, "project": project.pk})

    assert said == ["You are not a member of this project."]
    assert not Category.objects.filter(project=project).exists()
    assert not Category.objects.filter(name="Kitchen").exists()


def test_a_category_is_changed_and_keeps_its_owner(admin_client: Client, ada: Account, ben: Account) -> None:
    category = CategoryFactory.create(owner=ada)
    project = ProjectMemberFactory.create(account=ada).project

    changes = CATEGORY | {"owner": ben.pk, "project": project.pk}
    told(admin_client, f"{CATEGORIES}{category.pk}/change/", changes)

    category.refresh_from_db()
    assert (category.owner, category.name, category.project) == (ada, "Kitchen", project)


@pytest.mark.parametrize("in_bulk", [False, True])
def test_the_memories_of_a_deleted_category_stay(admin_client: Client, ada: Account, in_bulk: bool) -> None:
    memory = add_memory(by=ada, body="x")

    if in_bulk:
        chosen = {"action": "delete_selected", "_selected_action": [memory.category_id]}
        admin_client.post(CATEGORIES, chosen | {"post": "yes"})
    else:
        admin_client.post(f"{CATEGORIES}{memory.category_id}/delete/", {"post": "yes"})

    assert not Category.objects.exists()
    assert Memory.objects.get().category is None


def test_a_pool_cannot_be_changed_or_deleted_here(admin_client: Client) -> None:
    pool = CategoryFactory.create(owner=None, project=ProjectFactory.create())

    changed = admin_client.post(f"{CATEGORIES}{pool.pk}/change/", CATEGORY)
    deleted = admin_client.post(f"{CATEGORIES}{pool.pk}/delete/", {"post": "yes"})
    chosen = {"action": "delete_selected", "_selected_action": [pool.pk], "post": "yes"}
    admin_client.post(CATEGORIES, chosen)

    assert (changed.status_code, deleted.status_code) == (403, 403)
    assert Category.objects.get().name == pool.name


def test_a_project_is_made_with_its_members(admin_client: Client, ada: Account, ben: Account) -> None:
    listed = members({"account": ada.pk, "is_manager": "on"}, {"account": ben.pk, "on_share_list": "on"})

    told(admin_client, f"{PROJECTS}add/", PROJECT | {"memory_shared": "on"} | listed)

    project = Project.objects.get()
    assert (project.slug, project.memory_shared) == ("elowen", True)
    assert membership(project) == {("ada", True, False), ("ben", False, True)}


def test_the_members_become_the_listed_ones(admin_client: Client, ada: Account, ben: Account) -> None:
    project = ProjectFactory.create()
    rows = [
        ProjectMemberFactory.create(project=project, account=one, on_share_list=True) for one in (ada, ben)
    ]
    kept, gone = ({"id": row.pk, "project": project.pk, "account": row.account_id} for row in rows)

    listed = members(kept | {"is_manager": "on"}, gone | {"DELETE": "on"}, known=2)
    told(admin_client, f"{PROJECTS}{project.pk}/change/", PROJECT | listed)

    project.refresh_from_db()
    assert (project.slug, project.memory_shared) == ("elowen", False)
    assert membership(project) == {("ada", True, False)}


@pytest.mark.parametrize(
    ("field", "value"), [("slug", "not a slug"), ("slug", "taken"), ("root_path", "relative"), ("name", "")]
)
def test_a_project_that_cannot_be_is_not_made(admin_client: Client, field: str, value: str) -> None:
    ProjectFactory.create(slug="taken")

    answer = admin_client.post(f"{PROJECTS}add/", PROJECT | {field: value} | members())

    assert field in answer.context["adminform"].form.errors
    assert Project.objects.count() == 1


def test_the_memories_of_a_deleted_project_stay(admin_client: Client, ada: Account) -> None:
    project = ProjectMemberFactory.create(account=ada).project
    memory = add_memory(by=ada, body="x", project_id=project.pk)

    admin_client.post(f"{PROJECTS}{project.pk}/delete/", {"post": "yes"})

    assert not Project.objects.exists()
    assert Memory.objects.get(pk=memory.pk).category is None
