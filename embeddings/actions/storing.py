"""Writes of the embeddings app: vectors that were computed, and the settings they were computed under."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from django_q.tasks import async_task

from elowen.lib.errors import Invalid
from elowen.providers.catalog import PROVIDERS
from elowen.providers.vectors import Vector
from embeddings.config import SECTION, EmbeddingConfig, active_space, endpoint
from embeddings.embedding import WidthChanged
from embeddings.freshness import EXACT_HASH
from embeddings.models import Connection, CorpusDigest, CorpusVector, EmbeddingSpace
from embeddings.scoring import vector_cursor, vector_param
from embeddings.space import VectorSpace, assert_space
from memories.config import load_document, save_section
from memories.models import Account

# One number for "the embedding settings", among PostgreSQL's advisory locks.
SETTINGS_LOCK = 0x656D6265


@dataclass(frozen=True)
class Computed:
    memory_id: int
    body_hash: bytes  # of the exact body that was embedded
    vector: Vector


# The hash is computed from the locked row itself: the re-check of a row that has just changed sees no
# newer row of another table. Rows that somebody is writing right now are skipped instead of waited for,
# so this is never part of a deadlock.
STORE = f"""
    WITH given (memory_id, body_hash, vec) AS (VALUES {{rows}}),
    locked AS MATERIALIZED (
        SELECT m.id, m.owner_id, m.category_id, given.body_hash, given.vec
        FROM memories_memory m JOIN given ON given.memory_id = m.id
        WHERE m.status = 'active' AND {EXACT_HASH} = given.body_hash
        FOR NO KEY UPDATE OF m SKIP LOCKED
    ),
    stored AS (
        INSERT INTO embeddings_memoryembedding (memory_id, space_id, account_id, category_id, body_hash, vec)
        SELECT id, %(space)s, owner_id, category_id, body_hash, vec FROM locked
        ON CONFLICT (memory_id, space_id) DO UPDATE
        SET account_id = excluded.account_id, category_id = excluded.category_id,
            body_hash = excluded.body_hash, vec = excluded.vec
        RETURNING memory_id
    ),
    hashed AS (
        INSERT INTO memories_bodyhash (memory_id, sha256) SELECT id, body_hash FROM locked
        ON CONFLICT (memory_id) DO UPDATE SET sha256 = excluded.sha256
        WHERE memories_bodyhash.sha256 <> excluded.sha256
    ),
    done AS (DELETE FROM embeddings_pendingmemory WHERE memory_id IN (SELECT memory_id FROM stored))
    SELECT count(*) FROM stored
"""  # noqa: S608 - constants


@transaction.atomic
def store_vectors(*, space: VectorSpace, computed: Sequence[Computed]) -> int:
    """Store the vectors whose memory still has that very body and is active. Returns how many those were.

    Raises:
        EmbeddingSpaceChanged: the settings no longer mean this space; nothing is stored.
        WidthChanged: the space holds vectors of another width; nothing is stored.
    """
    if not computed:
        return 0
    lock_settings(shared=True)
    assert_space(space, active_space())
    row = EmbeddingSpace.objects.row_of(space)
    claim_width(row, {len(one.vector) for one in computed})
    values: dict[str, Any] = {"space": row.pk}
    for place, one in enumerate(computed):
        values |= {
            f"i{place}": one.memory_id,
            f"h{place}": one.body_hash,
            f"v{place}": vector_param(one.vector),
        }
    rows = ", ".join(
        f"(%(i{at})s::bigint, %(h{at})s::bytea, %(v{at})s::halfvec)" for at in range(len(computed))
    )
    with vector_cursor() as cursor:
        stored = cursor.execute(STORE.format(rows=rows), values).fetchone()
    return int(stored[0]) if stored else 0


@transaction.atomic
def store_corpus(*, space: VectorSpace, corpus: str, vectors: Mapping[bytes, Vector]) -> None:
    """Store vectors of texts that are the same for everybody, by the hashes of the texts.

    Raises:
        EmbeddingSpaceChanged, WidthChanged: as of memories; nothing is stored.
    """
    if not vectors:
        return
    lock_settings(shared=True)
    assert_space(space, active_space())
    row = EmbeddingSpace.objects.row_of(space)
    claim_width(row, {len(vector) for vector in vectors.values()})
    rows = [
        CorpusVector(corpus=corpus, space=row, text_hash=digest, vec=vector)
        for digest, vector in vectors.items()
    ]
    CorpusVector.objects.bulk_create(rows, ignore_conflicts=True)


@transaction.atomic
def verify_corpus(*, space: VectorSpace, corpus: str, digest: bytes, hashes: Collection[bytes]) -> None:
    """Note that the corpus is complete, and drop what it says no longer."""
    row = EmbeddingSpace.objects.row_of(space)
    dead = CorpusVector.objects.filter(corpus=corpus, space=row).exclude(text_hash__in=list(hashes))
    dead.delete()
    CorpusDigest.objects.update_or_create(
        corpus=corpus, defaults={"digest": digest, "verified_at": timezone.now()}
    )


def claim_width(row: EmbeddingSpace, widths: set[int]) -> None:
    """Let only one width into a space, that of its first vectors: others have no cosine with them."""
    if row.dims is None:
        # Another process may be first; then its width is the one that counts.
        EmbeddingSpace.objects.filter(pk=row.pk, dims=None).update(dims=min(widths))
        row.refresh_from_db(fields=["dims"])
    if widths != {row.dims}:
        raise WidthChanged


@transaction.atomic
def change_config(*, config: EmbeddingConfig, by: Account, revision: int | None = None) -> None:
    """Save the settings; what the new space lacks is queued after the commit.

    Args:
        revision: at which the document was read; None takes the one there is.
    Raises:
        Invalid: no account is connected that could serve them.
        Stale: somebody else has saved settings.
    """
    lock_settings(shared=False)
    refuse_unconnected(config)
    _, current = load_document()
    expected = current if revision is None else revision
    save_section(name=SECTION, document=config.to_document(), revision=expected, by=by)
    transaction.on_commit(partial(async_task, "embeddings.tasks.reconcile", anew=True))


def refuse_unconnected(config: EmbeddingConfig) -> None:
    if not config.is_connected:
        return
    wanted = endpoint(config).url
    if not any(one.url == wanted for one in Connection.objects.filter(provider=config.provider)):
        name = PROVIDERS[config.provider].name
        raise Invalid(f"Connect an account first: {name}, with this address.", field="providerId")


def lock_settings(*, shared: bool) -> None:
    """Keep the settings from changing between the check of the space and the commit of its vectors."""
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [SETTINGS_LOCK])
