"""Works off the memories that wait for a vector. Who runs it, and how often at once, does not matter."""

import logging
import os
import time
from collections.abc import Mapping, Sequence
from functools import partial

from django.db import DatabaseError, InterfaceError, OperationalError

from elowen.lib.errors import Unavailable
from elowen.providers.errors import ContentRefused
from embeddings.actions.reindexing import end_reindex
from embeddings.actions.storing import Computed, store_vectors
from embeddings.connections import INSTANCE, Identity, not_before
from embeddings.corpora import index_corpora
from embeddings.embedding import Run, embed_batch
from embeddings.failures import Operation, failed, indexed, succeeded
from embeddings.models import EmbeddingSpace
from embeddings.pending import LEASE, Waiting, anything_due, claim, forget, hold, wake
from embeddings.space import EmbeddingSpaceChanged
from memories import leases

log = logging.getLogger(__name__)

LEASE_S = 90
OUTAGES = (OperationalError, InterfaceError)  # of the whole database, not of one row
MAX_DRAIN_S = 60


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
    end_reindex()
    return stored


def index_due(fence: leases.Fence, ends: float) -> tuple[int, bool]:
    """Work until nothing is due or time is up. Returns the vectors stored, and whether a model failed."""
    stored = 0
    held = set[int]()  # accounts that nobody may serve now
    try:
        run = Run.start()
        row = EmbeddingSpace.objects.row_of(run.space)
        while (
            time.monotonic() < ends
            and (batch := claim(row, without=held))
            and leases.renew(fence, seconds=LEASE_S)
        ):
            stored += index_batch(run, batch, held)
        index_corpora(run, until=ends, holds_on=partial(leases.renew, fence, seconds=LEASE_S))
    except EmbeddingSpaceChanged:
        log.info("The embedding settings changed; this run ends.")
    except Unavailable as error:
        log.warning("Indexing stopped: %s", error)
        return stored, True
    return stored, bool(held)


def index_batch(run: Run, batch: Sequence[Waiting], held: set[int]) -> int:
    """Index one batch and add to `held` whom nobody may serve before a stated time."""
    forget([one.memory_id for one in batch if not one.needed])
    needed = [one for one in batch if one.needed and one.text.strip()]
    stored, failure = 0, None
    for identity, group in groups(run, needed).items():
        try:
            stored += index_group(run, group, identity)
        except Unavailable as error:
            # What no connection may serve for one account must not hold up the others.
            if not put_off(run, group, identity, held):
                failed(Operation.TRANSPORT, identity.account_id, error)
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
    computed = list[Computed]()
    for one, vector in zip(group, vectors, strict=True):
        if vector is None:
            failed(Operation.REFUSED, one.account_id, ContentRefused(), subject=str(one.memory_id))
        else:
            computed.append(Computed(one.memory_id, one.body_hash, vector))
    stored = store(run, computed, whose={one.memory_id: one.account_id for one in group})
    succeeded(Operation.TRANSPORT, identity.account_id)
    return stored


def store(run: Run, computed: list[Computed], *, whose: Mapping[int, int | None]) -> int:
    """Store vectors, and return how many: one that the database refuses keeps out no other."""
    try:
        stored = store_vectors(space=run.space, computed=computed)
    except OUTAGES:
        raise
    except DatabaseError as error:
        if len(computed) > 1:
            return sum(store(run, [one], whose=whose) for one in computed)
        memory_id = computed[0].memory_id
        failed(Operation.WRITE, whose[memory_id], error, subject=str(memory_id))
        return 0
    indexed([one.memory_id for one in computed])
    return stored


def put_off(run: Run, group: Sequence[Waiting], identity: Identity, held: set[int]) -> bool:
    """After a failure, give the group back until the time that was stated for it, if one was."""
    until = not_before(run.config, identity)
    if until is None:
        return False
    hold([one.memory_id for one in group], until=until)
    held |= {one.account_id or 0 for one in group}
    return True
