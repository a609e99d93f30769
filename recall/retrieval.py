"""`retrieve`: from a question to the memories that fit. Reads only; nothing is counted as used."""

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from django.utils import timezone

from elowen.lib.db import read_snapshot
from elowen.lib.errors import Unavailable
from elowen.lib.hashing import text_hash_hex
from embeddings.embedding import QueryVector, embed_query
from embeddings.scoring import hydrate_vectors
from memories.config import retention_policy
from memories.models import Account, Memory
from recall import keyword, semantic
from recall.config import RecallLimits, load_limits
from recall.packing import Candidate, Limits, pack
from recall.scope import RecallScope
from recall.semantic import SemanticQuery

log = logging.getLogger(__name__)

type Path = Literal["semantic", "keyword", "recency", "empty"]


@dataclass(frozen=True)
class Version:
    """A memory as it was delivered; without a hash, whatever its body."""

    memory_id: int
    body_sha256: str | None = None


@dataclass(frozen=True)
class PackedMemory:
    memory: Memory
    score: float
    similarity: float | None  # cosine with the question; None where no vector was asked

    @property
    def body_sha256(self) -> str:
        return text_hash_hex(self.memory.body)


@dataclass(frozen=True)
class Recall:
    memories: list[PackedMemory]
    path: Path
    degraded: bool = False  # the question could not be embedded


def retrieve(
    *,
    account: Account,
    query: str,
    scope: RecallScope,
    count: int | None = None,
    byte_budget: int | None = None,
    exclude: Collection[Version] = (),
) -> Recall:
    """Return the memories of the scope that matter for the query, best first, within count and bytes.

    Args:
        byte_budget: UTF-8 bytes of bodies together.
        exclude: versions that are passed over before count and bytes are filled.
    """
    text = query.strip()[: keyword.MEMORY_QUERY_CHARS].strip()
    if not text:
        return Recall([], "empty")
    vector = _embedded(text)  # before the snapshot: no transaction is open across a network call
    now = timezone.now()
    with read_snapshot():
        limits = _limits(count, byte_budget)
        search = _Search(account, scope, text, limits, frozenset(exclude), now)
        return search.run(vector)


def _embedded(text: str) -> QueryVector | None:
    try:
        return embed_query(text)
    except Unavailable as error:
        log.warning("Recall goes on by words: %s", error)
        return None


def _limits(count: int | None, byte_budget: int | None) -> RecallLimits:
    limits = load_limits()
    return replace(
        limits,
        count=limits.count if count is None else count,
        byte_budget=limits.byte_budget if byte_budget is None else byte_budget,
    )


@dataclass(frozen=True)
class _Search:
    account: Account
    scope: RecallScope
    text: str
    limits: RecallLimits
    exclude: frozenset[Version]
    now: datetime

    def run(self, vector: QueryVector | None) -> Recall:
        if vector is None:
            return self._by_words(recency=True)
        asked = SemanticQuery(self.account, self.scope, vector, self.limits, retention_policy(), self.now)
        ranked = semantic.ranked(asked)
        first = next(ranked, None)
        if first is None:
            return self._by_words(recency=False)
        picked = self._pack(_chained(first, ranked), space_id=vector.space.pk)
        return Recall(self._hydrated(picked), "semantic" if picked else "empty")

    def _by_words(self, *, recency: bool) -> Recall:
        found = keyword.candidates(self.account, self.scope, self.text, now=self.now, recency=recency)
        memories = _without_repeats(self._hydrated(self._pack(found, space_id=None)))
        path: Path = "recency" if recency else "keyword"
        return Recall(memories, path if memories else "empty", degraded=recency)

    def _pack(self, candidates: Iterable[Candidate], *, space_id: int | None) -> list[Candidate]:
        limits = Limits(self.limits.count, self.limits.byte_budget, self.limits.paraphrase)
        return pack(
            candidates,
            limits=limits,
            is_excluded=self._is_excluded,
            vectors_of=lambda ids: hydrate_vectors(space_id, ids) if space_id else {},
        )

    def _is_excluded(self, memory_id: int) -> bool:
        known = [version.body_sha256 for version in self.exclude if version.memory_id == memory_id]
        if not known or None in known:
            return bool(known)
        # Only here a body is read before it is picked: the same memory may have been edited since.
        memory = semantic.memories_of(self.account, [memory_id]).get(memory_id)
        return memory is None or text_hash_hex(memory.body) in known

    def _hydrated(self, picked: list[Candidate]) -> list[PackedMemory]:
        bodies = semantic.memories_of(self.account, [one.memory_id for one in picked])
        return [
            PackedMemory(bodies[one.memory_id], one.score, one.cosine)
            for one in picked
            if one.memory_id in bodies
        ]


def _chained(first: Candidate, rest: Iterator[Candidate]) -> Iterator[Candidate]:
    yield first
    yield from rest


def _without_repeats(memories: list[PackedMemory]) -> list[PackedMemory]:
    first: dict[str, PackedMemory] = {}
    for one in memories:
        first.setdefault(one.memory.body, one)
    return list(first.values())
