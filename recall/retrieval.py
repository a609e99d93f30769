"""`retrieve`: from a question to the memories that fit. Reads only; nothing is counted as used."""

import logging
from collections.abc import Collection, Iterator
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
from recall.packing import Candidate, Decision, Limits, pack, picked_of
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
    with read_snapshot():
        return prepared(account=account, text=text, scope=scope, **options).run(vector)


def prepared(*, account: Account, text: str, scope: RecallScope, **options: Unpack[Options]) -> "Search":
    """Return the search with the limits of this moment; call it in the snapshot in which it runs."""
    config = _config(options.get("count"), options.get("byte_budget"))
    exclude, first_step = options.get("exclude", ()), options.get("first_step", FIRST_STEP)
    return Search(account, scope, text, config, tuple(exclude), timezone.now(), first_step)


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
class Ranking:
    """Candidates, best first, by the ranking that applies."""

    by: Literal["semantic", "keyword", "recency"]
    candidates: Iterator[Candidate]
    space_id: int | None  # whose vectors tell paraphrases


@dataclass(frozen=True)
class Search:
    """One question with all that its answer depends on. Use it in a snapshot."""

    account: Account
    scope: RecallScope
    text: str
    config: RecallConfig
    exclude: tuple[Version, ...]
    now: datetime
    first_step: Step = FIRST_STEP

    def run(self, vector: QueryVector | None) -> Recall:
        ranking = self.ranking(vector)
        picked = picked_of(self.decide(ranking))
        return Recall(self._hydrated(picked), self.path(ranking, picked), degraded=vector is None)

    def ranking(self, vector: QueryVector | None) -> Ranking:
        """Rank by meaning and words; by words alone where nothing is relevant or no vector can be had."""
        if vector is None:
            return self._by_words("recency")
        # What is passed over must not use up the rows that come back.
        first = replace(self.first_step, rows=self.first_step.rows + len(self.exclude))
        ranked = semantic.ranked(self.semantic_query(vector, first))
        best = next(ranked, None)
        if best is None:
            return self._by_words("keyword")
        return Ranking("semantic", chain([best], ranked), vector.space.pk)

    def semantic_query(self, vector: QueryVector, first_step: Step) -> SemanticQuery:
        return SemanticQuery(self.account, self.scope, self.text, vector, self.config, self.now, first_step)

    def _by_words(self, by: Literal["keyword", "recency"]) -> Ranking:
        floor = self.config.limits.lexical_floor
        asked = KeywordQuery(self.account, self.scope, self.text, floor, self.now, recency=by == "recency")
        return Ranking(by, keyword.candidates(asked), space_id=None)

    def decide(self, ranking: Ranking) -> Iterator[Decision]:
        """Tell what becomes of the candidates, as far down as the answer needs."""
        limits, space_id = self.config.limits, ranking.space_id
        return pack(
            ranking.candidates,
            limits=Limits(limits.count, limits.byte_budget, limits.paraphrase),
            is_excluded=self.is_excluded,
            vectors_of=partial(hydrate_vectors, space_id) if space_id else lambda ids: {},
        )

    def path(self, ranking: Ranking, picked: Collection[Candidate]) -> Path:
        """Tell by what the answer was found: before the first vectors exist, words may do it alone."""
        if not picked:
            return "empty"
        if ranking.by == "semantic" and not any(self.is_near(one) for one in picked):
            return "keyword"
        return ranking.by

    def is_near(self, one: Candidate) -> bool:
        return one.cosine is not None and one.cosine >= self.config.limits.floor

    @cached_property
    def _excluded(self) -> dict[int, set[str | None]]:
        versions: dict[int, set[str | None]] = {}
        for version in self.exclude:
            versions.setdefault(version.memory_id, set()).add(version.body_sha256)
        return versions

    def is_excluded(self, one: Candidate) -> bool:
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
