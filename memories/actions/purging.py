"""Deletes that are for good, and the expiry of what is only kept for a while."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from elowen.lib.errors import NotFound
from memories import audit
from memories.actions.editing import writable_rows
from memories.audit import PLAIN, Change, Note
from memories.models import Account, IdempotentReply, Memory, MemoryEvent, MemoryUse
from memories.models.memory import MemoryQuerySet

USAGE_HISTORY_DAYS = 90
REPLY_HOURS = 24
PURGE_BATCH = 500


@transaction.atomic
def purge_memories(*, by: Account, ids: Sequence[int], note: Note = PLAIN) -> int:
    """Delete memories for good, audited first. Foreign ids are skipped; an error leaves all as it was."""
    return _purge(writable_rows(Memory.objects.all(), by=by, note=note).filter(pk__in=set(ids)), by, note)


def purge_memory(*, memory_id: int, by: Account, note: Note = PLAIN) -> None:
    if not purge_memories(by=by, ids=[memory_id], note=note):
        raise NotFound


def purge_all(rows: MemoryQuerySet, *, by: Account, note: Note = PLAIN) -> int:
    """Purge every one of these rows, a bounded batch at a time. Returns how many.

    Each batch is a transaction of its own, unless the caller holds one.
    """
    total = 0
    while purged := _purge_batch(rows, by, note):
        total += purged
    return total


def empty_trash(*, by: Account, note: Note = PLAIN) -> int:
    """Purge the caller's own deleted memories. Returns how many."""
    return purge_all(Memory.objects.owned_by(by).filter(status=Memory.Status.DELETED), by=by, note=note)


def expire_uses(*, now: datetime, batch: int = 5000) -> int:
    """Delete one batch of usage events past their 90 days. Returns how many; call until it is 0."""
    old = MemoryUse.objects.filter(used_at__lt=now - timedelta(days=USAGE_HISTORY_DAYS))
    return MemoryUse.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:batch])).delete()[0]


def expire_replies(*, now: datetime, batch: int = 5000) -> int:
    """Delete one batch of remembered replies past their 24 hours. Returns how many."""
    old = IdempotentReply.objects.filter(created_at__lt=now - timedelta(hours=REPLY_HOURS))
    return IdempotentReply.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:batch])).delete()[0]


@transaction.atomic
def _purge_batch(rows: MemoryQuerySet, by: Account, note: Note) -> int:
    # Asked for again under the lock: what was restored meanwhile stays.
    ids = list(rows.order_by("pk").values_list("pk", flat=True)[:PURGE_BATCH])
    return _purge(rows.filter(pk__in=ids), by, note)


def _purge(rows: MemoryQuerySet, by: Account, note: Note) -> int:
    doomed = list(rows.order_by("pk").select_for_update(of=("self",)))
    changes = [Change(MemoryEvent.Action.PURGE, memory, audit.snapshot(memory), None) for memory in doomed]
    audit.record(changes, by=by, note=note)
    ids = [memory.pk for memory in doomed]
    Memory.objects.filter(pk__in=ids).delete()
    # A remembered reply would keep the body for a day.
    IdempotentReply.objects.filter(memory_ids__overlap=ids).update(reply=None)
    return len(doomed)
