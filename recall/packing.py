"""Which memories go into the answer, and in what order. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

type Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Candidate:
    """A memory in the running."""

    memory_id: int
    body_hash: bytes  # of the exact body it has now
    body_bytes: int
    score: float
    cosine: float | None  # with the question; None where no vector was asked or it has no current one
    lexical: float = 0.0  # share of the question's words, by worth, that it holds


@dataclass(frozen=True)
class Limits:
    count: int
    byte_budget: int
    paraphrase: float  # cosine from which two memories say the same


type Fate = Literal[
    "picked", "delivered", "same text", "paraphrase", "does not fit", "after the last", "below the floor"
]


@dataclass(frozen=True)
class Decision:
    candidate: Candidate
    fate: Fate
    repeats: int | None = None  # the picked memory that says it already


def pack(
    candidates: Iterable[Candidate],
    *,
    limits: Limits,
    is_excluded: Callable[[Candidate], bool],
    vectors_of: Callable[[Sequence[int]], Mapping[int, Vector]],
) -> Iterator[Decision]:
    """Pick greedily, in the given order, and tell what became of each candidate.

    Passes over excluded memories before anything is counted, skips a paraphrase of a picked one and what
    does not fit, and goes on until the count is full. Candidates are drawn only as far as needed.

    Args:
        vectors_of: asked for at most `limits.count` ids at a time, in order.
    """
    packing, rest = _Packing(limits), iter(candidates)
    while packing.wants_more() and (batch := list(islice(rest, limits.count))):
        excluded = {one.memory_id for one in batch if is_excluded(one)}
        fitting = [one for one in batch if one.memory_id not in excluded and packing.fits(one)]
        current = [one.memory_id for one in fitting if one.cosine is not None]
        vectors = vectors_of(current) if current else {}
        for one in batch:
            if one.memory_id in excluded:
                yield Decision(one, "delivered")
            else:
                yield packing.offer(one, vectors.get(one.memory_id))


def picked_of(decisions: Iterable[Decision]) -> list[Candidate]:
    return [one.candidate for one in decisions if one.fate == "picked"]


class _Packing:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.left = limits.byte_budget
        self.picked: list[Candidate] = []
        self.said: list[tuple[Candidate, Vector]] = []

    def wants_more(self) -> bool:
        return len(self.picked) < self.limits.count and self.left > 0

    def fits(self, one: Candidate) -> bool:
        return one.body_bytes <= self.left

    def offer(self, one: Candidate, vector: Vector | None) -> Decision:
        if not self.wants_more():
            return Decision(one, "after the last")
        if not self.fits(one):
            return Decision(one, "does not fit")
        if same := next((other for other in self.picked if other.body_hash == one.body_hash), None):
            return Decision(one, "same text", same.memory_id)
        unit = None if vector is None else _unit(vector)
        if unit is not None and (near := self._paraphrased_by(unit)):
            return Decision(one, "paraphrase", near.memory_id)
        self.picked.append(one)
        self.left -= one.body_bytes
        if unit is not None:
            self.said.append((one, unit))
        return Decision(one, "picked")

    def _paraphrased_by(self, unit: Vector) -> Candidate | None:
        close = (other for other, said in self.said if float(unit @ said) >= self.limits.paraphrase)
        return next(close, None)


def _unit(vector: Vector) -> Vector:
    wide = vector.astype(np.float64)
    return (wide / np.linalg.norm(wide)).astype(np.float32)
