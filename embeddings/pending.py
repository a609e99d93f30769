"""The table of memories that wait for a vector: who is next, who is put off, who needs nothing any more."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import F
from django.utils import timezone
from django_q.tasks import async_task

from embeddings.freshness import EXACT_HASH, JOINS, NEEDED
from embeddings.models import EmbeddingSpace, PendingMemory, Reindex
from memories import leases

LEASE = "embeddings.queue"  # of the one process that works the table off
BATCH_TEXTS = 50
BATCH_CHARS = 60_000
TEXT_CHARS = 16_000  # the rest of a longer text has no say in its vector
FIRST_BACK_OFF_S = 15
MAX_DOUBLINGS = 8  # 64 minutes
SUSPECT_ATTEMPTS = 3  # such rows go alone: one that breaks its batch must not hold up the others


@dataclass(frozen=True)
class Waiting:
    memory_id: int
    account_id: int | None  # whose memory it is
    needed: bool  # False: its vector is there, or it is not active any more
    text: str
    body_hash: bytes


STOPPED = f"EXISTS (SELECT FROM embeddings_reindex WHERE state = '{Reindex.State.STOPPED}')"

# The first of every account, then the second of every account, and so on; what somebody has just written
# before what a change of the model has queued. Whoever claims a row has already put it off, so a process
# that dies on it does not meet it again at once. Accounts are found by hopping along the index: looking at
# every row of a large backlog would cost 170 ms a batch.
CLAIM = f"""
    WITH RECURSIVE accounts AS (
        SELECT min(account_id) AS id FROM embeddings_pendingmemory
        UNION ALL
        SELECT (SELECT min(account_id) FROM embeddings_pendingmemory WHERE account_id > accounts.id)
        FROM accounts WHERE accounts.id IS NOT NULL
    ),
    kinds (later) AS (VALUES (false) UNION ALL SELECT true WHERE NOT {STOPPED}),
    turns AS (
        SELECT own.*, later, row_number() OVER (
            PARTITION BY accounts.id, later ORDER BY next_at, memory_id) AS turn
        FROM accounts CROSS JOIN kinds CROSS JOIN LATERAL (
            SELECT memory_id, next_at FROM embeddings_pendingmemory
            WHERE account_id = accounts.id AND account_id <> ALL(%(without)s)
                AND backfill = later AND next_at <= statement_timestamp()
                AND (attempts >= {SUSPECT_ATTEMPTS}) = %(suspects)s
            ORDER BY next_at, memory_id LIMIT %(count)s
        ) AS own
    ),
    first AS (SELECT * FROM turns ORDER BY later, turn, next_at, memory_id LIMIT %(count)s),
    sized AS (
        SELECT memory_id,
               sum(least(m.body_bytes, {TEXT_CHARS})) OVER (ORDER BY later, turn, next_at, memory_id) AS size
        FROM first JOIN memories_memory m ON m.id = memory_id
    ),
    locked AS (
        SELECT memory_id FROM embeddings_pendingmemory
        WHERE memory_id IN (SELECT memory_id FROM sized WHERE size <= {BATCH_CHARS})
            AND next_at <= clock_timestamp()
        FOR UPDATE SKIP LOCKED
    ),
    claimed AS (
        UPDATE embeddings_pendingmemory AS pending
        SET attempts = least(attempts + 1, 1000),
            next_at = clock_timestamp() + make_interval(
                secs => {FIRST_BACK_OFF_S} * power(2, least(attempts, {MAX_DOUBLINGS})))
        FROM locked WHERE pending.memory_id = locked.memory_id
        RETURNING pending.memory_id
    )
    SELECT m.id, m.owner_id, {NEEDED},
           CASE WHEN {NEEDED} THEN left(m.body, {TEXT_CHARS}) ELSE '' END,
           CASE WHEN {NEEDED} THEN {EXACT_HASH} ELSE '' END
    FROM claimed JOIN memories_memory m ON m.id = claimed.memory_id {JOINS}
    ORDER BY m.id
"""  # noqa: S608 - constants

# Not those that somebody is writing right now: that commit asks for a drain of its own.
DUE = f"""
    SELECT 1 FROM embeddings_pendingmemory
    WHERE next_at <= clock_timestamp() AND NOT (backfill AND {STOPPED})
    LIMIT 1 FOR UPDATE SKIP LOCKED
"""  # noqa: S608 - constants


def wake() -> None:
    """Ask for a drain, unless one is asked for already and has not begun."""
    if leases.want(LEASE):
        async_task("embeddings.tasks.drain_queue")


def claim(space: EmbeddingSpace, *, without: Collection[int] = ()) -> list[Waiting]:
    """Take the next batch in turn, put off in case it fails; rows that failed often come last and alone.

    Args:
        without: accounts whose turn it is not, as nobody may serve them now.
    """
    return claim_rows(space, BATCH_TEXTS, without, suspects=False) or claim_rows(
        space, 1, without, suspects=True
    )


def claim_rows(
    space: EmbeddingSpace, count: int, without: Collection[int], *, suspects: bool
) -> list[Waiting]:
    values: dict[str, Any] = {
        "space": space.pk,
        "count": count,
        "suspects": suspects,
        "without": list(without),
    }
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, values)
        rows = cursor.fetchall()
    return [Waiting(pk, account, needed, text, bytes(digest)) for pk, account, needed, text, digest in rows]


def forget(memory_ids: Sequence[int]) -> None:
    """Take rows off the queue that were claimed and need nothing; one that was put there anew stays."""
    if memory_ids:
        PendingMemory.objects.filter(pk__in=memory_ids, attempts__gt=0).delete()


def hold(memory_ids: Sequence[int], *, until: datetime) -> None:
    """Give claimed rows back until somebody may be asked again; that nobody may is no fault of theirs."""
    claimed = PendingMemory.objects.filter(pk__in=memory_ids, attempts__gt=0)
    claimed.update(attempts=F("attempts") - 1, next_at=until)


def retry_now() -> None:
    """Have everything that was put off tried now, as a reason for its failures may be gone."""
    now = timezone.now()
    PendingMemory.objects.filter(next_at__gt=now).update(next_at=now)
    if anything_due():
        wake()


def anything_due() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(DUE)
        return cursor.fetchone() is not None
