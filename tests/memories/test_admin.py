from collections.abc import Mapping

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from elowen.admin import ReadOnlyAdmin
from memories.actions.editing import add_memory, archive_memory, change_memory, delete_memory
from memories.actions.keys import authenticate_key, issue_key
from memories.models import Account, Memory, MemoryEvent
from tests.factories import PASSWORD, AccountFactory, MemoryFactory

MEMORIES = "/admin/memories/memory/"
EVENTS = "/admin/memories/memoryevent/"
SECRET = "Ada is allergic to walnuts"


@pytest.fixture
def operator(db: None) -> Account:
    """Staff with every permission of the memories app but the reading of bodies."""
    account: Account = AccountFactory.create(username="olga", is_staff=True)
    permissions = Permission.objects.filter(content_type__app_label="memories")
    account.user_permissions.set(permissions.exclude(codename="view_memory_body"))
    return account


@pytest.fixture
def console(client: Client, operator: Account) -> Client:
    client.force_login(operator)
    return client


def allow_bodies(operator: Account) -> None:
    operator.user_permissions.add(Permission.objects.get(codename="view_memory_body"))


def act(console: Client, action: str, *memories: Memory, reason: str = "") -> list[str]:
    """Run a bulk action and return what the operator is told."""
    data: Mapping[str, object] = {
        "action": action,
        "_selected_action": [memory.pk for memory in memories],
        "reason": reason,
    }
    answer = console.post(MEMORIES, data, follow=True)
    return [str(message) for message in answer.context["messages"]]


@pytest.mark.parametrize("model", [m for m in admin.site._registry if m._meta.app_label != "auth"])
def test_every_list_opens(admin_client: Client, model: type[Memory]) -> None:
    add_memory(by=Account.objects.get(), body="x")

    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")

    assert admin_client.get(address).status_code == 200


def test_what_machines_write_can_only_be_read(admin_client: Client) -> None:
    for model, model_admin in admin.site._registry.items():
        if isinstance(model_admin, ReadOnlyAdmin):
            name = f"admin:{model._meta.app_label}_{model._meta.model_name}_add"
            assert admin_client.get(reverse(name)).status_code == 403, name


def test_a_memory_cannot_be_edited_or_removed_around_the_audit(console: Client, ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada, body=SECRET)

    changed = console.post(f"{MEMORIES}{memory.pk}/change/", {"body": "changed"})
    deleted = console.post(f"{MEMORIES}{memory.pk}/delete/", {"post": "yes"})
    act(console, "delete_selected", memory)

    assert (changed.status_code, deleted.status_code) == (403, 403)
    assert Memory.objects.get().body == SECRET


@pytest.mark.parametrize("allowed", [False, True])
def test_bodies_need_a_permission_and_looks_are_recorded(
    console: Client, operator: Account, ada: Account, allowed: bool
) -> None:
    memory = add_memory(by=ada, body=SECRET)
    change_memory(memory_id=memory.pk, by=ada, changes={"body": f"{SECRET} and pistachios"})
    event = MemoryEvent.objects.latest("pk")
    if allowed:
        allow_bodies(operator)

    for address in (MEMORIES, f"{MEMORIES}{memory.pk}/change/", EVENTS, f"{EVENTS}{event.pk}/change/"):
        answer = console.get(address)
        assert answer.status_code == 200
        if address != EVENTS:
            assert ("pistachios" in answer.content.decode()) is allowed, address

    assert LogEntry.objects.filter(user=operator).exists() is allowed


def test_a_body_is_searched_only_by_those_who_may_read_it(
    console: Client, operator: Account, ada: Account
) -> None:
    add_memory(by=ada, body=SECRET)

    without = console.get(MEMORIES, {"q": "walnuts"}).context["cl"].result_count
    allow_bodies(operator)

    assert without == 0
    assert console.get(MEMORIES, {"q": "walnuts"}).context["cl"].result_count == 1


@pytest.mark.parametrize(
    "query",
    [
        {"status__exact": "active"},
        {"importance__exact": "5"},
        {"source__exact": "user"},
        {"evicted": "yes"},
        {"category__project__id__exact": "1"},
        {"q": "12"},
        {"q": "not a number"},
    ],
)
def test_the_list_can_be_narrowed(console: Client, ada: Account, query: dict[str, str]) -> None:
    MemoryFactory.create(owner=ada)

    answer = console.get(MEMORIES, query)

    assert answer.status_code == 200
    assert "e=1" not in answer.headers.get("Location", "")


@pytest.mark.parametrize("term", ["17", "user:3", "99999999999999999999999"])
def test_the_audit_can_be_searched(console: Client, term: str) -> None:
    assert console.get(EVENTS, {"q": term}).status_code == 200


@pytest.mark.parametrize("rows", [2, 30])
def test_the_list_has_no_hidden_queries(
    console: Client, ada: Account, rows: int, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    MemoryFactory.create_batch(rows, owner=ada)

    with django_assert_max_num_queries(14):
        console.get(MEMORIES)


def test_restoring_is_audited_with_the_operator_and_the_reason(
    console: Client, operator: Account, ada: Account
) -> None:
    memory = add_memory(by=ada, body="x")
    delete_memory(memory_id=memory.pk, by=ada)

    told = act(console, "restore", memory, reason="asked for by Ada")

    memory.refresh_from_db()
    event = MemoryEvent.objects.latest("pk")
    assert told == ["Restored: 1."]
    assert memory.status == Memory.Status.ACTIVE
    assert (event.action, event.actor, event.reason) == ("restore", f"user:{operator.pk}", "asked for by Ada")


def test_restore_and_keep_counts_as_contact(console: Client, ada: Account) -> None:
    memory = add_memory(by=ada, body="x")
    archive_memory(memory_id=memory.pk, by=ada)

    act(console, "restore_and_keep", memory)

    memory.refresh_from_db()
    assert memory.last_used_at is not None


@pytest.mark.parametrize(
    ("action", "status"), [("archive", Memory.Status.ARCHIVED), ("move_to_trash", Memory.Status.DELETED)]
)
def test_a_refusal_is_told_and_does_not_stop_the_others(
    console: Client, ada: Account, action: str, status: Memory.Status
) -> None:
    gone = add_memory(by=ada, body="gone already")
    delete_memory(memory_id=gone.pk, by=ada)
    there = [add_memory(by=ada, body=body) for body in ("a", "b")]

    told = act(console, action, gone, *there)

    assert told[0].endswith(": 2.")
    assert told[1].startswith("Could not be done: 1. There is no such record")
    assert {m.status for m in Memory.objects.exclude(pk=gone.pk)} == {status}


def test_an_operator_who_may_only_look_has_no_actions(client: Client, ada: Account) -> None:
    viewer = AccountFactory.create(is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_memory"))
    memory = add_memory(by=ada, body="x")
    delete_memory(memory_id=memory.pk, by=ada)
    client.force_login(viewer)

    act(client, "restore", memory)

    assert Memory.objects.get().status == Memory.Status.DELETED


def test_a_key_is_revoked_and_its_digest_never_shown(console: Client, ada: Account) -> None:
    issued = issue_key(account=ada, name="laptop")
    keys = "/admin/memories/apikey/"

    content = console.get(f"{keys}{issued.key.pk}/change/").content.decode()
    console.post(keys, {"action": "revoke", "_selected_action": [issued.key.pk]})

    assert bytes(issued.key.digest).hex() not in content
    assert "digest" not in content.lower()
    assert authenticate_key(issued.secret) is None


def test_an_account_is_made_with_its_switches(admin_client: Client) -> None:
    answer = admin_client.post(
        "/admin/memories/account/add/",
        {"username": "dora", "usable_password": "true", "password1": PASSWORD, "password2": PASSWORD},
    )

    account = Account.objects.get(username="dora")
    assert answer.status_code == 302
    assert "auto_save" in admin_client.get(f"/admin/memories/account/{account.pk}/change/").content.decode()
