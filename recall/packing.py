"""Which memories go into the answer, and in what order. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

type Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Candidate:
    """A memory in the running, in the order of its score."""

    memory_id: int
    body_bytes: int
    score: float
    cosine: float | None


@dataclass(frozen=True)
class Limits:
    count: int
    byte_budget: int
    paraphrase: float  # cosine from which two memories say the same


def pack(
    candidates: Iterable[Candidate],
    *,
    limits: Limits,
    is_excluded: Callable[[int], bool],
    vectors_of: Callable[[Sequence[int]], Mapping[int, Vector]],
) -> list[Candidate]:
    """Pick greedily, in the given order.

    Passes over excluded memories before anything is counted, skips a paraphrase of a picked one and what
    does not fit, and goes on until the count is full.

    Args:
        vectors_of: asked for at most `limits.count` ids at a time, in order, and only as far as needed.
    """
    picked: list[Candidate] = []
    seen: list[Vector] = []
    left = limits.byte_budget
    for batch in _batches(candidates, max(limits.count, 1)):
        if len(picked) >= limits.count:
            break
        wanted = [one for one in batch if one.body_bytes <= left and not is_excluded(one.memory_id)]
        vectors = vectors_of([one.memory_id for one in wanted]) if wanted else {}
        for one in wanted:
            vector = vectors.get(one.memory_id)
            if len(picked) >= limits.count or one.body_bytes > left or _said(vector, seen, limits.paraphrase):
                continue
            picked.append(one)
            left -= one.body_bytes
            if vector is not None:
                seen.append(_unit(vector))
    return picked


def _batches(candidates: Iterable[Candidate], size: int) -> Iterator[list[Candidate]]:
    source = iter(candidates)
    while batch := list(islice(source, size)):
        yield batch


def _said(vector: Vector | None, seen: Sequence[Vector], threshold: float) -> bool:
    if vector is None:
        return False
    unit = _unit(vector)
    return any(float(unit @ other) >= threshold for other in seen)


def _unit(vector: Vector) -> Vector:
    wide = vector.astype(np.float64)
    return (wide / np.linalg.norm(wide)).astype(np.float32)
