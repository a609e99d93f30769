"""Which memories go into the answer, and in what order. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

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


def pack(
    candidates: Iterable[Candidate],
    *,
    limits: Limits,
    is_excluded: Callable[[Candidate], bool],
    vectors_of: Callable[[Sequence[int]], Mapping[int, Vector]],
) -> list[Candidate]:
    """Pick greedily, in the given order.

    Passes over excluded memories before anything is counted, skips a paraphrase of a picked one and what
    does not fit, and goes on until the count is full. Candidates are drawn only as far as needed.

    Args:
        vectors_of: asked for at most `limits.count` ids at a time, in order.
    """
    packing = _Packing(limits)
    rest = (one for one in candidates if not is_excluded(one))
    while packing.wants_more() and (batch := list(islice(rest, limits.count))):
        fitting = [one for one in batch if packing.fits(one)]
        current = [one.memory_id for one in fitting if one.cosine is not None]
        vectors = vectors_of(current) if current else {}
        for one in fitting:
            packing.offer(one, vectors.get(one.memory_id))
    return packing.picked


class _Packing:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.left = limits.byte_budget
        self.picked: list[Candidate] = []
        self.said: list[Vector] = []

    def wants_more(self) -> bool:
        return len(self.picked) < self.limits.count and self.left > 0

    def fits(self, one: Candidate) -> bool:
        return one.body_bytes <= self.left

    def offer(self, one: Candidate, vector: Vector | None) -> None:
        if self.wants_more() and self.fits(one) and not self._repeats(one, vector):
            self.picked.append(one)
            self.left -= one.body_bytes
            if vector is not None:
                self.said.append(_unit(vector))

    def _repeats(self, one: Candidate, vector: Vector | None) -> bool:
        if any(one.body_hash == other.body_hash for other in self.picked):
            return True
        if vector is None:
            return False
        unit = _unit(vector)
        return any(float(unit @ other) >= self.limits.paraphrase for other in self.said)


def _unit(vector: Vector) -> Vector:
    wide = vector.astype(np.float64)
    return (wide / np.linalg.norm(wide)).astype(np.float32)
