"""Why a recall answers what it answers: the same search, with what became of every candidate on top."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Unpack

from elowen.lib.db import read_snapshot
from elowen.lib.errors import Unavailable
from embeddings.config import endpoint, load
from embeddings.embedding import QueryVector, embed_query
from memories.gauge import Gauge
from memories.models import Account, Memory
from recall import keyword, semantic
from recall.config import RecallLimits
from recall.packing import Candidate, Decision, Fate
from recall.retrieval import Options, Path, Ranking, Search, prepared
from recall.scope import RecallScope
from recall.semantic import FIRST_STEP
from recall.words import MICRO, weighed

EXPLAINED = 50  # candidates that are told of beside the picked ones
EXCERPT_CHARS = 300
BELOW_FLOOR = 10  # of them the nearest that are not relevant

REASONS = {
    "semantic": "Compared with every current vector of the scope, and its words with every memory.",
    "words": "No current vector is near enough; what holds enough of the words was ranked by them.",
    "keyword": "Nothing is near, and nothing holds enough of the words: the whole text was looked for.",
    "recency": "The text could not be embedded, so words, importance and recency decide.",
    "passed over": "There are candidates, but each was delivered before or does not fit.",
    "nothing": "No memory of the scope is near enough or holds the words.",
    "no text": "There is no text to look for.",
    "no scope": "There is no category to look in.",
}


@dataclass(frozen=True)
class Explained:
    """One candidate, and what became of it."""

    memory: Memory
    fate: Fate
    repeats: int | None  # id of the picked memory that says it already
    score: float | None  # None below the floor
    cosine: float | None
    words: float  # share of the question's words that it holds, by worth
    vitality: float | None

    @property
    def excerpt(self) -> str:
        return self.memory.body[:EXCERPT_CHARS]


@dataclass(frozen=True)
class Word:
    """A word of the question as it is compared."""

    lexeme: str
    held: int  # memories of the scope that hold it
    weight: float  # its rarity; natural logarithm


@dataclass(frozen=True)
class Explanation:
    path: Path
    reason: str
    provider: str
    model: str
    failure: str  # why the question could not be embedded; empty when it could
    limits: RecallLimits | None  # None where nothing was looked for
    words: list[Word]
    candidates: list[Explained]

    @property
    def picked(self) -> list[Explained]:
        return [one for one in self.candidates if one.fate == "picked"]


def explain(*, account: Account, query: str, scope: RecallScope, **options: Unpack[Options]) -> Explanation:
    """Do what `retrieve` would do, and tell why. Counts nothing as used.

    Raises:
        Unavailable: the stored retention settings cannot be used.
    """
    text, model = keyword.clean_query(query), _model_in_use()
    if not text or not scope.category_ids:
        return Explanation("empty", REASONS["no scope" if text else "no text"], *model, "", None, [], [])
    vector, failure = _embedded(text, account)
    with read_snapshot():
        search = prepared(account=account, text=text, scope=scope, **options)
        path, reason, decisions = _decided(search, vector)
        told = _told(search, decisions)
        return Explanation(path, reason, *model, failure, search.config.limits, _words(search), told)


def _model_in_use() -> tuple[str, str]:
    try:
        place = endpoint(load())
    except Unavailable:
        return "", ""
    return place.provider, place.model


def _embedded(text: str, account: Account) -> tuple[QueryVector | None, str]:
    try:
        return embed_query(text, account_id=account.pk), ""
    except Unavailable as error:
        return None, str(error)


def _decided(search: Search, vector: QueryVector | None) -> tuple[Path, str, list[Decision]]:
    """Return the path with its reason, and what there is to tell, best first."""
    ranking = search.ranking(vector)
    picked, others = _kept(search.decide(ranking))
    path = search.path(ranking, [one.candidate for one in picked])
    others += islice((_undrawn(search, one) for one in ranking.candidates), EXPLAINED - len(others))
    told = sorted([*picked, *others], key=lambda one: (-one.candidate.score, -one.candidate.memory_id))
    reason = _reason(ranking, path, passed_over=bool(told))
    if vector and len(told) < EXPLAINED:
        told += islice(_below(search, vector), BELOW_FLOOR)
    return path, reason, told


def _kept(decisions: Iterator[Decision]) -> tuple[list[Decision], list[Decision]]:
    """Return what was picked, and of what was not the best few: a paraphrase may have thousands of others."""
    picked: list[Decision] = []
    others: list[Decision] = []
    for one in decisions:
        if one.fate == "picked":
            picked.append(one)
        elif len(others) < EXPLAINED:
            others.append(one)
    return picked, others


def _undrawn(search: Search, one: Candidate) -> Decision:
    return Decision(one, "delivered" if search.is_excluded(one) else "after the last")


def _below(search: Search, vector: QueryVector) -> Iterator[Decision]:
    """Yield what is nearest among the memories that are not relevant."""
    limits = search.config.limits
    without = replace(limits, floor=-1.0, lexical_floor=0.0)
    everything = replace(search, config=replace(search.config, limits=without))
    for one in semantic.ranked(everything.semantic_query(vector, FIRST_STEP)):
        by_words = limits.lexical > 0 and 0 < one.lexical >= limits.lexical_floor
        if not search.is_near(one) and not by_words:
            yield Decision(one, "below the floor")


def _reason(ranking: Ranking, path: Path, *, passed_over: bool) -> str:
    if path == "empty":
        return REASONS["passed over" if passed_over else "nothing"]
    return REASONS["words" if ranking.by == "semantic" and path == "keyword" else path]


def _words(search: Search) -> list[Word]:
    return [
        Word(lexeme, held, worth / MICRO)
        for lexeme, held, worth in weighed(search.account, search.scope, search.text)
    ]


def _told(search: Search, decisions: list[Decision]) -> list[Explained]:
    ids = [one.candidate.memory_id for one in decisions]
    memories = semantic.memories_of(search.account, search.scope, ids)
    gauge = Gauge(search.config.policy, search.now)
    return [
        _explained(memories[one.candidate.memory_id], one, gauge)
        for one in decisions
        if one.candidate.memory_id in memories
    ]


def _explained(memory: Memory, decision: Decision, gauge: Gauge) -> Explained:
    one, fate = decision.candidate, decision.fate
    score = None if fate == "below the floor" else one.score
    vitality = gauge.read(memory).vitality
    return Explained(memory, fate, decision.repeats, score, one.cosine, min(one.lexical, 1), vitality)
