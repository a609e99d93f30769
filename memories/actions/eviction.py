"""The one way in which memories go by themselves: checked again, counted, audited, and reversible."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import partial

from django.db.models import Q

from elowen.lib.db import serializable
from memories.actions.editing import write_changes
from memories.audit import Note
from memories.models import Account, Memory, MemoryEvent
from memories.policy import LIMIT_WINDOW, RetentionPolicy
from memories.vitality import is_evictable, vitality

ACTOR = "daemon"


class Outcome(Enum):
    EVICTED = "evicted"
    SPARED = "spared"  # it is no longer there, or no longer to go
    LIMITED = "limited"  # the account has lost as many as a day may take


@dataclass(frozen=True)
class Eviction:
    outcome: Outcome
    free_at: datetime | None = None  # when a refused account's window is empty again


def auto_evict(*, memory_id: int, policy: RetentionPolicy, now: datetime) -> Eviction:
    """Move a faded memory to the trash, if it still is one and its author's daily limit allows.

    One SERIALIZABLE transaction, repeated a bounded number of times when it meets another.

    Args:
        now: the sweep's clock, by which the memory is judged and the window of 24 hours counted.
    Raises:
        ValueError: the policy has no usable half-life for the memory's importance.
        OperationalError: every attempt met another transaction, or the database is gone.
    """
    return serializable(partial(_evict, memory_id, policy, now))


def automatic_deletions(*, since: datetime) -> Q:
    """Select the events that count against the limit.

    Those after `now` count as well: a clock that was set back must not make room for more.
    """
    return Q(automatic=True, created_at__gt=since)


def _evict(memory_id: int, policy: RetentionPolicy, now: datetime) -> Eviction:
    # The account first, so that the memories of one go one after the other and seldom in vain. Only
    # SERIALIZABLE guards the count: a pool's memory whose author is gone has no account to lock.
    list(Account.objects.filter(memories=memory_id).select_for_update(of=("self",), no_key=True))
    memory = Memory.objects.active().filter(pk=memory_id).select_for_update(of=("self",)).first()
    if memory is None or not is_evictable(memory, policy, now):
        return Eviction(Outcome.SPARED)
    newest = _window(memory.owner_id, now, at_most=policy.daily_deletion_limit)
    if len(newest) >= policy.daily_deletion_limit:
        return Eviction(Outcome.LIMITED, free_at=newest[0] + LIMIT_WINDOW if newest else None)
    alive = vitality(memory, policy, now)
    reason = f"Vitality {alive:.2f} is below the floor of {policy.floor:g}."
    note = Note(actor=ACTOR, reason=reason, automatic=True)
    write_changes(memory, {"status": Memory.Status.DELETED}, by=None, note=note)
    return Eviction(Outcome.EVICTED)


def _window(account_id: int | None, now: datetime, *, at_most: int) -> list[datetime]:
    """Return when the account's latest automatic deletions of the last 24 hours were, newest first."""
    events = MemoryEvent.objects.filter(automatic_deletions(since=now - LIMIT_WINDOW), account_id=account_id)
    return list(events.order_by("-created_at").values_list("created_at", flat=True)[: max(at_most, 1)])
