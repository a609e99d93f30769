"""Works off the memories that wait for a vector. Who runs it, and how often at once, does not matter."""

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection
from django_q.tasks import async_task

from elowen.lib.errors import Unavailable
from embeddings.actions.storing import Computed, store_vectors
from embeddings.config import active_space
from embeddings.connections import INSTANCE, Identity
from embeddings.embedding import Run, embed_batch
from embeddings.freshness import EXACT_HASH, INDEXED, JOINS, NEEDED
from embeddings.models import EmbeddingSpace, PendingMemory
from embeddings.space import EmbeddingSpaceChanged
from memories import leases

log = logging.getLogger(__name__)

LEASE = "embeddings.queue"
LEASE_S = 90
MAX_DRAIN_S = 60
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


# The first of every account, then the second of every account, and so on. Whoever claims a row has
# already put it off, so a process that dies on it does not meet it again at once. Accounts are found by
# hopping along the index: looking at every row of a large backlog would cost 170 ms a batch.
CLAIM = f"""
    WITH RECURSIVE accounts AS (
        SELECT min(account_id) AS id FROM embeddings_pendingmemory
        UNION ALL
        SELECT (SELECT min(account_id) FROM embeddings_pendingmemory WHERE account_id > accounts.id)
        FROM accounts WHERE accounts.id IS NOT NULL
    ),
    turns AS (
        SELECT own.*, row_number() OVER (PARTITION BY accounts.id ORDER BY next_at, memory_id) AS turn
        FROM accounts CROSS JOIN LATERAL (
            SELECT memory_id, next_at FROM embeddings_pendingmemory
            WHERE account_id = accounts.id AND next_at <= statement_timestamp()
                AND (attempts >= {SUSPECT_ATTEMPTS}) = %(suspects)s
            ORDER BY next_at, memory_id LIMIT %(count)s
        ) AS own
    ),
    first AS (SELECT * FROM turns ORDER BY turn, next_at, memory_id LIMIT %(count)s),
    sized AS (
        SELECT memory_id,
               sum(least(m.body_bytes, {TEXT_CHARS})) OVER (ORDER BY turn, next_at, memory_id) AS size
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
DUE = """
    SELECT 1 FROM embeddings_pendingmemory WHERE next_at <= clock_timestamp() LIMIT 1 FOR UPDATE SKIP LOCKED
"""

ENQUEUE_MISSING = f"""
    INSERT INTO embeddings_pendingmemory (memory_id, account_id, attempts, next_at)
    SELECT m.id, coalesce(m.owner_id, 0), 0, now() FROM memories_memory m {JOINS}
    WHERE m.status = 'active' AND NOT {INDEXED}
    ON CONFLICT (memory_id) DO NOTHING
"""  # noqa: S608 - constants

DROP_INACTIVE = """
    DELETE FROM embeddings_pendingmemory pending USING memories_memory m
    WHERE m.id = pending.memory_id AND m.status <> 'active'
"""


def wake() -> None:
    """Ask for a drain, unless one is asked for already and has not begun."""
    if leases.want(LEASE):
        async_task("embeddings.tasks.drain_queue")


def drain() -> int:
    """Index what is due, back to back while there is some. Returns how many vectors were stored.

    Only one process at a time gets past the lease; to the others there is nothing to do.
    """
    ends = time.monotonic() + MAX_DRAIN_S
    leases.begin(LEASE)
    stored = 0
    while fence := leases.take(LEASE, seconds=LEASE_S, holder=f"pid {os.getpid()}"):
        try:
            done, failed = index_due(fence, ends)
        finally:
            leases.release(fence)
        stored += done
        # Whoever came while the lease was held has found it taken and gone away again.
        if failed or not anything_due():
            break
        if time.monotonic() >= ends:
            wake()
            break
    return stored


def index_due(fence: leases.Fence, ends: float) -> tuple[int, bool]:
    """Work until nothing is due or time is up. Returns the vectors stored, and whether the model failed."""
    stored = 0
    try:
        run = Run.start()
        row = EmbeddingSpace.objects.row_of(run.space)
        while time.monotonic() < ends and (batch := claim(row)) and leases.renew(fence, seconds=LEASE_S):
            stored += index_batch(run, batch)
    except EmbeddingSpaceChanged:
        log.info("The embedding settings changed; this run ends.")
    except Unavailable as error:
        log.warning("Indexing stopped: %s", error)
        return stored, True
    return stored, False


def claim(space: EmbeddingSpace) -> list[Waiting]:
    """Take the next batch in turn, put off in case it fails; rows that failed often come last and alone."""
    return claim_rows(space, BATCH_TEXTS, suspects=False) or claim_rows(space, 1, suspects=True)


def claim_rows(space: EmbeddingSpace, count: int, *, suspects: bool) -> list[Waiting]:
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, {"space": space.pk, "count": count, "suspects": suspects})
        rows = cursor.fetchall()
    return [Waiting(pk, account, needed, text, bytes(digest)) for pk, account, needed, text, digest in rows]


def index_batch(run: Run, batch: Sequence[Waiting]) -> int:
    forget([one.memory_id for one in batch if not one.needed])
    needed = [one for one in batch if one.needed and one.text.strip()]
    stored, failure = 0, None
    for identity, group in groups(run, needed).items():
        try:
            stored += index_group(run, group, identity)
        except Unavailable as error:
            # What no connection may serve for one account must not hold up the others.
            failure = error
    if failure and not stored:
        raise failure
    return stored


def groups(run: Run, batch: Sequence[Waiting]) -> dict[Identity, list[Waiting]]:
    """Return who has what indexed: with a provider each account's own, else all of it together."""
    if not run.config.is_connected:
        return {INSTANCE: list(batch)}
    found: dict[Identity, list[Waiting]] = {}
    for one in batch:
        found.setdefault(Identity(one.account_id), []).append(one)
    return found


def index_group(run: Run, group: Sequence[Waiting], identity: Identity) -> int:
    vectors = embed_batch(run, [one.text for one in group], identity=identity)
    computed = [
        Computed(one.memory_id, one.body_hash, vector)
        for one, vector in zip(group, vectors, strict=True)
        if vector is not None
    ]
    return store_vectors(space=run.space, computed=computed)


def forget(memory_ids: Sequence[int]) -> None:
    """Take rows off the queue that were claimed and need nothing; one that was put there anew stays."""
    if memory_ids:
        PendingMemory.objects.filter(pk__in=memory_ids, attempts__gt=0).delete()


def anything_due() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(DUE)
        return cursor.fetchone() is not None


def reconcile(*, anew: bool = False) -> int:
    """Queue every active memory without a current vector in the active space. Returns how many were missing.

    Args:
        anew: also forget earlier failures, which were those of other settings.
    """
    row = EmbeddingSpace.objects.row_of(active_space())
    with connection.cursor() as cursor:
        cursor.execute(DROP_INACTIVE)
        cursor.execute(ENQUEUE_MISSING, {"space": row.pk})
        missing: int = cursor.rowcount
        if anew:
            cursor.execute(
                "UPDATE embeddings_pendingmemory SET attempts = 0, next_at = now() WHERE attempts > 0"
            )
    if anything_due():
        wake()
    return missing
