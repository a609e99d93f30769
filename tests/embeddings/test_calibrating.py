"""S13: the rules that turn pairs of known meaning into thresholds, beside plain readings of them."""

from collections import Counter
from itertools import permutations
from random import Random

import numpy as np
import pytest

from elowen.providers.vectors import Vector
from embeddings.calibrating import TEXTS, Pairs, compare, propose, quantile, reaching, together
from embeddings.measuring import examples


def random_vectors(random: Random, count: int, width: int = 5) -> Vector:
    rows = np.array([[random.gauss(0, 1) for _ in range(width)] for _ in range(count)], np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def pairs(**cosines: list[float]) -> Pairs:
    given = {name: [0.5] for name in ("unrelated", *TEXTS[1:])} | cosines
    return Pairs(**{name: np.sort(np.array(values, np.float32)) for name, values in given.items()})


@pytest.mark.parametrize("seed", range(20))
def test_every_pair_is_compared_and_no_other(seed: int) -> None:
    random = Random(seed)
    count = random.randint(2, 9)
    vectors = {name: random_vectors(random, count) for name in TEXTS}

    found = compare(vectors)

    def cosine(name: str, one: int, other: int) -> float:
        return float(sum(a * b for a, b in zip(vectors["note"][one], vectors[name][other], strict=True)))

    crossed = sorted(cosine("question", *two) for two in permutations(range(count), 2))
    assert found.unrelated == pytest.approx(crossed, abs=1e-5)
    for name in TEXTS[1:]:
        expected = sorted(cosine(name, number, number) for number in range(count))
        assert getattr(found, name) == pytest.approx(expected, abs=1e-5)


def test_languages_together_are_not_crossed() -> None:
    random = Random(1)
    one, other = (compare({name: random_vectors(random, count) for name in TEXTS}) for count in (3, 4))

    both = together([one, other])

    assert len(both.unrelated) == 3 * 2 + 4 * 3
    assert sorted([*one.paraphrase, *other.paraphrase]) == list(both.paraphrase)


def test_the_floor_keeps_nearly_all_unrelated_notes_out() -> None:
    unrelated = [number / 1000 for number in range(400)]

    assert propose(pairs(unrelated=unrelated, question=[0.9] * 100)).floor == 380


def test_the_floor_gives_way_where_it_would_cost_answers() -> None:
    unrelated = [number / 1000 for number in range(400)]

    assert propose(pairs(unrelated=unrelated, question=[0.25] * 3 + [0.9] * 97)).floor == 250


def test_only_the_nearest_tenth_of_paraphrases_counts_as_the_same() -> None:
    assert propose(pairs(paraphrase=[number / 100 for number in range(100)])).paraphrase == 890


def test_nearly_all_near_duplicates_are_taken_for_one() -> None:
    assert propose(pairs(near_duplicate=[0.8] + [0.95] * 99)).duplicate == 950
    assert propose(pairs(near_duplicate=[0.8] * 5 + [0.95] * 95)).duplicate == 800


def test_a_duplicate_is_never_further_away_than_a_paraphrase() -> None:
    found = propose(pairs(paraphrase=[0.9] * 10, near_duplicate=[0.7] * 10))

    assert (found.paraphrase, found.duplicate) == (900, 900)


@pytest.mark.parametrize("seed", range(50))
def test_quantiles_and_shares_agree_with_each_other(seed: int) -> None:
    random = Random(seed)
    cosines = np.sort(np.array([random.uniform(-1, 1) for _ in range(random.randint(1, 40))], np.float32))
    share = random.random()

    below = sum(value < quantile(cosines, share) - 1e-6 for value in cosines)
    limit = random.randint(-1000, 1000)

    assert below <= share * (len(cosines) - 1) + 1
    assert reaching(cosines, limit) == pytest.approx(sum(v >= limit / 1000 for v in cosines) / len(cosines))


def test_the_examples_are_enough_and_each_is_whole() -> None:
    rows = examples()

    counts = Counter(row["language"] for row in rows)
    assert counts["en"] >= 60
    assert all(counts[language] >= 12 for language in ("de", "fr", "es"))
    assert all(set(row) == {"language", *TEXTS} and all(map(str.strip, row.values())) for row in rows)


@pytest.mark.parametrize("name", TEXTS)
def test_no_example_is_there_twice(name: str) -> None:
    texts = [row[name] for row in examples()]

    assert len(texts) == len(set(texts))


def test_no_example_compares_a_text_with_itself() -> None:
    assert all(len({row[name] for name in TEXTS}) == len(TEXTS) for row in examples())


def test_languages_are_chosen() -> None:
    assert {row["language"] for row in examples(["de", "fr"])} == {"de", "fr"}
