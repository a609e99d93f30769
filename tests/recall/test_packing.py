"""Packing against the plainest form of the same rules, and its edges one by one."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recall.packing import Candidate, Limits, Vector, pack, picked_of

EAST, NORTH, NEARLY_EAST = (1.0, 0.0), (0.0, 1.0), (10.0, 1.0)


def candidate(memory_id: int, body_bytes: int = 10, text: str = "") -> Candidate:
    return Candidate(memory_id, (text or str(memory_id)).encode(), body_bytes, 1 / memory_id, 0.5)


class Vectors:
    """Hands out vectors, and remembers what it was asked for."""

    def __init__(self, known: Mapping[int, Sequence[float]]) -> None:
        self.known = known
        self.asked: list[list[int]] = []

    def __call__(self, ids: Sequence[int]) -> dict[int, Vector]:
        self.asked.append(list(ids))
        return {one: np.array(self.known[one], np.float32) for one in ids if one in self.known}


def packed(
    candidates: Sequence[Candidate],
    *,
    count: int = 10,
    byte_budget: int = 1000,
    paraphrase: float = 0.705,
    excluded: frozenset[int] = frozenset(),
    vectors: Vectors | None = None,
) -> list[int]:
    picked = picked_of(
        pack(
            candidates,
            limits=Limits(count, byte_budget, paraphrase),
            is_excluded=lambda one: one.memory_id in excluded,
            vectors_of=vectors or Vectors({}),
        )
    )
    return [one.memory_id for one in picked]


def test_with_the_top_two_delivered_a_cap_of_two_returns_the_third_and_fourth() -> None:
    found = packed([candidate(n) for n in range(1, 6)], count=2, excluded=frozenset({1, 2}))

    assert found == [3, 4]


def test_excluded_memories_take_no_bytes() -> None:
    assert packed([candidate(1, 900), candidate(2, 900)], byte_budget=900, excluded=frozenset({1})) == [2]


def test_what_does_not_fit_is_skipped_and_the_next_is_tried() -> None:
    found = packed([candidate(1, 60), candidate(2, 50), candidate(3, 40), candidate(4, 1)], byte_budget=100)

    assert found == [1, 3]


def test_a_body_of_exactly_the_budget_fits() -> None:
    assert packed([candidate(1, 101), candidate(2, 100), candidate(3, 1)], byte_budget=100) == [2]


def test_a_paraphrase_of_a_picked_memory_is_skipped() -> None:
    vectors = Vectors({1: EAST, 2: NEARLY_EAST, 3: NORTH})

    assert packed([candidate(n) for n in (1, 2, 3)], vectors=vectors) == [1, 3]


def test_a_paraphrase_of_a_memory_that_was_not_picked_stays() -> None:
    vectors = Vectors({1: EAST, 2: NEARLY_EAST})

    assert packed([candidate(1, 500), candidate(2, 50)], byte_budget=100, vectors=vectors) == [2]
    assert packed([candidate(1), candidate(2)], excluded=frozenset({1}), vectors=vectors) == [2]


def test_the_same_body_is_picked_once_even_without_vectors() -> None:
    assert packed([candidate(3, text="tea"), candidate(2, text="tea"), candidate(1, text="Tea")]) == [3, 1]


def test_nothing_is_drawn_once_the_count_is_full() -> None:
    def endless() -> Iterator[Candidate]:
        yield candidate(1)
        yield candidate(2)
        raise AssertionError("drawn beyond what was needed")

    picked = picked_of(
        pack(endless(), limits=Limits(2, 100, 0.7), is_excluded=lambda one: False, vectors_of=Vectors({}))
    )

    assert [one.memory_id for one in picked] == [1, 2]


def test_nothing_is_drawn_once_the_bytes_are_gone() -> None:
    def endless() -> Iterator[Candidate]:
        yield candidate(1, 100)
        raise AssertionError("drawn beyond what was needed")

    picked = picked_of(
        pack(endless(), limits=Limits(1, 100, 0.7), is_excluded=lambda one: False, vectors_of=Vectors({}))
    )

    assert [one.memory_id for one in picked] == [1]


def test_a_count_of_none_picks_nothing_and_asks_for_nothing() -> None:
    vectors = Vectors({1: EAST})

    assert packed([candidate(1)], count=0, vectors=vectors) == []
    assert vectors.asked == []


def test_vectors_are_read_in_batches_of_the_count_and_only_as_far_as_needed() -> None:
    everything = Vectors({n: EAST if n < 6 else NORTH for n in range(1, 20)})

    found = packed([candidate(n) for n in range(1, 20)], count=2, vectors=everything)

    assert found == [1, 6]
    assert everything.asked == [[1, 2], [3, 4], [5, 6]]


ROWS = st.lists(
    st.tuples(
        st.integers(1, 40),  # bytes
        st.sampled_from("abcdefgh"),  # body
        st.booleans(),  # excluded
        st.none() | st.tuples(st.integers(-2, 2), st.integers(-2, 2)).filter(any),  # vector
    ),
    max_size=30,
)


@given(rows=ROWS, count=st.integers(0, 8), byte_budget=st.integers(1, 200))
def test_packing_equals_its_plainest_form(
    rows: list[tuple[int, str, bool, tuple[int, int] | None]], count: int, byte_budget: int
) -> None:
    candidates = [candidate(n, size, text) for n, (size, text, _, _) in enumerate(rows, 1)]
    excluded = frozenset(n for n, row in enumerate(rows, 1) if row[2])
    vectors = Vectors({n: row[3] for n, row in enumerate(rows, 1) if row[3]})

    found = packed(candidates, count=count, byte_budget=byte_budget, excluded=excluded, vectors=vectors)

    assert found == plainest(candidates, count, byte_budget, excluded, vectors.known)
    asked = [one for batch in vectors.asked for one in batch]
    assert all(len(batch) <= count for batch in vectors.asked)
    assert asked == sorted(set(asked) - excluded)


def plainest(
    candidates: Sequence[Candidate],
    count: int,
    byte_budget: int,
    excluded: frozenset[int],
    vectors: Mapping[int, Sequence[float]],
) -> list[int]:
    picked: list[Candidate] = []
    for one in candidates:
        if len(picked) == count:
            break
        if one.memory_id in excluded:
            continue
        said = any(one.body_hash == other.body_hash for other in picked) or any(
            close(vectors[one.memory_id], vectors[other.memory_id])
            for other in picked
            if one.memory_id in vectors and other.memory_id in vectors
        )
        if not said and one.body_bytes + sum(other.body_bytes for other in picked) <= byte_budget:
            picked.append(one)
    return [one.memory_id for one in picked]


def close(one: Sequence[float], other: Sequence[float]) -> bool:
    a, b = np.array(one, float), np.array(other, float)
    return bool(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) >= 0.705)
