"""R2, R3, R8, R10-R12: accounts, keys, categories and projects as the actions write them."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from elowen.lib.errors import Conflict, Invalid, NotFound, Refused
from memories.actions import accounts, categories, keys, projects
from memories.actions.editing import add_memory
from memories.models import Account, ApiKey, Category, Memory, MemoryEvent
from tests.factories import AccountFactory, CategoryFactory, ProjectFactory, ProjectMemberFactory

pytestmark = pytest.mark.django_db

STRONG = "elw_Abcdef12_Zq7-kT0_pXw4LmN8vRb2YcJ6sHd1FgAe"


def test_a_new_account_has_one_category_and_its_switches() -> None:
    account = accounts.create_account(username="dora", password="correct horse battery")

    assert list(account.categories.values_list("name", flat=True)) == ["General"]
    assert (account.auto_recall, account.auto_live_recall, account.auto_save) == (True, True, False)
    assert account.check_password("correct horse battery")


def test_an_account_without_a_password_has_none_that_works() -> None:
    assert not accounts.create_account(username="dora").has_usable_password()


@pytest.mark.parametrize(
    ("username", "password"), [("dora", "12345678"), ("no spaces", "correct horse battery")]
)
def test_a_weak_password_or_an_odd_name_makes_no_account(username: str, password: str) -> None:
    with pytest.raises(Invalid):
        accounts.create_account(username=username, password=password)

    assert not Account.objects.exists()


def test_a_taken_name_is_a_conflict(ada: Account) -> None:
    with pytest.raises(Conflict):
        accounts.create_account(username="ada")


def test_deleting_an_account_takes_its_own_rows_and_leaves_its_pool_rows(ada: Account, ben: Account) -> None:
    project = ProjectFactory.create(memory_shared=True)
    for account in (ada, ben):
        ProjectMemberFactory.create(project=project, account=account)
    shared = add_memory(by=ada, body="For all.", project_id=project.pk)
    add_memory(by=ada, body="For me.")

    accounts.delete_account(account=ada, by=AccountFactory.create(is_staff=True))

    shared.refresh_from_db()
    assert shared.owner is None
    assert list(Memory.objects.readable_by(ben)) == [shared]
    assert Memory.objects.count() == 1
    assert MemoryEvent.objects.filter(action="purge").count() == 1


def test_a_key_is_stored_as_a_digest_only(ada: Account) -> None:
    issued = keys.issue_key(account=ada, name="laptop")

    stored = ApiKey.objects.filter(pk=issued.key.pk).values().get()
    assert issued.secret.startswith("elw_")
    assert issued.secret[12:] not in str(stored)
    assert keys.authenticate_key(issued.secret) == issued.key


def test_a_key_stops_working_when_revoked_expired_or_its_account_locked(ada: Account) -> None:
    revoked, account_locked = (keys.issue_key(account=ada, name="k") for _ in range(2))
    expired = keys.issue_key(account=ada, name="k", expires_at=timezone.now() + timedelta(days=1))
    ApiKey.objects.filter(pk=expired.key.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    keys.revoke_key(account=ada, key_id=revoked.key.pk)

    assert keys.authenticate_key(revoked.secret) is None
    assert keys.authenticate_key(expired.secret) is None
    assert keys.authenticate_key(account_locked.secret) is not None
    accounts.deactivate_account(account_id=ada.pk)
    assert keys.authenticate_key(account_locked.secret) is None


@pytest.mark.parametrize("guess", ["", "elw_", "Bearer", "x" * 5000, STRONG])
def test_a_guess_is_nobodys_key(ada: Account, guess: str) -> None:
    keys.issue_key(account=ada, name="k")

    assert keys.authenticate_key(guess) is None


def test_a_right_prefix_with_a_wrong_secret_is_nobodys_key(ada: Account) -> None:
    issued = keys.issue_key(account=ada, name="k")

    assert keys.authenticate_key(issued.secret[:-1] + ("a" if issued.secret[-1] != "a" else "b")) is None


def test_last_use_is_written_at_most_once_a_minute(ada: Account) -> None:
    issued = keys.issue_key(account=ada, name="k")
    keys.authenticate_key(issued.secret)
    first = ApiKey.objects.get().last_used_at

    keys.authenticate_key(issued.secret)

    assert first is not None
    assert ApiKey.objects.get().last_used_at == first


def test_checking_a_key_costs_two_statements(ada: Account) -> None:
    issued = keys.issue_key(account=ada, name="k")

    with CaptureQueriesContext(connection) as queries:
        keys.authenticate_key(issued.secret)

    assert len(queries) == 2


@pytest.mark.parametrize(
    "secret", ["", "secret", "elw_abc_def", "elw_abcdefgh_" + "a" * 43, "elw_abcdefgh_" + "ab" * 20]
)
def test_a_weak_key_of_ones_own_choice_is_refused(ada: Account, secret: str) -> None:
    with pytest.raises(Invalid):
        keys.issue_key(account=ada, name="k", secret=secret)


def test_a_strong_key_of_ones_own_choice_works(ada: Account) -> None:
    keys.issue_key(account=ada, name="k", secret=STRONG)

    assert keys.authenticate_key(STRONG) is not None


def test_a_strangers_key_cannot_be_revoked(ada: Account, cleo: Account) -> None:
    issued = keys.issue_key(account=ada, name="k")

    with pytest.raises(NotFound):
        keys.revoke_key(account=cleo, key_id=issued.key.pk)

    assert keys.authenticate_key(issued.secret) is not None


def test_category_collisions_are_named(ada: Account) -> None:
    project = ProjectFactory.create()
    ProjectMemberFactory.create(project=project, account=ada)
    categories.create_category(owner=ada, name="Work", project_id=project.pk)

    with pytest.raises(Conflict) as same_name:
        categories.create_category(owner=ada, name="Work")
    with pytest.raises(Conflict) as same_project:
        categories.create_category(owner=ada, name="Work 2", project_id=project.pk)

    assert (same_name.value.field, same_project.value.field) == ("name", "projectId")


def test_binding_to_a_project_needs_it_and_membership(ada: Account) -> None:
    project = ProjectFactory.create()

    with pytest.raises(NotFound):
        categories.create_category(owner=ada, name="Work", project_id=project.pk + 1_000)
    with pytest.raises(Refused):
        categories.create_category(owner=ada, name="Work", project_id=project.pk)


def test_an_unknown_icon_becomes_a_folder(ada: Account) -> None:
    assert categories.create_category(owner=ada, name="Work", icon="Dragon").icon == "Folder"


def test_nobody_edits_a_strangers_category_or_a_pool(ada: Account, cleo: Account) -> None:
    own = CategoryFactory.create(owner=ada)
    project = ProjectFactory.create(memory_shared=True)
    ProjectMemberFactory.create(project=project, account=cleo)
    pool = Category.objects.create(owner=None, project=project, name="pool")

    for category in (own, pool):
        with pytest.raises(NotFound):
            categories.update_category(category_id=category.pk, by=cleo, changes={"name": "mine"})
        with pytest.raises(NotFound):
            categories.delete_category(category_id=category.pk, by=cleo)


def test_only_managers_change_a_project_and_only_administrators_share_it(
    ada: Account, ben: Account, cleo: Account
) -> None:
    project = projects.create_project(by=ada, slug="kolin", name="Kolín")
    projects.set_member(project_id=project.pk, by=ada, account_id=ben.pk)
    root = AccountFactory.create(is_staff=True)

    with pytest.raises(Refused):
        projects.update_project(project_id=project.pk, by=ben, changes={"name": "Mine"})
    with pytest.raises(NotFound):
        projects.update_project(project_id=project.pk, by=cleo, changes={"name": "Mine"})
    with pytest.raises(Refused):
        projects.update_project(project_id=project.pk, by=ada, changes={"memory_shared": True})

    assert projects.update_project(
        project_id=project.pk, by=root, changes={"memory_shared": True}
    ).memory_shared


def test_deleting_a_project_leaves_its_memories_uncategorised(ada: Account) -> None:
    project = projects.create_project(by=ada, slug="kolin", name="Kolín")
    memory = add_memory(by=ada, body="Tea.", project_id=project.pk)

    projects.delete_project(project_id=project.pk, by=ada)

    memory.refresh_from_db()
    assert (memory.category, memory.status, memory.owner) == (None, "active", ada)


@pytest.mark.parametrize(
    "changes", [{"slug": "no spaces"}, {"slug": ""}, {"root_path": "relative/path"}, {"name": ""}]
)
def test_a_project_refuses_odd_values(ada: Account, changes: dict[str, str]) -> None:
    project = projects.create_project(by=ada, slug="kolin", name="Kolín")

    with pytest.raises(Invalid) as refusal:
        projects.update_project(project_id=project.pk, by=ada, changes=changes)

    assert refusal.value.field == next(iter(changes))
