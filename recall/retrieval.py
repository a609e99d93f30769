"""`retrieve`: from a question to the memories that fit. Reads only; nothing is counted as used."""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from itertools import chain
from typing import Literal, TypedDict, Unpack

from django.utils import timezone

from elowen.lib.db import read_snapshot
from elowen.lib.errors import Unavailable
from elowen.lib.hashing import text_hash_hex
from embeddings.embedding import QueryVector, embed_query
from embeddings.scoring import hydrate_vectors
from memories.models import Account, Memory
from recall import keyword, semantic
from recall.config import RecallConfig, load_config
from recall.keyword import KeywordQuery
from recall.packing import Candidate, Limits, pack
from recall.scope import RecallScope
from recall.semantic import FIRST_STEP, SemanticQuery, Step

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


class Options(TypedDict, total=False):
    """What may be said beside the question; what is not said is as configured."""

    count: int | None  # at most so many memories
    byte_budget: int | None  # UTF-8 bytes of bodies together
    exclude: Collection[Version]  # passed over before count and bytes are filled
    first_step: Step  # how much is looked at first; the answer does not depend on it


def retrieve(*, account: Account, query: str, scope: RecallScope, **options: Unpack[Options]) -> Recall:
    """Return the memories of the scope that matter for the query, best first, within count and bytes.

    Raises:
        Unavailable: the stored retention settings cannot be used.
    """
    text = keyword.clean_query(query)
    if not text or not scope.category_ids:
        return Recall([], "empty")
    # Before the snapshot: no transaction is open across a network call.
    vector = _embedded(text, account)
    return recall_with(vector, account=account, text=text, scope=scope, **options)


def recall_with(
    vector: QueryVector | None,
    *,
    account: Account,
    text: str,
    scope: RecallScope,
    **options: Unpack[Options],
) -> Recall:
    """Do what `retrieve` does once the question is embedded: all that needs the database, in one snapshot."""
    now = timezone.now()
    with read_snapshot():
        config = _config(options.get("count"), options.get("byte_budget"))
        exclude, first_step = options.get("exclude", ()), options.get("first_step", FIRST_STEP)
        return _Search(account, scope, text, config, tuple(exclude), now, first_step).run(vector)


def _embedded(text: str, account: Account) -> QueryVector | None:
    try:
        return embed_query(text, account_id=account.pk)
    except Unavailable as error:
        log.warning("Recall goes on by words: %s", error)
        return None


def _config(count: int | None, byte_budget: int | None) -> RecallConfig:
    config = load_config()
    limits = config.limits
    count = limits.count if count is None else count
    byte_budget = limits.byte_budget if byte_budget is None else byte_budget
    return replace(config, limits=replace(limits, count=count, byte_budget=byte_budget))


@dataclass(frozen=True)
class _Search:
    account: Account
    scope: RecallScope
    text: str
    config: RecallConfig
    exclude: tuple[Version, ...]
    now: datetime
    first_step: Step

    def run(self, vector: QueryVector | None) -> Recall:
        if vector is None:
            return self._by_words(recency=True)
        # What is passed over must not use up the rows that come back.
        first = replace(self.first_step, rows=self.first_step.rows + len(self.exclude))
        ranked = semantic.ranked(
            SemanticQuery(self.account, self.scope, self.text, vector, self.config, self.now, first)
        )
        best = next(ranked, None)
        if best is None:
            return self._by_words(recency=False)
        picked = self._pack(chain([best], ranked), space_id=vector.space.pk)
        return Recall(self._hydrated(picked), self._path(picked))

    def _path(self, picked: list[Candidate]) -> Path:
        """Tell by what the ranking found them: before the first vectors exist, words may do it alone."""
        floor = self.config.limits.floor
        if any(one.cosine is not None and one.cosine >= floor for one in picked):
            return "semantic"
        return "keyword" if picked else "empty"

    def _by_words(self, *, recency: bool) -> Recall:
        asked = KeywordQuery(
            self.account, self.scope, self.text, self.config.limits.lexical_floor, self.now, recency
        )
        found = keyword.candidates(asked)
        memories = self._hydrated(self._pack(found, space_id=None))
        path: Path = "recency" if recency else "keyword"
        return Recall(memories, path if memories else "empty", degraded=recency)

    def _pack(self, candidates: Iterable[Candidate], *, space_id: int | None) -> list[Candidate]:
        limits = self.config.limits
        return pack(
            candidates,
            limits=Limits(limits.count, limits.byte_budget, limits.paraphrase),
            is_excluded=self._is_excluded,
            vectors_of=partial(hydrate_vectors, space_id) if space_id else lambda ids: {},
        )

    @cached_property
    def _excluded(self) -> dict[int, set[str | None]]:
        versions: dict[int, set[str | None]] = {}
        for version in self.exclude:
            versions.setdefault(version.memory_id, set()).add(version.body_sha256)
        return versions

    def _is_excluded(self, one: Candidate) -> bool:
        versions = self._excluded.get(one.memory_id, set())
        return None in versions or one.body_hash.hex() in versions

    def _hydrated(self, picked: list[Candidate]) -> list[PackedMemory]:
        ids = [one.memory_id for one in picked]
        bodies = semantic.memories_of(self.account, self.scope, ids) if ids else {}
        return [
            PackedMemory(bodies[one.memory_id], one.score, one.cosine)
            for one in picked
            if one.memory_id in bodies
        ]
