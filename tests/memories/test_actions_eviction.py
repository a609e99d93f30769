"""V10: one memory goes, or not, whatever has happened since it was looked at."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
import time_machine
from django.utils import timezone

from memories.actions.accounts import delete_account
from memories.actions.editing import (
    archive_memory,
    change_memory,
    delete_memory,
    keep_memory,
    restore_memory,
    set_category,
)
from memories.actions.eviction import Outcome, auto_evict
from memories.actions.purging import purge_memory
from memories.actions.usage import mark_used
from memories.models import Account, Memory, MemoryEvent
from memories.policy import DEFAULT_POLICY, RetentionPolicy
from tests.factories import AccountFactory, CategoryFactory, MemoryFactory, ProjectFactory
from tests.faults import at_each_eviction, evictions_seen
from tests.processes import answer, go, python
from tests.threads import PATIENCE_S, at_once, in_thread

NOW = timezone.now()


def faded(owner: Account | None, **fields: object) -> Memory:
    """Return a memory of importance 3 that nobody used for 21 days, three half-lives: vitality 6.25."""
    defaults = {"importance": 3, "created_at": NOW - timedelta(days=21)}
    memory: Memory = MemoryFactory.create(owner=owner, **(defaults | fields))
    return memory


def evict(
    memory: Memory, policy: RetentionPolicy = DEFAULT_POLICY, *, at: timedelta = timedelta()
) -> Outcome:
    return auto_evict(memory_id=memory.pk, policy=policy, now=NOW + at)


def lost(account: Account | None, ago: timedelta, *, automatic: bool = True) -> None:
    """Put a deletion into the trail."""
    MemoryEvent.objects.create(
        memory_id=0,
        account_id=account.pk if account else None,
        action="delete",
        actor="daemon",
        automatic=automatic,
        created_at=NOW - ago,
    )


@pytest.mark.django_db
def test_a_faded_memory_goes_to_the_trash_with_an_event_that_says_why(ada: Account) -> None:
    memory = faded(ada, body="seldom needed")

    assert evict(memory) is Outcome.EVICTED

    memory.refresh_from_db()
    event = MemoryEvent.objects.get()
    assert memory.status == Memory.Status.DELETED
    assert (event.action, event.actor, event.automatic) == ("delete", "daemon", True)
    assert event.account_id == ada.pk
    assert event.reason == "Vitality 6.25 is below the floor of 10."
    assert event.before is not None
    assert event.after is not None
    assert (event.before["status"], event.after["status"]) == ("active", "deleted")
    assert event.after["body"] == "seldom needed"


@pytest.mark.django_db
def test_an_evicted_memory_is_restored_like_any_other(ada: Account) -> None:
    memory = faded(ada)
    evict(memory)

    restore_memory(memory_id=memory.pk, by=ada)
    again = evict(memory)
    restore_memory(memory_id=memory.pk, by=ada, keep=True)

    assert again is Outcome.EVICTED  # R19: a plain restore is no contact
    assert evict(memory) is Outcome.SPARED
    memory.refresh_from_db()
    assert memory.status == Memory.Status.ACTIVE


SAVING: dict[str, Callable[[Memory, Account], object]] = {
    "used": lambda memory, by: mark_used(reader=by, ids=[memory.pk], now=NOW),
    "kept": lambda memory, by: keep_memory(memory_id=memory.pk, by=by),
    "raised": lambda memory, by: change_memory(memory_id=memory.pk, by=by, changes={"importance": 10}),
    "archived": lambda memory, by: archive_memory(memory_id=memory.pk, by=by),
    "deleted": lambda memory, by: delete_memory(memory_id=memory.pk, by=by),
    "purged": lambda memory, by: purge_memory(memory_id=memory.pk, by=by),
    "deleted, restored and kept": lambda memory, by: (
        delete_memory(memory_id=memory.pk, by=by),
        restore_memory(memory_id=memory.pk, by=by, keep=True),
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize("how", SAVING)
def test_what_happened_since_the_page_spares_a_memory(ada: Account, how: str) -> None:
    memory = faded(ada)
    SAVING[how](memory, ada)

    assert evict(memory) is Outcome.SPARED

    assert not MemoryEvent.objects.filter(automatic=True).exists()


@pytest.mark.django_db
def test_an_edit_or_a_move_is_no_contact_and_the_trail_tells_the_latest(ada: Account) -> None:
    memory, elsewhere = faded(ada, body="old"), CategoryFactory.create(owner=ada)
    change_memory(memory_id=memory.pk, by=ada, changes={"body": "new"})
    set_category(memory_id=memory.pk, by=ada, category_id=elsewhere.pk)

    assert evict(memory) is Outcome.EVICTED

    before = MemoryEvent.objects.get(automatic=True).before
    assert before is not None
    assert (before["body"], before["category_id"]) == ("new", elsewhere.pk)


@pytest.mark.django_db
def test_a_day_takes_no_more_than_the_limit(ada: Account, ben: Account) -> None:
    memories = [faded(ada) for _ in range(7)]
    other = faded(ben)

    outcomes = [evict(memory) for memory in memories]

    assert outcomes == [Outcome.EVICTED] * 5 + [Outcome.LIMITED] * 2
    assert evict(other) is Outcome.EVICTED


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("ago", "outcome"),
    [
        (timedelta(hours=24), Outcome.EVICTED),
        (timedelta(hours=24) - timedelta(microseconds=1), Outcome.LIMITED),
        (timedelta(0), Outcome.LIMITED),
        (timedelta(hours=-1), Outcome.LIMITED),  # the clock was set back an hour since
    ],
)
def test_the_window_reaches_back_24_hours_and_has_no_end(
    ada: Account, ago: timedelta, outcome: Outcome
) -> None:
    for _ in range(5):
        lost(ada, ago)

    assert evict(faded(ada)) is outcome


@pytest.mark.django_db
def test_a_clock_set_back_an_hour_makes_no_room(ada: Account) -> None:
    memories = [faded(ada) for _ in range(10)]
    for memory in memories[:5]:
        evict(memory)

    later = [evict(memory, at=-timedelta(hours=1)) for memory in memories[5:]]

    assert later == [Outcome.LIMITED] * 5


@pytest.mark.django_db
def test_a_lowered_limit_counts_what_the_window_holds(ada: Account) -> None:
    for hours in (1, 2, 3):
        lost(ada, timedelta(hours=hours))

    lowered = replace(DEFAULT_POLICY, daily_deletion_limit=2)

    assert evict(faded(ada), lowered) is Outcome.LIMITED


@pytest.mark.django_db
def test_what_people_deleted_does_not_count(ada: Account) -> None:
    for _ in range(9):
        lost(ada, timedelta(hours=1), automatic=False)

    assert evict(faded(ada)) is Outcome.EVICTED


@pytest.mark.django_db
def test_pool_memories_whose_author_is_gone_have_a_limit_together(ada: Account) -> None:
    pools = [CategoryFactory.create(owner=None, project=ProjectFactory.create()) for _ in range(2)]
    memories = [faded(None, category=pools[place % 2]) for place in range(6)]

    outcomes = [evict(memory) for memory in memories]

    assert outcomes == [Outcome.EVICTED] * 5 + [Outcome.LIMITED]
    assert evict(faded(ada)) is Outcome.EVICTED


@pytest.mark.django_db
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_malformed_policy_is_loud_only_past_grace(ada: Account, value: float) -> None:
    broken = replace(DEFAULT_POLICY, half_lives=(value,) * 10)
    young = faded(ada, created_at=NOW - timedelta(days=14))

    assert evict(young, broken) is Outcome.SPARED
    with pytest.raises(ValueError, match="importance 3"):
        evict(faded(ada), broken)
    assert not MemoryEvent.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("floor", [50.5, 90])
def test_a_floor_above_50_takes_what_was_never_used_as_soon_as_grace_ends(ada: Account, floor: float) -> None:
    policy = replace(DEFAULT_POLICY, floor=floor, grace_days=0)
    fresh = faded(ada, created_at=NOW, importance=10)

    assert evict(fresh, policy) is Outcome.SPARED  # an age of nothing is not greater than a grace of nothing
    assert evict(fresh, policy, at=timedelta(microseconds=1)) is Outcome.EVICTED


@pytest.mark.django_db
def test_with_retention_off_nothing_goes(ada: Account) -> None:
    assert evict(faded(ada), replace(DEFAULT_POLICY, enabled=False)) is Outcome.SPARED


@pytest.mark.django_db
def test_a_machine_whose_clock_fell_behind_the_sweeps_still_counts(ada: Account) -> None:
    memories = [faded(ada) for _ in range(6)]

    with time_machine.travel(NOW - timedelta(hours=30), tick=False):
        outcomes = [evict(memory) for memory in memories]

    assert outcomes == [Outcome.EVICTED] * 5 + [Outcome.LIMITED]


@pytest.mark.django_db
@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_of_nothing_takes_nothing(ada: Account, limit: int) -> None:
    assert evict(faded(ada), replace(DEFAULT_POLICY, daily_deletion_limit=limit)) is Outcome.LIMITED


@pytest.mark.django_db
def test_a_half_life_of_almost_nothing_is_no_error(ada: Account) -> None:
    assert evict(faded(ada), replace(DEFAULT_POLICY, half_lives=(1e-310,) * 10)) is Outcome.EVICTED


@pytest.mark.django_db(transaction=True)
def test_of_memories_without_an_author_no_two_go_at_once() -> None:
    """No account to lock: only the isolation of the transaction keeps the count."""
    pool = CategoryFactory.create(owner=None, project=ProjectFactory.create())
    memories = [faded(None, category=pool) for _ in range(4)]
    one_a_day = replace(DEFAULT_POLICY, daily_deletion_limit=1)

    with at_each_eviction("PERFORM pg_sleep(0.3)"):
        outcomes = at_once([partial(evict, memory, one_a_day) for memory in memories])

    assert outcomes.count(Outcome.EVICTED) == 1
    assert MemoryEvent.objects.filter(automatic=True).count() == 1


def wait_for_events() -> None:
    end = time.monotonic() + PATIENCE_S
    while not evictions_seen():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.django_db(transaction=True)
def test_an_account_can_be_deleted_while_its_memories_are_swept(ada: Account, ben: Account) -> None:
    """Whoever waits for whom: in the end the account is gone, and its memory purged and not evicted."""
    memory = faded(ada)

    def delete() -> None:
        delete_account(account=ada, by=ben)

    with at_each_eviction("PERFORM pg_sleep(1)", when="new.action = 'purge'"):
        deleting = in_thread(delete)
        wait_for_events()
        outcome = evict(memory)
        deleting.join(PATIENCE_S)

    assert outcome is Outcome.SPARED
    assert not Account.objects.filter(pk=ada.pk).exists()
    assert not Memory.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_four_threads_at_one_account_never_take_a_sixth(ada: Account) -> None:
    memories = [faded(ada) for _ in range(12)]

    def work(place: int) -> list[Outcome]:
        return [evict(memory) for memory in memories[3 * place :] + memories[: 3 * place]]

    given = at_once([partial(work, place) for place in range(4)])
    outcomes = [outcome for one in given for outcome in one]

    assert outcomes.count(Outcome.EVICTED) == 5
    assert MemoryEvent.objects.filter(automatic=True).count() == 5


FOUR_PROCESSES = """
import json, random
from django.utils import timezone
from memories.actions.eviction import auto_evict
from memories.models import Memory
from memories.policy import DEFAULT_POLICY
now, outcomes, ids = timezone.now(), [], list(Memory.objects.values_list("pk", flat=True))
random.shuffle(ids)  # in one order, each would wait for the other at the first row
for memory_id in ids:
    outcomes.append(auto_evict(memory_id=memory_id, policy=DEFAULT_POLICY, now=now).value)
print(json.dumps(outcomes))
"""


@pytest.mark.django_db(transaction=True)
def test_four_processes_at_once_never_take_a_sixth_of_anybody() -> None:
    accounts = [AccountFactory.create() for _ in range(3)]
    pool = CategoryFactory.create(owner=None, project=ProjectFactory.create())
    for _ in range(9):
        for account in accounts:
            faded(account)
        faded(None, category=pool)
    sweepers = [python(FOUR_PROCESSES) for _ in range(4)]

    go(*sweepers)
    outcomes = [json.loads(answer(sweeper)) for sweeper in sweepers]

    taken = sum(outcome.count("evicted") for outcome in outcomes)
    assert taken == 5 * 4  # three accounts and nobody
    for account_id in [*(account.pk for account in accounts), None]:
        assert MemoryEvent.objects.filter(automatic=True, account_id=account_id).count() == 5
