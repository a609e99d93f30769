"""Projects, their members, and who may use their pool."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from elowen.lib.errors import Conflict, Invalid, NotFound, Refused
from memories.models import Account, Project, ProjectMember


@transaction.atomic
def create_project(*, by: Account, slug: str, name: str, root_path: str = "") -> Project:
    """Make a project whose first member and manager is `by`."""
    project = _save(Project(slug=slug, name=name, root_path=root_path))
    ProjectMember.objects.create(project=project, account=by, is_manager=True)
    return project


@transaction.atomic
def update_project(*, project_id: int, by: Account, changes: Mapping[str, Any]) -> Project:
    """Change slug, name, root_path or memory_shared; the last is for administrators.

    Raises:
        NotFound: there is none, or `by` does not belong to it.
        Refused: `by` may see it but not change this.
    """
    project = _managed(project_id, by=by)
    if "memory_shared" in changes and not by.is_staff:
        raise Refused("Only administrators switch sharing.", field="memoryShared")
    for name, value in changes.items():
        setattr(project, name, value)
    return _save(project)


@transaction.atomic
def delete_project(*, project_id: int, by: Account) -> None:
    """Delete a project and its categories; the memories stay with their authors, uncategorised."""
    _managed(project_id, by=by).delete()


@transaction.atomic
def set_member(*, project_id: int, by: Account, account_id: int, is_manager: bool = False) -> ProjectMember:
    project = _managed(project_id, by=by)
    if not Account.objects.filter(pk=account_id).exists():
        raise NotFound("There is no such account.", field="accountId")
    member, _ = ProjectMember.objects.update_or_create(
        project=project, account_id=account_id, defaults={"is_manager": is_manager}
    )
    return member


@transaction.atomic
def remove_member(*, project_id: int, by: Account, account_id: int) -> None:
    """Take an account out of the project, and so off its share list."""
    project = _managed(project_id, by=by)
    if not ProjectMember.objects.filter(project=project, account_id=account_id).delete()[0]:
        raise NotFound


@transaction.atomic
def set_share_list(*, project_id: int, by: Account, account_ids: Sequence[int]) -> list[int]:
    """Name exactly who may use the pool; an empty list means every member. Returns the list, sorted.

    Raises:
        NotFound: an account does not exist.
        Invalid: an account is not a member.
    """
    if not by.is_staff:
        raise Refused("Only administrators edit the share list.")
    project = _locked(project_id)
    wanted = set(account_ids)
    if Account.objects.filter(pk__in=wanted).count() < len(wanted):
        raise NotFound("There is no such account.", field="userIds")
    members = ProjectMember.objects.filter(project=project)
    if members.filter(account__in=wanted).count() < len(wanted):
        raise Invalid("Only members of the project can be listed.", field="userIds")
    members.filter(on_share_list=True).exclude(account__in=wanted).update(on_share_list=False)
    members.filter(account__in=wanted).update(on_share_list=True)
    return sorted(wanted)


def _locked(project_id: int) -> Project:
    project = Project.objects.select_for_update().filter(pk=project_id).first()
    if project is None:
        raise NotFound
    return project


def _managed(project_id: int, *, by: Account) -> Project:
    project = _locked(project_id)
    if by.is_staff:
        return project
    member = ProjectMember.objects.filter(project=project, account=by).first()
    if member is None:
        raise NotFound
    if not member.is_manager:
        raise Refused("Only the project's managers may change it.")
    return project


def _save(project: Project) -> Project:
    try:
        project.clean_fields()
        with transaction.atomic():
            project.save()
    except ValidationError as error:
        raise Invalid(" ".join(error.messages), field=next(iter(error.message_dict))) from error
    except IntegrityError as error:
        raise Conflict("There is a project with this slug already.", field="slug") from error
    return project
