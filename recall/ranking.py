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


def score(*, cosine: float, importance: int, vitality: float, weights: Weights) -> float:
    """Return the score of a memory; cosine -1 to 1, importance 1 to 10, vitality 0 to 100."""
    return (
        weights.relevance * cosine
        + weights.importance * (importance - 1) / 9
        + weights.vitality * vitality / 100
    )


def keyword_score(*, match: float, importance: int, age_days: float, recency: bool) -> float:
    """Return the score where no vector can be asked; match 0 to 1, age since the last change."""
    fresh = 0.5 ** (max(age_days, 0) / RECENCY_HALF_LIFE_DAYS) if recency else 0.0
    return KEYWORD_SHARE * match + KEYWORD_IMPORTANCE_SHARE * (importance - 1) / 9 + RECENCY_SHARE * fresh
