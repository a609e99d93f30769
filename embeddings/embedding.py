"""Texts to vectors under settings that are frozen when a run begins. Nothing here writes vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from django.conf import settings

from elowen.lib.errors import Unavailable
from elowen.providers.embeddings import embed_documents_narrowing, embed_texts
from elowen.providers.vectors import Vector
from embeddings.config import EmbeddingConfig, endpoint, load
from embeddings.models import EmbeddingSpace
from embeddings.space import VectorSpace, assert_space, space_of


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
    def start(cls) -> Self:
        config = load()
        return cls(config, space_of(endpoint(config)))


def embed_query(text: str, config: EmbeddingConfig | None = None) -> QueryVector:
    """Return the vector of a question and the space in which it can be compared.

    Raises:
        Unavailable: the model cannot be asked right now.
        Invalid: the text is blank.
    """
    place = endpoint(config or load())
    rows = embed_texts(place, [text], query=True, allow_link_local=settings.ALLOW_LINK_LOCAL)
    space = EmbeddingSpace.objects.row_of(space_of(place))
    if space.dims not in (None, rows.shape[1]):
        raise WidthChanged
    return QueryVector(rows[0], space)


def embed_batch(run: Run, texts: Sequence[str]) -> list[Vector | None]:
    """Return one row per text, in order; None stands for a text that is refused even alone.

    Raises:
        ProviderFailed, NothingAccepted: none of it was done.
        EmbeddingSpaceChanged: it was done in another space than the run's.
    """
    place = endpoint(run.config)
    captured = space_of(place)
    rows = embed_documents_narrowing(place, texts, allow_link_local=settings.ALLOW_LINK_LOCAL)
    if len(texts) > 1 and all(row is None for row in rows):
        raise NothingAccepted
    assert_space(captured, run.space)
    return rows
