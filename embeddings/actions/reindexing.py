"""What a space lacks is queued: all of it after a change of the model, and whatever else was lost."""

from functools import partial

from django.db import connection, transaction
from django.db.models import F, Max
from django.utils import timezone
from django_q.tasks import async_task

from elowen.lib.errors import Conflict, Refused
from embeddings.actions.storing import lock_settings
from embeddings.config import active_space
from embeddings.freshness import INDEXED, JOINS
from embeddings.models import EmbeddingSpace, PendingMemory, Reindex
from embeddings.pending import SUSPECT_ATTEMPTS, anything_due, wake
from embeddings.space import EmbeddingSpaceChanged, VectorSpace, assert_space
from memories.models import Account, Memory

State = Reindex.State

DROP_INACTIVE = """
    DELETE FROM embeddings_pendingmemory pending USING memories_memory m
    WHERE m.id = pending.memory_id AND m.status <> 'active'
"""

# After a change back, most of what the change had queued is there already.
DROP_INDEXED = f"""
    DELETE FROM embeddings_pendingmemory WHERE backfill AND memory_id IN (
        SELECT m.id FROM embeddings_pendingmemory own JOIN memories_memory m ON m.id = own.memory_id {JOINS}
        WHERE own.backfill AND {INDEXED})
"""  # noqa: S608 - constants

# A memory that somebody is writing right now is left to that commit: waiting for it could deadlock.
ENQUEUE_MISSING = f"""
    INSERT INTO embeddings_pendingmemory (memory_id, account_id, attempts, next_at, backfill)
    SELECT m.id, coalesce(m.owner_id, 0), 0, now(), true FROM memories_memory m {JOINS}
    WHERE m.id >= %(first)s AND m.id < %(end)s AND m.status = 'active' AND NOT {INDEXED}
    FOR SHARE OF m SKIP LOCKED
    ON CONFLICT (memory_id) DO NOTHING
"""  # noqa: S608 - constants
STRETCH = 10_000  # of ids, looked at in one transaction


def reconcile(*, anew: bool = False, asked_by: str = "") -> int:
    """Queue every active memory without a current vector in the active space. Returns how many were missing.

    Args:
        anew: also forget earlier failures, which were those of other settings, and go on after a stop.
        asked_by: who wants it on record even if nothing is missing.
    """
    try:
        space = begin(anew=anew, asked_by=asked_by)
        last = Memory.objects.aggregate(last=Max("pk"))["last"] or 0
        missing = sum(enqueue(space, first) for first in range(0, last + 1, STRETCH))
    except EmbeddingSpaceChanged:
        return 0  # whoever changed the settings has asked for this anew
    if anything_due():
        wake()
    return missing


@transaction.atomic
def begin(*, anew: bool, asked_by: str) -> VectorSpace:
    """Take off the queue what needs nothing, and end the reindexing of another space."""
    lock_settings(shared=True)
    space = active_space()
    row = EmbeddingSpace.objects.row_of(space)
    with connection.cursor() as cursor:
        cursor.execute(DROP_INACTIVE)
        cursor.execute(DROP_INDEXED, {"space": row.pk})
    if anew:
        PendingMemory.objects.filter(attempts__gt=0).update(attempts=0, next_at=timezone.now())
        Reindex.objects.filter(space=row, state=State.STOPPED).update(state=State.RUNNING, stopped_by="")
    over = Reindex.objects.open().exclude(space=row)
    if over.update(state=State.SUPERSEDED, ended_at=timezone.now()) or asked_by:
        open_reindex(row, asked_by=asked_by)
    return space


@transaction.atomic
def enqueue(space: VectorSpace, first: int) -> int:
    """Queue what lacks a vector among the ids from `first` on. Returns how many those were.

    Raises:
        EmbeddingSpaceChanged: the settings no longer mean this space.
    """
    lock_settings(shared=True)  # so that it is still the active one when this commits
    assert_space(space, active_space())
    row = EmbeddingSpace.objects.row_of(space)
    with connection.cursor() as cursor:
        cursor.execute(ENQUEUE_MISSING, {"space": row.pk, "first": first, "end": first + STRETCH})
        missing: int = cursor.rowcount
    if missing and not Reindex.objects.open().update(total=F("total") + missing):
        open_reindex(row)
    return missing


def open_reindex(space: EmbeddingSpace, *, asked_by: str = "") -> None:
    total = PendingMemory.objects.filter(backfill=True).count()
    row = Reindex(space=space, total=total, asked_by=asked_by)
    Reindex.objects.bulk_create([row], ignore_conflicts=True)  # another process may just have begun one


def end_reindex() -> None:
    """Note that it is done, once all that is left has been refused several times."""
    left = PendingMemory.objects.filter(backfill=True, attempts__lt=SUSPECT_ATTEMPTS)
    running = Reindex.objects.filter(state=State.RUNNING)
    if running.exists() and not left.exists():
        running.update(state=State.DONE, ended_at=timezone.now())


@transaction.atomic
def begin_reindex(*, by: Account) -> None:
    """Have everything that lacks a vector looked for and indexed; what was stopped goes on."""
    administrator(by)
    transaction.on_commit(
        partial(async_task, "embeddings.tasks.reconcile", anew=True, asked_by=f"user:{by.pk}")
    )


@transaction.atomic
def stop_reindex(*, by: Account) -> None:
    """Leave what waits since the change of the model alone until the reindexing is begun again.

    Raises:
        Conflict: none is running.
    """
    administrator(by)
    running = Reindex.objects.filter(state=State.RUNNING)
    if not running.update(state=State.STOPPED, stopped_by=f"user:{by.pk}"):
        raise Conflict("No reindexing is running.")


def administrator(by: Account) -> None:
    if not by.is_staff:
        raise Refused("Only administrators decide about the index.")
