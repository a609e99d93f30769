"""Memories with vectors of small whole numbers, whose cosines are the same in Python and PostgreSQL."""

import math
from collections.abc import Sequence
from datetime import datetime

from elowen.lib.hashing import text_hash
from embeddings.models import EmbeddingSpace, MemoryEmbedding
from memories.models import Memory
from tests.factories import MemoryFactory


def remembers(space: EmbeddingSpace, *vector: float, **fields: object) -> Memory:
    """Store a memory that has been indexed."""
    memory: Memory = MemoryFactory.create(**fields)
    index(memory, space, vector)
    return memory


def index(
    memory: Memory, space: EmbeddingSpace, vector: Sequence[float], body_hash: bytes | None = None
) -> None:
    MemoryEmbedding.objects.create(
        memory=memory,
        space=space,
        account_id=memory.owner_id,
        category_id=memory.category_id if memory.status == Memory.Status.ACTIVE else None,
        body_hash=text_hash(memory.body) if body_hash is None else body_hash,
        vec=list(vector),
    )


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    lengths = sum(a * a for a in one) * sum(b * b for b in other)
    return 1 - (1 - max(-1.0, min(1.0, dot / math.sqrt(lengths))))


def age_in_days(since: datetime, now: datetime) -> float:
    return max((now - since).total_seconds() / 86400, 0.0)
