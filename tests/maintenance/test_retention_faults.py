"""Sweeps that are killed, cut off or crowded, and sweeps of a large store."""

import json
import os
import time
from ast import literal_eval
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone
from django_q.models import Schedule

from elowen.lib import db
from maintenance import candidates, tasks
from maintenance.models import SweepRun
from maintenance.retention import LEASE, sweep
from maintenance.schedules import SWEEP_OPTIONS, next_sweep_at, sync_schedules
from memories import leases
from memories.models import Account, Lease, Memory, MemoryEvent
from tests.factories import AccountFactory, MemoryFactory
from tests.faults import at_each_eviction, evictions_seen
from tests.processes import answer, go, python

pytestmark = pytest.mark.django_db(transaction=True)

OLD = timedelta(days=21)
# A gate in the database, at which an eviction waits.
SHUT, OPEN = "SELECT pg_advisory_lock(8)", "SELECT pg_advisory_unlock(8)"
WAIT = "PERFORM pg_advisory_xact_lock(8);"
SWEEP = """
from django.utils import timezone
from maintenance.retention import sweep
run = sweep(now=timezone.now())
print(run and run.evicted)
"""


def faded(owner: Account, times: int) -> None:
    for _ in range(times):
        MemoryFactory.create(owner=owner, importance=3, created_at=timezone.now() - OLD)


def lost(account: Account) -> int:
    return MemoryEvent.objects.filter(automatic=True, account_id=account.pk).count()


def wait_until(happens: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < end, "It did not happen within a minute."
        time.sleep(0.02)


def let_the_lease_end() -> None:
    Lease.objects.filter(name=LEASE).update(until=timezone.now() - timedelta(seconds=1))


def test_of_four_processes_one_sweeps(ada: Account) -> None:
    faded(ada, 12)
    sweepers = [python(SWEEP) for _ in range(4)]

    go(*sweepers)
    said = [answer(sweeper).strip() for sweeper in sweepers]

    # A late one may find the lease free again, and then the limit reached.
    assert set(said) <= {"5", "None", "0"}
    assert said.count("5") == 1
    assert lost(ada) == 5


def test_a_sweep_killed_half_way_is_finished_by_the_next(ada: Account, ben: Account) -> None:
    people = [ada, ben, AccountFactory.create()]
    for account in people:
        faded(account, 7)

    with (
        connection.cursor() as gate,
        at_each_eviction("IF seen = 8 THEN PERFORM pg_advisory_xact_lock(8); END IF"),
    ):
        gate.execute("SELECT pg_advisory_lock(8)")
        victim = python(SWEEP)
        go(victim)
        wait_until(lambda: evictions_seen() == 8)
        victim.kill()
        victim.communicate(timeout=60)
        gate.execute(OPEN)
        wait_until(lambda: not others_in_transactions())

        run = sweep(now=timezone.now())

    assert run is not None
    assert [lost(account) for account in people] == [5, 5, 5]
    assert run.evicted == 15 - 7
    killed = SweepRun.objects.exclude(pk=run.pk).get()
    assert (killed.state, killed.problem) == (SweepRun.State.STOPPED, "Its process ended.")


def others_in_transactions() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND xact_start IS NOT NULL"
        )
        return bool(cursor.fetchone()[0])


def test_a_sweep_goes_on_after_the_database_dropped_its_connection(
    ada: Account, ben: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db, "RECONNECT_PAUSE_S", 0.01)
    for account in (ada, ben):
        faded(account, 4)

    with at_each_eviction("IF seen IN (3, 4, 7) THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF"):
        run = sweep(now=timezone.now())

    assert run is not None
    assert (run.state, run.scanned, run.evicted, run.failed) == (SweepRun.State.DONE, 8, 8, 0)
    assert (lost(ada), lost(ben)) == (4, 4)


@contextmanager
def nobody_let_in() -> Iterator[None]:
    """Cut off everybody but this test, and refuse new connections, as a database that is gone does."""
    name = connection.settings_dict["NAME"]
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as outside:
        outside.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        outside.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> %s",
            [name, connection.connection.info.backend_pid],
        )
        try:
            yield
        finally:
            outside.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


def test_a_sweep_without_a_database_fails_clean_and_the_next_one_finishes(ada: Account) -> None:
    faded(ada, 4)

    with connection.cursor() as gate, at_each_eviction(f"IF seen = 3 THEN {WAIT} END IF"):
        gate.execute(SHUT)
        victim = python(SWEEP)
        go(victim)
        wait_until(lambda: evictions_seen() == 3)
        with nobody_let_in():
            _, complaint = victim.communicate(timeout=60)
        gate.execute(OPEN)
    between = lost(ada)
    let_the_lease_end()
    run = sweep(now=timezone.now())

    assert victim.returncode == 1
    assert "OperationalError" in complaint
    assert between == 2
    assert run is not None
    assert (run.evicted, lost(ada)) == (2, 4)


def test_a_task_that_finds_a_sweep_under_way_looks_again_after_its_lease(ada: Account) -> None:
    faded(ada, 2)
    leases.take(LEASE, seconds=60, holder="another")

    tasks.sweep()
    tasks.sweep()

    planned = Schedule.objects.get()
    wait = planned.next_run - timezone.now()
    assert timedelta(seconds=60) < wait < timedelta(seconds=70)
    let_the_lease_end()
    tasks.sweep(**as_the_queue_calls_it(planned))
    assert lost(ada) == 2


def test_a_planned_look_is_left_out_when_a_sweep_has_ended_since(ada: Account) -> None:
    asked_at = timezone.now().isoformat()
    tasks.sweep()
    faded(ada, 2)

    tasks.sweep(asked_at=asked_at)

    assert SweepRun.objects.count() == 1
    assert lost(ada) == 0


def test_a_sweep_that_lost_its_lease_is_gone_on_with(
    ada: Account, ben: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    for account in (ada, ben):
        faded(account, 1)

    monkeypatch.setattr(candidates, "PAGE_ROWS", 1)
    with at_each_eviction("UPDATE memories_lease SET fence = fence + 1 WHERE name = 'sweep'"):
        tasks.sweep()
    assert (lost(ada), lost(ben)) == (1, 0)
    let_the_lease_end()
    tasks.sweep(**as_the_queue_calls_it(Schedule.objects.get()))

    assert lost(ben) == 1


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_an_operator_asks_for_during_a_sweep_is_not_forgotten(ada: Account, dry_run: bool) -> None:
    leases.take(LEASE, seconds=60, holder="another")

    tasks.sweep(dry_run=dry_run, asked_by="olga")
    let_the_lease_end()
    tasks.sweep(**as_the_queue_calls_it(Schedule.objects.get()))

    run = SweepRun.objects.get()
    assert (run.dry_run, run.asked_by) == (dry_run, "olga")


def as_the_queue_calls_it(planned: Schedule) -> dict[str, Any]:
    kwargs: dict[str, Any] = literal_eval(planned.kwargs)
    assert kwargs.pop("q_options") == SWEEP_OPTIONS  # the queue keeps these to itself
    return kwargs


def test_the_next_daily_sweep_is_known() -> None:
    now = timezone.now()
    assert next_sweep_at(now) == now  # nothing is planned

    sync_schedules()

    assert timedelta(hours=23, minutes=59) < next_sweep_at(now) - now < timedelta(hours=24, minutes=1)
    assert next_sweep_at(now + timedelta(days=3)) == now + timedelta(days=3)  # overdue


LARGE = """
import json, resource, sys
from django.utils import timezone
from maintenance.retention import sweep
def peak_kib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sweep(now=timezone.now(), dry_run=True)
before = peak_kib()
run = sweep(now=timezone.now())
print(json.dumps([run.scanned, run.evicted, run.limited, peak_kib() - before]))
"""
FILL = """
SET LOCAL session_replication_role = replica;
INSERT INTO memories_memory
    (owner_id, body, kind, importance, status, source, use_count, created_at, updated_at, origin)
SELECT (%(accounts)s::bigint[])[1 + n %% 500], 'memory ' || n, 'fact', 1 + n %% 10, 'active', 'user', 0,
       now() - make_interval(days => 5 + n %% 40), now(), '{}'
FROM generate_series(1, 250000) n
"""


def test_a_quarter_of_a_million_memories_are_swept_in_flat_memory() -> None:
    accounts = Account.objects.bulk_create(Account(username=f"a{n}", password="") for n in range(500))
    with connection.cursor() as cursor:
        cursor.execute(
            f"BEGIN; {FILL}; COMMIT; ANALYZE memories_memory", {"accounts": [a.pk for a in accounts]}
        )

    sweeper = python(LARGE)
    go(sweeper)
    scanned, evicted, limited, grown_kib = json.loads(answer(sweeper))

    by_account = MemoryEvent.objects.filter(automatic=True).values_list("account_id", flat=True)
    assert scanned == 250_000
    assert evicted == len(by_account) == Memory.objects.filter(status="deleted").count()
    assert limited > 10 * evicted
    assert max(map(list(by_account).count, set(by_account))) == 5
    assert grown_kib < 8 * 1024
