"""What a cosine means in a model's vectors, told from pairs of texts whose meaning is known.

The three rules are the ones that give, for the bundled English model, what was measured for it on real
conversations. So they carry that measurement over to other models, whose cosines lie elsewhere.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from elowen.providers.vectors import Vector
from embeddings.calibration import Calibration

TEXTS = ("note", "question", "paraphrase", "near_duplicate", "sibling")  # of an example, in this order

UNRELATED_BELOW = 0.95  # share of the unrelated notes that the floor keeps out,
QUESTIONS_LOST = 0.02  # unless it would cost more of the notes that answer
PARAPHRASES_BELOW = (
    0.90  # only the nearest tenth is taken for the same: a fact lost is worse than one said twice
)
DUPLICATES_MISSED = 0.02


@dataclass(frozen=True)
class Pairs:
    """Cosines, ascending: of a note with …"""

    unrelated: Vector  # a question about something else, in its language
    question: Vector  # the question that it answers
    sibling: Vector  # a note on the same subject that says something else
    paraphrase: Vector  # the same in other words
    near_duplicate: Vector  # the same in nearly the same words


def compare(vectors: Mapping[str, Vector]) -> Pairs:
    """Return the cosines of all pairs among examples in one language.

    Args:
        vectors: for each of TEXTS (examples, width), of length 1.
    """
    note = vectors["note"]
    crossed = vectors["question"] @ note.T
    return Pairs(
        unrelated=np.sort(crossed[~np.eye(len(note), dtype=bool)]),
        question=np.sort(np.diag(crossed)),
        **{name: np.sort(np.sum(note * vectors[name], axis=1)) for name in TEXTS[2:]},
    )


def together(languages: Iterable[Pairs]) -> Pairs:
    every = [vars(pairs) for pairs in languages]
    return Pairs(**{name: np.sort(np.concatenate([one[name] for one in every])) for name in every[0]})


def propose(pairs: Pairs) -> Calibration:
    """Return thresholds in steps of ten per mille. There must be unrelated pairs."""
    floor = min(quantile(pairs.unrelated, UNRELATED_BELOW), quantile(pairs.question, QUESTIONS_LOST))
    paraphrase = quantile(pairs.paraphrase, PARAPHRASES_BELOW)
    duplicate = max(paraphrase, quantile(pairs.near_duplicate, DUPLICATES_MISSED))
    return Calibration(*(round(value * 100) * 10 for value in (floor, paraphrase, duplicate)))


def quantile(cosines: Vector, share: float) -> float:
    return float(np.quantile(cosines, share))


def reaching(cosines: Vector, per_mille: int) -> float:
    """Return which share of the cosines is at the threshold or above."""
    return float(np.mean(cosines >= per_mille / 1000))
