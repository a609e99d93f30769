"""Deletes that are for good, and the expiry of what is only kept for a while."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from elowen.lib.errors import NotFound
from memories import audit
from memories.actions.editing import writable_rows
from memories.audit import Change, Note
from memories.models import Account, IdempotentReply, Memory, MemoryEvent, MemoryUse
from memories.models.memory import MemoryQuerySet

USAGE_HISTORY_DAYS = 90
REPLY_HOURS = 24
PURGE_BATCH = 500


@transaction.atomic
def purge_memories(*, by: Account, ids: Sequence[int], note: Note = Note()) -> int:  # noqa: B008
    """Delete memories for good, audited first. Foreign ids are skipped; an error leaves all as it was."""
    return _purge(writable_rows(Memory.objects.all(), by=by, note=note).filter(pk__in=set(ids)), by, note)


def purge_memory(*, memory_id: int, by: Account, note: Note = Note()) -> None:  # noqa: B008
    if not purge_memories(by=by, ids=[memory_id], note=note):
        raise NotFound


def empty_trash(*, by: Account, note: Note = Note()) -> int:  # noqa: B008 - frozen
    """Purge the caller's own deleted memories, in bounded transactions. Returns how many."""
    total = 0
    while purged := _purge_trash_batch(by, note):
        total += purged
    return total


def expire_uses(*, now: datetime, batch: int = 5000) -> int:
    """Delete one batch of usage events past their 90 days. Returns how many; call until it is 0."""
    old = MemoryUse.objects.filter(used_at__lt=now - timedelta(days=USAGE_HISTORY_DAYS))
    return MemoryUse.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:batch])).delete()[0]


def expire_replies(*, now: datetime, batch: int = 5000) -> int:
    """Delete one batch of remembered replies past their 24 hours. Returns how many."""
    old = IdempotentReply.objects.filter(created_at__lt=now - timedelta(hours=REPLY_HOURS))
    return IdempotentReply.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:batch])).delete()[0]


@transaction.atomic
def _purge_trash_batch(by: Account, note: Note) -> int:
    trash = Memory.objects.owned_by(by).filter(status=Memory.Status.DELETED)
    return _purge(
        trash.filter(pk__in=list(trash.order_by("pk").values_list("pk", flat=True)[:PURGE_BATCH])), by, note
    )


def _purge(rows: MemoryQuerySet, by: Account, note: Note) -> int:
    doomed = list(rows.order_by("pk").select_for_update(of=("self",)))
    changes = [Change(MemoryEvent.Action.PURGE, memory, audit.snapshot(memory), None) for memory in doomed]
    audit.record(changes, by=by, note=note)
    Memory.objects.filter(pk__in=[memory.pk for memory in doomed]).delete()
    return len(doomed)
