"""V9 to V12: the sweep over everybody's memories, and what it says of itself."""

import logging
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import Q
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from maintenance import candidates, retention
from maintenance.models import SweepRun
from maintenance.retention import UNUSABLE, sweep
from maintenance.schedules import next_sweep_at, sync_schedules
from memories import leases
from memories.config import RETENTION, load_document, save_section
from memories.models import Account, Memory, MemoryEvent
from memories.policy import DEFAULT_POLICY, RetentionPolicy, to_document
from memories.vitality import is_evictable
from tests.factories import AccountFactory, CategoryFactory, MemoryFactory, ProjectFactory
from tests.faults import at_each_eviction

pytestmark = pytest.mark.django_db

NOW = timezone.now()
COUNTS = ("scanned", "eligible", "evicted", "limited", "spared", "failed")


def faded(owner: Account | None, times: int = 1, **fields: object) -> list[Memory]:
    defaults = {"importance": 3, "created_at": NOW - timedelta(days=21)}
    return [MemoryFactory.create(owner=owner, **(defaults | fields)) for _ in range(times)]


def swept(now: datetime = NOW, *, dry_run: bool = False) -> SweepRun:
    run = sweep(now=now, dry_run=dry_run)
    assert run is not None
    return run


def swept_at(now: datetime) -> SweepRun:
    """Sweep when the machine's clock says so too."""
    with time_machine.travel(now, tick=False):
        return swept(now)


def counts(run: SweepRun) -> dict[str, int]:
    return {name: getattr(run, name) for name in COUNTS if getattr(run, name)}


def store(policy: RetentionPolicy, by: Account) -> None:
    _, revision = load_document()
    save_section(name=RETENTION, document=to_document(policy), revision=revision, by=by)


def taken() -> set[int]:
    return set(MemoryEvent.objects.filter(automatic=True).values_list("memory_id", flat=True))


def test_a_sweep_takes_what_is_due_and_tells_so_per_account(ada: Account, ben: Account) -> None:
    due = faded(ada, 7) + faded(ben, 2)
    fresh = [MemoryFactory.create(owner=ada), MemoryFactory.create(owner=ben, importance=10)]
    faded(ben, status=Memory.Status.ARCHIVED)

    run = swept()

    assert counts(run) == {"scanned": 11, "eligible": 9, "evicted": 7, "limited": 2}
    assert (run.state, run.asked_by, run.position) == (SweepRun.State.DONE, "", run.upto)
    rows = {row.account_id: counts_of(row) for row in run.accounts.all()}
    assert rows == {ada.pk: (7, 5, 2), ben.pk: (2, 2, 0)}
    assert taken() == {memory.pk for memory in due[:5] + due[7:]}
    assert {memory.status for memory in Memory.objects.filter(pk__in=[one.pk for one in fresh])} == {"active"}


def counts_of(row: object) -> tuple[int, ...]:
    return tuple(getattr(row, name) for name in ("eligible", "evicted", "limited"))


def test_a_sweep_counts_the_memories_of_nobody_together() -> None:
    pool = CategoryFactory.create(owner=None, project=ProjectFactory.create())
    faded(None, 6, category=pool)

    assert counts(swept()) == {"scanned": 6, "eligible": 6, "evicted": 5, "limited": 1}
    later = swept_at(NOW + timedelta(days=1, minutes=1))
    assert counts(later) == {"scanned": 1, "eligible": 1, "evicted": 1}


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8])
def test_no_memory_is_missed_or_seen_twice_between_pages(
    ada: Account, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(candidates, "PAGE_ROWS", rows)
    for place in range(7):
        faded(ada if place % 2 else AccountFactory.create())

    assert counts(swept()) == {"scanned": 7, "eligible": 7, "evicted": 7}


def test_a_dry_run_says_what_a_sweep_does_and_changes_nothing(
    ada: Account, ben: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "PAGE_ROWS", 2)
    faded(ada, 7)
    faded(ben, 2)

    imagined = swept(dry_run=True)

    assert not MemoryEvent.objects.exists()
    assert not Memory.objects.exclude(status=Memory.Status.ACTIVE).exists()
    real = swept()
    assert counts(imagined) == counts(real)
    assert {row.account_id: counts_of(row) for row in imagined.accounts.all()} == {
        row.account_id: counts_of(row) for row in real.accounts.all()
    }


def test_the_limit_is_that_of_the_settings_and_counts_across_sweeps(ada: Account) -> None:
    faded(ada, 9)
    store(replace(DEFAULT_POLICY, daily_deletion_limit=7), ada)
    first = swept()
    store(replace(DEFAULT_POLICY, daily_deletion_limit=3), ada)

    second = swept(NOW + timedelta(hours=23))

    assert counts(first)["evicted"] == 7
    assert counts(second) == {"scanned": 2, "eligible": 2, "limited": 2}


def test_an_account_at_its_limit_costs_no_transaction_per_memory(
    ada: Account, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    faded(ada, 5)
    swept()
    faded(ada, 40)

    with django_assert_num_queries(17):
        run = swept()

    assert counts(run) == {"scanned": 40, "eligible": 40, "limited": 40}


def test_the_next_sweep_comes_a_whole_day_after_the_last_one_ended(ada: Account) -> None:
    """Else the last moment's deletions would still be within the 24 hours, and a day lost."""
    sync_schedules()
    faded(ada, 8)

    first = swept()
    due_at = next_sweep_at(NOW)
    swept(dry_run=True)

    assert first.finished_at is not None
    assert due_at == first.finished_at + timedelta(hours=24)
    assert next_sweep_at(NOW) == due_at
    assert counts(swept_at(due_at)) == {"scanned": 3, "eligible": 3, "evicted": 3}


def test_a_sweep_on_a_slow_disk_keeps_its_lease_and_saves_its_counts_as_it_goes(
    ada: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "STEP_EVICTIONS", 2)
    monkeypatch.setattr(retention, "LEASE_SECONDS", 1)
    for account in [ada, *(AccountFactory.create() for _ in range(7))]:
        faded(account, 1)

    with at_each_eviction("PERFORM pg_sleep(0.25)"):
        run = swept()

    assert run.state == SweepRun.State.DONE
    assert counts(run) == {"scanned": 8, "eligible": 8, "evicted": 8}
    assert sum(row.evicted for row in run.accounts.all()) == 8


def test_counts_are_saved_once_however_often_it_is_tried() -> None:
    run = SweepRun.objects.create(started_at=NOW, policy={}, upto=9)
    step = retention._Step(9, 4, {None: Counter(eligible=3, evicted=3)})

    for _ in range(2):
        retention._save(run, step)

    run.refresh_from_db()
    assert counts(run) == {"scanned": 4, "eligible": 3, "evicted": 3}
    assert run.accounts.get().evicted == 3


def test_a_memory_raised_to_an_unusable_level_meanwhile_stops_nobody_else(ada: Account) -> None:
    document = to_document(DEFAULT_POLICY)
    document["halfLifeByImportance"] |= {"4": 0}
    save_section(name=RETENTION, document=document, revision=load_document()[1], by=ada)
    _, raised, _ = faded(ada, 3)

    with at_each_eviction(f"UPDATE memories_memory SET importance = 4 WHERE id = {raised.pk}"):
        run = swept()

    assert counts(run) == {"scanned": 3, "eligible": 3, "evicted": 2, "failed": 1}


def test_a_sweep_that_cannot_begin_gives_its_lease_back(ada: Account) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE maintenance_sweeprun ADD CONSTRAINT never CHECK (false) NOT VALID")
        with pytest.raises(IntegrityError), transaction.atomic():
            sweep(now=NOW)
        cursor.execute("ALTER TABLE maintenance_sweeprun DROP CONSTRAINT never")

    assert swept().state == SweepRun.State.DONE


def test_with_retention_off_nothing_is_looked_at(ada: Account) -> None:
    faded(ada)
    store(replace(DEFAULT_POLICY, enabled=False), ada)

    run = swept()

    assert counts(run) == {}
    assert (run.state, run.problem) == (SweepRun.State.DONE, "Retention is switched off.")


def test_an_empty_store_is_swept() -> None:
    assert counts(swept()) == {}


@pytest.mark.parametrize("value", [0, -1, None, "soon"])
def test_an_unusable_half_life_is_loud_and_spares_only_its_level(
    ada: Account, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    document = to_document(DEFAULT_POLICY)
    document["halfLifeByImportance"] |= {"3": value}
    save_section(name=RETENTION, document=document, revision=load_document()[1], by=ada)
    faded(ada, 2)
    young = faded(ada, 1, created_at=NOW - timedelta(days=3))
    others = faded(ada, 2, importance=2)

    with caplog.at_level(logging.INFO):
        run = swept()

    assert counts(run) == {"scanned": 5, "eligible": 2, "evicted": 2, "failed": 2}
    assert taken() == {memory.pk for memory in others}
    assert young[0].pk not in taken()
    assert run.problem == UNUSABLE
    assert UNUSABLE in caplog.text


def test_a_memory_that_cannot_be_evicted_does_not_stop_the_others(
    ada: Account, caplog: pytest.LogCaptureFixture
) -> None:
    first, broken, last = faded(ada, 3, body="between you and me")

    with at_each_eviction(f"IF new.memory_id = {broken.pk} THEN RAISE EXCEPTION '%', new.before; END IF"):
        run = swept()

    assert counts(run) == {"scanned": 3, "eligible": 3, "evicted": 2, "failed": 1}
    assert taken() == {first.pk, last.pk}
    assert f"Memory {broken.pk}" in caplog.text
    assert "between you and me" not in caplog.text


def test_what_is_used_while_the_page_is_worked_on_is_spared(ada: Account) -> None:
    _, used = faded(ada, 2)

    with at_each_eviction(f"UPDATE memories_memory SET last_used_at = now() WHERE id = {used.pk}"):
        run = swept()

    assert counts(run) == {"scanned": 2, "eligible": 2, "evicted": 1, "spared": 1}


def test_one_sweep_at_a_time(ada: Account) -> None:
    faded(ada)
    fence = leases.take(retention.LEASE, seconds=60, holder="another")
    assert fence

    assert sweep(now=NOW) is None

    leases.release(fence)
    assert counts(swept())["evicted"] == 1
    assert swept() is not None  # the lease was given back


def test_a_sweep_that_lost_its_lease_stops(ada: Account) -> None:
    faded(ada, 3)
    faded(AccountFactory.create(), 2)

    lapse = "UPDATE memories_lease SET fence = fence + 1 WHERE name = 'sweep'"
    with pytest.MonkeyPatch.context() as patch, at_each_eviction(lapse):
        patch.setattr(candidates, "PAGE_ROWS", 2)
        run = swept()

    assert run.state == SweepRun.State.STOPPED
    assert run.problem == "Its lease ended before it was renewed; another sweep may have begun."
    assert counts(run) == {"scanned": 2, "eligible": 2, "evicted": 2}


def test_one_line_of_the_log_tells_the_counts(ada: Account, caplog: pytest.LogCaptureFixture) -> None:
    faded(ada, 6)

    with caplog.at_level(logging.INFO):
        run = swept()

    assert (
        f"Sweep {run.pk}: done, scanned 6, eligible 6, evicted 5, spared 0, limited 1, failed 0."
        in caplog.text
    )


def test_the_command_sweeps_and_says_so(ada: Account, capsys: pytest.CaptureFixture[str]) -> None:
    faded(ada, 6)

    call_command("sweep", "--dry-run", "--accounts")
    imagined = capsys.readouterr().out
    call_command("sweep")
    real = capsys.readouterr().out

    assert "(dry run): done, scanned 6, eligible 6, evicted 5" in imagined
    assert f"account {ada.pk}: eligible 6, evicted 5, limited 1, spared 0, failed 0" in imagined
    assert ": done, scanned 6, eligible 6, evicted 5" in real
    assert Memory.objects.filter(status=Memory.Status.DELETED).count() == 5


def test_the_command_says_that_a_sweep_is_under_way() -> None:
    leases.take(retention.LEASE, seconds=60, holder="another")

    with pytest.raises(CommandError, match="under way"):
        call_command("sweep")


@pytest.mark.parametrize("seed", range(12))
def test_sweeps_agree_with_a_plain_reading_of_the_rules(
    seed: int, monkeypatch: pytest.MonkeyPatch, ada: Account
) -> None:
    random = Random(seed)
    monkeypatch.setattr(candidates, "PAGE_ROWS", random.choice([3, 10, 100]))
    policy = replace(
        DEFAULT_POLICY,
        floor=random.choice([1, 10, 49.9, 60]),
        grace_days=random.choice([0, 14, 40]),
        daily_deletion_limit=random.choice([1, 2, 5]),
    )
    store(policy, ada)
    people = [ada, *(AccountFactory.create() for _ in range(3))]
    for _ in range(60):
        memory = random_memory(random, random.choice(people))
        if random.random() < 0.2:
            mark = NOW - timedelta(hours=random.uniform(0, 30))
            MemoryEvent.objects.create(
                memory_id=0, account_id=memory.owner_id, action="delete", automatic=True, created_at=mark
            )

    expected, eligible = plainly_swept(policy)
    before = taken()
    run = swept()

    assert taken() - before == expected
    assert (run.eligible, run.evicted) == (eligible, len(expected))


def random_memory(random: Random, owner: Account) -> Memory:
    age = random.choice([0.5, 13.9, 14.1, 30, 100, 400]) * random.uniform(0.9, 1.1)
    created_at = NOW - timedelta(days=age)
    used = random.random() < 0.4
    memory: Memory = MemoryFactory.create(
        owner=owner,
        importance=random.randint(1, 10),
        created_at=created_at,
        use_count=random.randint(1, 20) if used else 0,
        last_used_at=created_at + (NOW - created_at) * random.random() if used else None,
        status=random.choice(["active"] * 5 + ["archived", "deleted"]),
    )
    return memory


def plainly_swept(policy: RetentionPolicy) -> tuple[set[int], int]:
    lately = Q(automatic=True, created_at__gt=NOW - timedelta(hours=24))
    spent = Counter(MemoryEvent.objects.filter(lately).values_list("account_id", flat=True))
    gone, eligible = set(), 0
    for memory in Memory.objects.order_by("pk"):
        if memory.status != "active" or not is_evictable(memory, policy, NOW):
            continue
        eligible += 1
        if spent[memory.owner_id] < policy.daily_deletion_limit:
            spent[memory.owner_id] += 1
            gone.add(memory.pk)
    return gone, eligible
