"""R5 and R6: who is a sharer, and how a pool comes to be."""

from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from elowen.lib.errors import Invalid, NotFound, Refused
from memories.access import is_sharer, sharer_projects
from memories.actions.editing import add_memory
from memories.actions.projects import remove_member, set_share_list
from memories.models import Account, Category, Memory, ProjectMember
from tests.factories import AccountFactory, ProjectFactory, ProjectMemberFactory
from tests.threads import at_once


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("shared", "member", "listed", "others_listed", "expected"),
    [
        (True, True, False, False, True),  # an empty list means every member
        (True, True, True, False, True),
        (True, True, True, True, True),
        (True, True, False, True, False),  # the list names somebody else
        (True, False, False, False, False),
        (False, True, True, False, False),  # sharing is off
        (False, True, False, False, False),
    ],
)
def test_the_sharer_test(
    ada: Account, ben: Account, shared: bool, member: bool, listed: bool, others_listed: bool, expected: bool
) -> None:
    project = ProjectFactory.create(memory_shared=shared)
    ProjectMemberFactory.create(project=project, account=ben, on_share_list=others_listed)
    if member:
        ProjectMemberFactory.create(project=project, account=ada, on_share_list=listed)

    assert is_sharer(account_id=ada.pk, project_id=project.pk) is expected


@pytest.mark.django_db
def test_an_administrator_gets_nothing_implicitly(ada: Account) -> None:
    root = AccountFactory.create(is_staff=True, is_superuser=True)
    project = ProjectFactory.create(memory_shared=True)
    ProjectMemberFactory.create(project=project, account=ada)
    add_memory(by=ada, body="Tea.", project_id=project.pk)

    assert not is_sharer(account_id=root.pk, project_id=project.pk)
    assert not Memory.objects.readable_by(root).exists()


@pytest.mark.django_db
@pytest.mark.parametrize("account_id", [0, -1, True, None, "1", 1.0, "1 or 1=1"])
def test_an_id_that_is_no_positive_integer_grants_nothing_without_a_query(account_id: object) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert not sharer_projects(account_id)

    assert len(queries) == 0


@pytest.mark.django_db
def test_reading_creates_no_pool(ada: Account) -> None:
    project = ProjectFactory.create(memory_shared=True)
    ProjectMemberFactory.create(project=project, account=ada)

    list(Memory.objects.readable_by(ada))
    list(Category.objects.usable_by(ada))

    assert not Category.objects.filter(project=project).exists()


@pytest.mark.django_db
def test_the_share_list_names_members_only_and_for_administrators(ada: Account, ben: Account) -> None:
    root = AccountFactory.create(is_staff=True)
    project = ProjectFactory.create(memory_shared=True)
    ProjectMemberFactory.create(project=project, account=ada, is_manager=True)

    with pytest.raises(Refused):
        set_share_list(project_id=project.pk, by=ada, account_ids=[ada.pk])
    with pytest.raises(Invalid):
        set_share_list(project_id=project.pk, by=root, account_ids=[ben.pk])
    with pytest.raises(NotFound):
        set_share_list(project_id=project.pk, by=root, account_ids=[10**9])
    assert set_share_list(project_id=project.pk, by=root, account_ids=[ada.pk, ada.pk]) == [ada.pk]
    assert set_share_list(project_id=project.pk, by=root, account_ids=[]) == []


@pytest.mark.django_db
def test_removing_a_member_takes_it_off_the_share_list(ada: Account, ben: Account) -> None:
    project = ProjectFactory.create(memory_shared=True)
    ProjectMemberFactory.create(project=project, account=ada, is_manager=True)
    ProjectMemberFactory.create(project=project, account=ben, on_share_list=True)

    remove_member(project_id=project.pk, by=ada, account_id=ben.pk)

    assert not ProjectMember.objects.filter(on_share_list=True).exists()
    assert not is_sharer(account_id=ben.pk, project_id=project.pk)


@pytest.mark.django_db(transaction=True)
def test_two_first_writes_racing_end_with_one_pool_and_two_memories() -> None:
    accounts = [AccountFactory.create() for _ in range(2)]
    project = ProjectFactory.create(memory_shared=True)
    for account in accounts:
        ProjectMemberFactory.create(project=project, account=account)

    at_once([partial(add_memory, by=account, body="First!", project_id=project.pk) for account in accounts])

    assert Category.objects.filter(owner=None, project=project).count() == 1
    assert Memory.objects.count() == 2
