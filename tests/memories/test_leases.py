from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from elowen.processes import poll
from memories import leases
from memories.models import Lease
from tests.processes import go, python

pytestmark = pytest.mark.django_db


def expire() -> None:
    Lease.objects.update(until=timezone.now() - timedelta(seconds=1))


def test_only_one_holds_a_lease_until_it_is_released() -> None:
    first = leases.take("job", seconds=60, holder="a")
    refused = leases.take("job", seconds=60, holder="b")
    assert first is not None
    leases.release(first)
    second = leases.take("job", seconds=60, holder="b")

    assert refused is None
    assert second is not None
    assert second.number > first.number


def test_a_lease_that_ran_out_is_free_and_its_old_holder_is_told() -> None:
    first = leases.take("job", seconds=60, holder="a")
    assert first is not None
    expire()
    second = leases.take("job", seconds=60, holder="b")
    assert second is not None

    assert not leases.renew(first, seconds=60)
    leases.release(first)
    assert leases.renew(second, seconds=60)
    assert Lease.objects.get().holder == "b"


def test_an_expired_lease_cannot_be_renewed_even_if_nobody_took_it() -> None:
    fence = leases.take("job", seconds=60, holder="a")
    assert fence is not None
    expire()

    assert not leases.renew(fence, seconds=60)


def test_leases_of_other_names_do_not_mind_each_other() -> None:
    assert leases.take("one", seconds=60, holder="a")
    assert leases.take("two", seconds=60, holder="a")


def test_wanting_counts_once_until_the_job_begins() -> None:
    wanted = [leases.want("job"), leases.want("job")]
    leases.begin("job")
    again = [leases.want("job"), leases.want("job")]

    assert (wanted, again) == ([True, False], [True, False])


def test_wanting_neither_takes_nor_blocks_the_lease() -> None:
    leases.want("job")
    fence = leases.take("job", seconds=60, holder="a")
    leases.begin("job")

    assert fence is not None
    assert leases.want("job")
    assert leases.renew(fence, seconds=60)


HOLD = """
from memories import leases
print(leases.take("job", seconds=3600, holder="doomed"), flush=True)
input()
"""


@pytest.mark.django_db(transaction=True)
def test_the_lease_of_a_killed_process_is_free_at_once() -> None:
    with python(HOLD) as doomed:
        go(doomed)
        assert doomed.stdout
        assert doomed.stdout.readline().startswith("Fence")
        while_it_lives = leases.take("job", seconds=60, holder="next")
        doomed.kill()

        assert poll(lambda: leases.take("job", seconds=60, holder="next") is not None, 10)

    assert while_it_lives is None
    assert Lease.objects.get().until < timezone.now() + timedelta(seconds=61)


@pytest.mark.django_db(transaction=True)
def test_a_holder_that_had_to_connect_again_holds_on() -> None:
    fence = leases.take("job", seconds=60, holder="a")
    before = Lease.objects.get().session_pid
    connection.close()

    assert fence
    assert leases.renew(fence, seconds=60)
    assert Lease.objects.get().session_pid != before
    assert leases.take("job", seconds=60, holder="b") is None


@pytest.mark.django_db(transaction=True)
def test_a_number_that_went_to_another_session_holds_nothing() -> None:
    leases.take("job", seconds=60, holder="a")
    Lease.objects.update(session_began=timezone.now() - timedelta(days=1))

    assert leases.take("job", seconds=60, holder="b")
