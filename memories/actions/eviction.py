"""The one way in which memories go by themselves: checked again, counted, audited, and reversible."""

from datetime import datetime
from enum import Enum
from functools import partial

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from elowen.lib.db import serializable
from memories.actions.editing import write_changes
from memories.audit import Note
from memories.models import Account, Memory, MemoryEvent
from memories.policy import LIMIT_WINDOW, RetentionPolicy
from memories.vitality import is_evictable, vitality

ACTOR = "daemon"
ATTEMPTS = 40


class Outcome(Enum):
    EVICTED = "evicted"
    SPARED = "spared"  # it is no longer there, or no longer to go
    LIMITED = "limited"  # the account has lost as many as a day may take


def auto_evict(*, memory_id: int, policy: RetentionPolicy, now: datetime) -> Outcome:
    """Move a faded memory to the trash, if it still is one and its author's daily limit allows.

    One SERIALIZABLE transaction, repeated a bounded number of times when it meets another.

    Args:
        now: the sweep's clock, by which the memory is judged and the window of 24 hours counted.
    Raises:
        ValueError: the policy has no usable half-life for the memory's importance.
        OperationalError: every attempt met another transaction, or the database is gone.
    """
    work = partial(_evict, memory_id, policy, now)
    return serializable(work, attempts=ATTEMPTS, wait=partial(_wait_for_account, memory_id))


def lately_evicted(now: datetime) -> Q:
    """Select the events that count against the limit: those of the 24 hours before the sweep's clock.

    Those after it count as well, and where the machine's clock is behind the sweep's, it decides: a clock
    that is set back must not make room for more.
    """
    return Q(automatic=True, created_at__gt=min(now, timezone.now()) - LIMIT_WINDOW)


def _evict(memory_id: int, policy: RetentionPolicy, now: datetime) -> Outcome:
    # The account first, so that the memories of one go one after the other and seldom in vain. Only
    # SERIALIZABLE guards the count: a pool's memory whose author is gone has no account to lock.
    # Without waiting: a snapshot from before a wait would not see what the other one did.
    list(_account_of(memory_id).select_for_update(of=("self",), no_key=True, nowait=True))
    memory = Memory.objects.active().filter(pk=memory_id).select_for_update(of=("self",)).first()
    if memory is None or not is_evictable(memory, policy, now):
        return Outcome.SPARED
    lost = MemoryEvent.objects.filter(lately_evicted(now), account_id=memory.owner_id)
    if lost.count() >= policy.daily_deletion_limit:
        return Outcome.LIMITED
    alive = vitality(memory, policy, now)
    reason = f"Vitality {alive:.2f} is below the floor of {policy.floor:g}."
    note = Note(actor=ACTOR, reason=reason, automatic=True)
    write_changes(memory, {"status": Memory.Status.DELETED}, by=None, note=note)
    return Outcome.EVICTED


@transaction.atomic
def _wait_for_account(memory_id: int) -> None:
    list(_account_of(memory_id).select_for_update(of=("self",), no_key=True))


def _account_of(memory_id: int) -> QuerySet[Account]:
    return Account.objects.filter(memories=memory_id)
