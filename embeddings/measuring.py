"""Measures a model on known examples, and how near to each other the memories of this store are in it."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import batched
from pathlib import Path

import numpy as np

from elowen.providers.vectors import Vector
from embeddings.calibrating import TEXTS, Pairs, compare
from embeddings.connections import INSTANCE
from embeddings.embedding import Purpose, Run, embed
from embeddings.models import EmbeddingSpace
from embeddings.scoring import vector_cursor, vector_from

EXAMPLES = Path(__file__).parent / "data" / "calibration.tsv"
REQUEST_TEXTS = 32
SAMPLE = 1_000  # memories; half a million pairs
ANCHORS = 200  # whose nearest neighbours are looked for among all memories of their owners

# In the order of a hash: by chance, and the same at every call.
SAMPLED = """
    SELECT halfvec_send(vec) FROM embeddings_memoryembedding
    WHERE space_id = %(space)s AND category_id IS NOT NULL
    ORDER BY md5(memory_id::text), memory_id LIMIT %(limit)s
"""
NEAREST = """
    WITH anchors AS MATERIALIZED (
        SELECT memory_id, account_id, vec FROM embeddings_memoryembedding
        WHERE space_id = %(space)s AND category_id IS NOT NULL
        ORDER BY md5(memory_id::text), memory_id LIMIT %(limit)s
    )
    SELECT max(1 - (other.vec <=> anchors.vec)) FROM anchors
    JOIN embeddings_memoryembedding other ON other.account_id = anchors.account_id
    WHERE other.space_id = %(space)s AND other.category_id IS NOT NULL
      AND other.memory_id <> anchors.memory_id
    GROUP BY anchors.memory_id
"""

type Example = dict[str, str]  # its language and TEXTS


@dataclass(frozen=True)
class Store:
    """Cosines, ascending, between active memories."""

    sampled: int  # memories
    pairs: Vector  # any two of them
    nearest: Vector  # a memory and the nearest other of its owner


def examples(languages: Sequence[str] = ()) -> list[Example]:
    """Return the bundled examples; of these languages, or all."""
    with EXAMPLES.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    return [row for row in rows if not languages or row["language"] in languages]


def measure_model(run: Run, rows: Sequence[Example]) -> dict[str, Pairs]:
    """Have the model embed the examples as notes and questions. Returns the cosines in each language.

    Raises:
        Unavailable: the model cannot be asked.
        EmbeddingSpaceChanged: the settings changed meanwhile.
    """
    languages: dict[str, list[Example]] = {}
    for row in rows:
        languages.setdefault(row["language"], []).append(row)
    return {language: compare(vectors_of(run, group)) for language, group in languages.items()}


def vectors_of(run: Run, rows: Sequence[Example]) -> dict[str, Vector]:
    return {name: np.vstack(list(embedded(run, rows, name))) for name in TEXTS}


def embedded(run: Run, rows: Sequence[Example], name: str) -> Iterator[Vector]:
    purpose = Purpose.QUERY if name == "question" else Purpose.INDEX
    for part in batched(rows, REQUEST_TEXTS):
        yield embed(run, [row[name] for row in part], identity=INSTANCE, purpose=purpose)


def measure_store(space: EmbeddingSpace) -> Store:
    with vector_cursor() as cursor:
        cursor.execute(SAMPLED, {"space": space.pk, "limit": SAMPLE}, binary=True)
        rows = [vector_from(data) for (data,) in cursor]
        nearest = cursor.execute(NEAREST, {"space": space.pk, "limit": ANCHORS}).fetchall()
    return Store(len(rows), pairs_of(rows), np.sort(np.array([cosine for (cosine,) in nearest], np.float32)))


def pairs_of(rows: Sequence[Vector]) -> Vector:
    if len(rows) < 2:
        return np.empty(0, np.float32)
    vectors = np.vstack(rows)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.sort((vectors @ vectors.T)[np.triu_indices(len(rows), 1)])
