"""Texts to vectors under settings that are frozen when a run begins. Nothing here writes vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

from django.conf import settings

from elowen.lib.errors import Unavailable
from elowen.providers.catalog import PROVIDERS
from elowen.providers.embeddings import embed_documents_narrowing, embed_texts
from elowen.providers.vectors import Vector
from embeddings.config import EmbeddingConfig, endpoint, load
from embeddings.connections import Identity, Served, dispatch
from embeddings.failures import Operation, failed, failing, succeeded
from embeddings.models import EmbeddingSpace, EmbeddingUsage
from embeddings.space import VectorSpace, assert_space, space_of

Purpose = EmbeddingUsage.Purpose


class NothingAccepted(Unavailable):
    """The endpoint refuses every text that it is sent."""

    code = "nothing_accepted"


class WidthChanged(Unavailable):
    """The model gives vectors of another width than it did; ask for that width in the embedding settings."""

    code = "width_changed"


@dataclass(frozen=True)
class QueryVector:
    vector: Vector  # length 1
    space: EmbeddingSpace


@dataclass(frozen=True)
class Run:
    """One stretch of indexing. Settings that change meanwhile end it instead of bending it."""

    config: EmbeddingConfig
    space: VectorSpace

    @classmethod
    def start(cls, config: EmbeddingConfig | None = None) -> Self:
        config = config or load()
        return cls(config, space_of(endpoint(config)))


def embed_query(text: str, *, account_id: int) -> QueryVector:
    """Return the vector of an account's question and the space in which it can be compared.

    Raises:
        Unavailable: the model cannot be asked right now.
        Invalid: the text is blank.
    """
    run = Run.start()
    try:
        rows = embed(run, [text], identity=Identity(account_id), purpose=Purpose.QUERY)
    except Unavailable as error:
        failed(Operation.QUERY, account_id, error)
        raise
    known = EmbeddingSpace.objects.annotate(failing=failing(Operation.QUERY, account_id))
    space = known.row_of(run.space)
    if getattr(space, "failing", True):  # unknown of a space that was made just now
        succeeded(Operation.QUERY, account_id)
    if space.dims not in (None, rows.shape[1]):
        raise WidthChanged
    return QueryVector(rows[0], space)


def embed_batch(run: Run, texts: Sequence[str], *, identity: Identity) -> list[Vector | None]:
    """Return one row per text, in order; None stands for a text that is refused even alone.

    Raises:
        ProviderFailed, NoConnection, NothingAccepted: none of it was done.
        EmbeddingSpaceChanged: it was done in another space than the run's.
    """
    send = partial(embed, run, identity=identity, purpose=Purpose.INDEX)
    size = PROVIDERS[run.config.provider].batch_texts if run.config.is_connected else len(texts) or 1
    parts = [texts[begin : begin + size] for begin in range(0, len(texts), size)]
    rows = [row for part in parts for row in embed_documents_narrowing(send, part)]
    if len(texts) > 1 and all(row is None for row in rows):
        raise NothingAccepted
    return rows


def embed(run: Run, texts: Sequence[str], *, identity: Identity, purpose: Purpose) -> Vector:
    """Have one request served by whoever may serve it, and return its rows."""
    return dispatch(run.config, identity, lambda served: rows_from(served, run, texts, purpose))


def rows_from(served: Served, run: Run, texts: Sequence[str], purpose: Purpose) -> Vector:
    """Make one request, file what it cost, and return its rows if they are of the run's space."""
    rows = embed_texts(
        served.place,
        texts,
        query=purpose is Purpose.QUERY,
        allow_link_local=settings.ALLOW_LINK_LOCAL,
        on_paid=partial(served.record, purpose=purpose),
    )
    assert_space(space_of(served.place), run.space)
    return rows
