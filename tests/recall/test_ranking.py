import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.ranking import Weights, keyword_score, score, sound_weights

BAD_PAIRS = [
    (-0.01, 0.1),
    (0.1, -0.01),
    (math.nan, 0.1),
    (0.1, math.nan),
    (math.inf, 0.1),
    (0.6, 0.41),
    (-math.inf, math.inf),
]


@pytest.mark.parametrize(("importance", "vitality"), BAD_PAIRS)
def test_a_bad_pair_of_weights_is_replaced_whole(importance: float, vitality: float) -> None:
    assert sound_weights(importance, vitality) == Weights(0.1, 0.1)


@pytest.mark.parametrize(("importance", "vitality"), [(0, 0), (0.3, 0.3), (0, 1), (1, 0), (0.5, 0.5)])
def test_a_sound_pair_stays_and_relevance_takes_the_rest(importance: float, vitality: float) -> None:
    weights = sound_weights(importance, vitality)

    assert (weights.importance, weights.vitality) == (importance, vitality)
    assert weights.relevance == pytest.approx(1 - importance - vitality)


@pytest.mark.parametrize(
    ("cosine", "importance", "vitality", "expected"),
    [
        (1, 10, 100, 1.0),
        (0, 1, 0, 0.0),
        (0.5, 1, 0, 0.4),
        (0, 10, 0, 0.1),
        (0, 1, 50, 0.05),
        (-1, 1, 0, -0.8),
    ],
)
def test_the_score_of_each_part(cosine: float, importance: int, vitality: float, expected: float) -> None:
    found = score(relevance=cosine, importance=importance, vitality=vitality, weights=Weights())

    assert found == pytest.approx(expected)


@given(
    cosine=st.floats(-1, 1),
    importance=st.integers(1, 10),
    vitality=st.floats(0, 100),
    shares=st.tuples(st.floats(0, 0.5), st.floats(0, 0.5)),
)
def test_importance_and_vitality_add_at_most_their_shares(
    cosine: float, importance: int, vitality: float, shares: tuple[float, float]
) -> None:
    weights = sound_weights(*shares)

    found = score(relevance=cosine, importance=importance, vitality=vitality, weights=weights)

    least = weights.relevance * cosine
    assert least - 1e-12 <= found <= least + weights.most_without_relevance + 1e-12


@pytest.mark.parametrize(
    ("match", "importance", "age_days", "recency", "expected"),
    [
        (1, 1, 0, False, 0.60),
        (0, 10, 0, False, 0.25),
        (0, 1, 0, True, 0.15),
        (0, 1, 30, True, 0.075),
        (0, 1, -5, True, 0.15),
        (1, 10, 0, True, 1.0),
    ],
)
def test_the_score_without_vectors(
    match: float, importance: int, age_days: float, recency: bool, expected: float
) -> None:
    found = keyword_score(match=match, importance=importance, age_days=age_days, recency=recency)

    assert found == pytest.approx(expected)
