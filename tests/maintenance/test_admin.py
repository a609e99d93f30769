"""P10, P11: operators see the sweeps and start them."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ
from pytest_django import DjangoAssertNumQueries

from maintenance.models import SweepRun
from maintenance.retention import sweep
from maintenance.tasks import sweep as sweep_task
from memories.actions.editing import add_memory
from memories.actions.eviction import auto_evict
from memories.models import Account, Memory, MemoryEvent
from memories.policy import DEFAULT_POLICY
from tests.factories import AccountFactory, MemoryFactory

pytestmark = pytest.mark.django_db

SWEEPS = "/admin/maintenance/sweeprun/"
ACCOUNTS = "/admin/maintenance/sweepaccount/"
EVENTS = "/admin/memories/memoryevent/"


@pytest.fixture
def viewer(client: Client) -> Client:
    """Staff who may look at sweeps and start none."""
    account = AccountFactory.create(is_staff=True)
    account.user_permissions.set(Permission.objects.filter(codename__in=["view_sweeprun"]))
    client.force_login(account)
    return client


def faded(owner: Account, times: int) -> None:
    for _ in range(times):
        MemoryFactory.create(owner=owner, importance=3, created_at=timezone.now() - timedelta(days=21))


def text(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def queued() -> list[dict[str, object]]:
    return [task.task["kwargs"] for task in OrmQ.objects.all()]


def test_a_sweep_is_told_with_its_counts_and_those_of_each_account(
    admin_client: Client, ada: Account
) -> None:
    faded(ada, 7)
    sweep(now=timezone.now() - timedelta(days=2), dry_run=True)
    run = sweep(now=timezone.now())
    assert run is not None

    page = text(admin_client, f"{SWEEPS}{run.pk}/change/")
    accounts = admin_client.get(f"{ACCOUNTS}?run={run.pk}").context["cl"].result_list

    assert f"{ACCOUNTS}?run={run.pk}" in page
    assert "100%" in page
    assert [(row.account_id, row.eligible, row.evicted, row.limited) for row in accounts] == [
        (ada.pk, 7, 5, 2)
    ]


@pytest.mark.parametrize("button", ["dry_run", "sweep"])
def test_a_sweep_is_asked_for_with_the_operators_name(
    admin_client: Client, admin_user: Account, button: str
) -> None:
    answer = admin_client.post(f"{SWEEPS}start/", {button: "1"}, follow=True)

    assert "asked for" in str(next(iter(answer.context["messages"])))
    assert queued() == [{"dry_run": button == "dry_run", "asked_by": admin_user.username}]


def test_what_was_asked_for_is_done_and_listed(admin_client: Client, ada: Account) -> None:
    faded(ada, 2)
    admin_client.post(f"{SWEEPS}start/", {"dry_run": "1"})

    sweep_task(**queued()[0])  # type: ignore[arg-type]

    page = text(admin_client, SWEEPS)
    assert "dry run" in page
    assert Memory.objects.active().count() == 2


def test_who_may_only_look_starts_nothing(viewer: Client) -> None:
    page = text(viewer, SWEEPS)

    refused = viewer.post(f"{SWEEPS}start/", {"sweep": "1"})

    assert refused.status_code == 403
    assert "Sweep now" not in page
    assert not OrmQ.objects.exists()


def test_a_member_and_a_link_start_nothing(client: Client, admin_client: Client, ada: Account) -> None:
    client.force_login(ada)

    assert client.post(f"{SWEEPS}start/", {"sweep": "1"}).status_code == 302  # to the sign-in
    assert admin_client.get(f"{SWEEPS}start/").status_code == 405
    assert not OrmQ.objects.exists()


def test_the_list_has_no_hidden_queries(
    admin_client: Client, ada: Account, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    faded(ada, 1)
    for _ in range(9):
        sweep(now=timezone.now(), dry_run=True)

    with django_assert_max_num_queries(6):
        text(admin_client, SWEEPS)
    with django_assert_max_num_queries(6):
        text(admin_client, ACCOUNTS)


@pytest.mark.parametrize(
    ("query", "actions"),
    [
        ("by=daemon", {"delete"}),
        ("by=people", {"add"}),
        ("automatic__exact=1", {"delete"}),
        ("automatic__exact=0", {"add"}),
        ("action__exact=delete", {"delete"}),
        ("by=agent", set()),
    ],
)
def test_the_audit_can_be_narrowed_to_what_the_sweep_did(
    admin_client: Client, ada: Account, query: str, actions: set[str]
) -> None:
    add_memory(by=ada, body="stays")
    faded(ada, 1)
    going = Memory.objects.latest("pk")
    auto_evict(memory_id=going.pk, policy=DEFAULT_POLICY, now=timezone.now())

    answer = admin_client.get(f"{EVENTS}?{query}")

    assert {event.action for event in answer.context["cl"].result_list} == actions


def test_the_audit_of_one_memory_is_one_link_away(admin_client: Client, ada: Account) -> None:
    kept, other = add_memory(by=ada, body="a"), add_memory(by=ada, body="b")

    answer = admin_client.get(f"{EVENTS}?memory_id={kept.pk}")

    assert {event.memory_id for event in answer.context["cl"].result_list} == {kept.pk} != {other.pk}
    assert MemoryEvent.objects.count() == 2


def test_a_running_sweep_shows_how_far_it_is(admin_client: Client) -> None:
    SweepRun.objects.create(started_at=timezone.now(), policy={}, upto=200, position=50)

    assert "25%" in text(admin_client, SWEEPS)
