"""Writes to categories, and the choice of a home for a new memory."""

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction

from elowen.lib.errors import Conflict, Invalid, NotFound, Refused
from memories.access import is_sharer
from memories.models import Account, Category, Project, ProjectMember

DEFAULT_NAME = "General"
MAX_NAME_CHARS = 60
_COLLISIONS = {
    "one_name_per_owner": ("You have a category of this name already.", "name"),
    "one_category_per_project": ("You have a category for this project already.", "projectId"),
    "color_is_hex": ("A colour looks like #64748b.", "color"),
}


@transaction.atomic
def create_category(
    *,
    owner: Account,
    name: str,
    description: str = "",
    color: str | None = None,
    icon: str | None = None,
    project_id: int | None = None,
) -> Category:
    """Raises Conflict when the owner has one of this name or for this project."""
    if project_id is not None:
        member_project(account=owner, project_id=project_id)
    category = Category(owner=owner, name=name, description=description, project_id=project_id)
    category.icon = known_icon(icon)
    category.color = color or category.color
    return _save(category)


@transaction.atomic
def update_category(*, category_id: int, by: Account, changes: Mapping[str, Any]) -> Category:
    """Change name, description, color, icon or project_id of one's own category."""
    category = _own(category_id, by=by)
    if changes.get("project_id") is not None:
        member_project(account=by, project_id=changes["project_id"])
    for name, value in changes.items():
        setattr(category, name, known_icon(value) if name == "icon" else value)
    return _save(category)


@transaction.atomic
def delete_category(*, category_id: int, by: Account) -> None:
    """Delete one's own category; its memories stay, uncategorised."""
    _own(category_id, by=by).delete()


def category_for_write(*, account: Account, category_id: int | None, project_id: int | None) -> Category:
    """Return where a new memory goes: the named category, the project's, or the default one."""
    if category_id is not None:
        category = Category.objects.usable_by(account).filter(pk=category_id).first()
        if category is None:
            raise NotFound("There is no such category here, or it is not yours.", field="categoryId")
        return category
    if project_id is not None:
        return project_category(
            account=account, project=member_project(account=account, project_id=project_id)
        )
    return default_category(account)


def default_category(account: Account) -> Category:
    found = Category.objects.filter(owner=account, project=None, name=DEFAULT_NAME).first()
    return found or _create_named(account, project=None, name=DEFAULT_NAME, fallback=f"{DEFAULT_NAME} (own)")


def project_category(*, account: Account, project: Project) -> Category:
    """Return the project's pool for a sharer, else the account's own category for the project.

    Either is created by the first write. Call it inside a transaction.
    """
    if is_sharer(account_id=account.pk, project_id=project.pk):
        pool, _ = Category.objects.get_or_create(
            owner=None, project=project, defaults={"name": f"{project.slug} (shared)"}
        )
        return pool
    found = Category.objects.filter(owner=account, project=project).first()
    return found or _create_named(
        account, project=project, name=project.slug, fallback=f"{project.slug} (project)"
    )


def member_project(*, account: Account, project_id: int) -> Project:
    """Return the project, or raise NotFound when there is none and Refused for a stranger."""
    project = Project.objects.filter(pk=project_id).first()
    if project is None:
        raise NotFound("There is no such project.", field="projectId")
    if not ProjectMember.objects.filter(project=project, account=account).exists():
        raise Refused("You are not a member of this project.", field="projectId")
    return project


def known_icon(icon: str | None) -> str:
    return icon if icon in Category.Icon.values else Category.Icon.FOLDER


def _create_named(account: Account, *, project: Project | None, name: str, fallback: str) -> Category:
    # An existing namesake is never bound anew, so the second name steps in.
    taken = Category.objects.filter(owner=account, name=name).exclude(project=project).exists()
    category, _ = Category.objects.get_or_create(
        owner=account, project=project, name=fallback if taken else name
    )
    return category


def _own(category_id: int, *, by: Account) -> Category:
    category = Category.objects.select_for_update().filter(owner=by, pk=category_id).first()
    if category is None:
        raise NotFound
    return category


def _save(category: Category) -> Category:
    if not category.name.strip() or len(category.name) > MAX_NAME_CHARS:
        raise Invalid(f"A name has 1 to {MAX_NAME_CHARS} characters.", field="name")
    try:
        with transaction.atomic():
            category.save()
    except IntegrityError as error:
        name = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None)
        message, field = _COLLISIONS.get(name or "", ("", None))
        if not message:
            raise
        raise Conflict(message, field=field) from error
    return category
