"""How relevance, importance and vitality make a score. Pure."""

import math
from dataclasses import dataclass

DEFAULT_SHARE = 0.1
KEYWORD_SHARE, KEYWORD_IMPORTANCE_SHARE, RECENCY_SHARE = 0.60, 0.25, 0.15
RECENCY_HALF_LIFE_DAYS = 30


@dataclass(frozen=True)
class Weights:
    """Shares of the score; what importance and vitality leave is relevance."""

    importance: float = DEFAULT_SHARE
    vitality: float = DEFAULT_SHARE

    @property
    def relevance(self) -> float:
        return 1 - self.importance - self.vitality

    @property
    def most_without_relevance(self) -> float:
        return self.importance + self.vitality


def sound_weights(importance: float, vitality: float) -> Weights:
    """Return the pair, or the default pair where one is negative, not finite, or both leave nothing."""
    pair = (importance, vitality)
    if all(math.isfinite(share) and share >= 0 for share in pair) and sum(pair) <= 1:
        return Weights(importance, vitality)
    return Weights()


def relevance(cosine: float | None, said: float | None, *, anchor: float, lexical: float) -> float:
    """Return the relevance of a memory.

    Args:
        cosine: with the question, -1 to 1; None without a current vector.
        said: worth of the question's words that it holds, as a share of the best in the scope, 0 to 1;
            None where nothing in the scope holds any.
        anchor: the best cosine in the scope, or the floor where none clears it.
        lexical: share of the words, 0 to 1; with 0 it is the cosine as it stands.
    """
    if lexical == 0:
        return cosine or 0.0
    share = max(cosine or 0.0, 0.0) / anchor if anchor else 0.0
    return share if said is None else (1 - lexical) * share + lexical * said


def score(*, relevance: float, importance: int, vitality: float, weights: Weights) -> float:
    """Return the score of a memory; relevance up to 1, importance 1 to 10, vitality 0 to 100."""
    return (
        weights.relevance * relevance
        + weights.importance * (importance - 1) / 9
        + weights.vitality * vitality / 100
    )


def keyword_score(*, match: float, importance: int, age_days: float, recency: bool) -> float:
    """Return the score where no vector can be asked; match 0 to 1, age since the last change."""
    fresh = 0.5 ** (max(age_days, 0) / RECENCY_HALF_LIFE_DAYS) if recency else 0.0
    return KEYWORD_SHARE * match + KEYWORD_IMPORTANCE_SHARE * (importance - 1) / 9 + RECENCY_SHARE * fresh
