"""How fast an exact recall is, beside the least that could be done (M1, M2).

    python -m bench.recall --rows 1000 10000 --dims 384 1024

In one run and interleaved: the whole database work of `retrieve`, the bare scan `min(vec <=> q)` of the same
account in the same session, and brute force with numpy over the same vectors in memory on one thread. Every
answer is compared with an oracle in float64. Compare ratios of one run; milliseconds depend on the machine.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench.database import own_database

if TYPE_CHECKING:
    from embeddings.embedding import QueryVector
    from embeddings.models import EmbeddingSpace
    from memories.models import Account
    from recall.retrieval import Recall
    from recall.scope import RecallScope

COUNT, BYTES, FLOOR, PARAPHRASE = 10, 20_000, 0.2, 0.9
CATEGORIES, TOPICS, BODY_CHARS = 8, 50, 200
HALF_LIVES = np.array([1, 3, 7, 14, 21, 30, 45, 60, 90, 180], float)
CLOSE = 1e-6  # scores nearer than this may change places: pgvector adds up in float32
WARM_UP = 6

type Matrix = NDArray[Any]


@dataclass
class Store:
    """What was stored, once more in memory."""

    account: "Account"
    scope: "RecallScope"
    space: "EmbeddingSpace"
    ids: Matrix
    vectors: Matrix  # float32, length 1, from the same half floats that the database holds
    halves: Matrix
    importance: Matrix
    use_count: Matrix
    age_days: Matrix


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000], help="memories of the account")
    parser.add_argument("--dims", type=int, nargs="+", default=[384])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with own_database():
        results = [
            measure(rows, dims, args.rounds, np.random.default_rng(args.seed))
            for dims in args.dims
            for rows in args.rows
        ]
    show(results)
    sys.exit(any(result["mismatches"] for result in results))


def measure(rows: int, dims: int, rounds: int, random: np.random.Generator) -> dict[str, Any]:
    store = fill(rows, dims, random)
    times: dict[str, list[float]] = {"recall": [], "bare_scan": [], "numpy": []}
    mismatches = 0
    for turn in range(rounds + WARM_UP):
        query = direction(random, topics_of(dims)[turn % TOPICS]).astype(np.float16).astype(np.float32)
        asked = query_vector(query, store)
        taken = {
            "recall": timed(recall, store, asked),
            "bare_scan": timed(bare_scan, store, asked),
            "numpy": timed(brute_force, store, query),
        }
        if turn >= WARM_UP:
            for name, (ms, _) in taken.items():
                times[name].append(ms)
        mismatches += not same(taken["recall"][1], oracle(store, query), store)
    return summary(rows, dims, times, mismatches)


def timed[**P](work: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = work(*args, **kwargs)
    return (time.perf_counter() - began) * 1000, answer


def summary(rows: int, dims: int, times: dict[str, list[float]], mismatches: int) -> dict[str, Any]:
    middle = {f"{name}_ms": round(median(values), 3) for name, values in times.items()}
    return {
        "rows": rows,
        "dims": dims,
        **middle,
        "recall_per_bare_scan": round(middle["recall_ms"] / middle["bare_scan_ms"], 2),
        "recall_per_numpy": round(middle["recall_ms"] / middle["numpy_ms"], 2),
        "mismatches": mismatches,
    }


def show(results: Sequence[dict[str, Any]]) -> None:
    names = list(results[0])
    print("  ".join(f"{name:>20}" for name in names))
    for result in results:
        print("  ".join(f"{result[name]:>20}" for name in names))
    print(json.dumps(results))


# --- The three contenders ---


def recall(store: Store, asked: "QueryVector") -> "Recall":
    from recall.retrieval import recall_with

    return recall_with(
        asked, account=store.account, text="a question", scope=store.scope, count=COUNT, byte_budget=BYTES
    )


def bare_scan(store: Store, asked: "QueryVector") -> float:
    from embeddings.scoring import vector_cursor, vector_param

    sql = (
        "select min(vec <=> %(query)s::halfvec) from embeddings_memoryembedding"
        " where space_id = %(space)s and account_id = %(account)s"
    )
    values = {
        "query": vector_param(asked.vector),
        "space": store.space.pk,
        "account": store.account.pk,
    }
    with vector_cursor() as cursor:
        row = cursor.execute(sql, values).fetchone()
    return float(row[0]) if row else 0.0


def brute_force(store: Store, query: Matrix) -> list[int]:
    cosines = store.vectors @ (query / np.linalg.norm(query))
    return [int(store.ids[one]) for one, _ in picks(store, cosines, store.vectors, store.age_days)]


def oracle(store: Store, query: Matrix) -> list[tuple[int, float]]:
    """Return (place, score) of what should be recalled, computed in float64."""
    wide = store.halves.astype(np.float64)
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    question = query.astype(np.float64)
    return picks(store, wide @ (question / np.linalg.norm(question)), wide, store.age_days)


def picks(store: Store, cosines: Matrix, vectors: Matrix, age_days: Matrix) -> list[tuple[int, float]]:
    eligible = np.flatnonzero(cosines >= FLOOR)
    importance, uses = store.importance[eligible], store.use_count[eligible]
    vitality = 0.5 ** (age_days[eligible] / HALF_LIVES[importance - 1]) * (0.5 + 0.5 * uses / (uses + 5))
    scores = 0.8 * cosines[eligible] + 0.1 * (importance - 1) / 9 + 0.1 * vitality
    picked: list[tuple[int, float]] = []
    for place in np.lexsort((-store.ids[eligible], -scores)):
        one = int(eligible[place])
        if len(picked) == COUNT:
            break
        if all(vectors[one] @ vectors[other] < PARAPHRASE for other, _ in picked):
            picked.append((one, float(scores[place])))
    return picked


def same(found: "Recall", expected: list[tuple[int, float]], store: Store) -> bool:
    """Whether the answer is the oracle's; two scores within rounding may have changed places."""
    if len(found.memories) != len(expected):
        return False
    return all(
        one.memory.pk == store.ids[place] or abs(one.score - score) < CLOSE
        for one, (place, score) in zip(found.memories, expected, strict=True)
    )


# --- The store ---


def topics_of(dims: int) -> Matrix:
    topics = np.random.default_rng(dims).normal(size=(TOPICS, dims))
    return topics / np.linalg.norm(topics, axis=1, keepdims=True)


def direction(random: np.random.Generator, topic: Matrix) -> Matrix:
    """Return one vector about a topic: cosine 0.36 to others about it, near 0 to the rest."""
    noise = random.normal(size=topic.shape)
    return 0.6 * topic + 0.8 * noise / np.linalg.norm(noise)


def query_vector(query: Matrix, store: Store) -> "QueryVector":
    from embeddings.embedding import QueryVector

    return QueryVector(query, store.space)


def fill(rows: int, dims: int, random: np.random.Generator) -> Store:
    from django.db import connection
    from django.utils import timezone

    from embeddings.models import EmbeddingSpace
    from memories.models import Account, Category
    from recall.scope import recall_scope

    name = f"bench {rows} x {dims}"
    account = Account.objects.create(username=name)
    space = EmbeddingSpace.objects.create(provider="bench", endpoint_hash=b"\0" * 32, model=name, dims=dims)
    categories = [Category.objects.create(owner=account, name=str(n)).pk for n in range(CATEGORIES)]
    topics = topics_of(dims)
    noise = random.normal(size=(rows, dims))
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    halves = (0.6 * topics[random.integers(TOPICS, size=rows)] + 0.8 * noise).astype(np.float16)
    facts = {
        "importance": random.integers(1, 11, size=rows),
        "use_count": random.integers(0, 20, size=rows),
        "age_days": random.integers(0, 200, size=rows).astype(float),
    }
    ids = insert_memories(account, categories, facts, timezone.now())
    insert_vectors(ids, account, space, categories, halves)
    with connection.cursor() as cursor:
        cursor.execute("delete from embeddings_pendingmemory")
        cursor.execute("vacuum (analyze)")
    vectors = halves.astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Store(account, recall_scope(account), space, ids, vectors, halves, **facts)


def insert_memories(
    account: "Account", categories: Sequence[int], facts: dict[str, Matrix], now: Any
) -> Matrix:
    """Copy the rows in and return their ids, in order."""
    from django.db import connection

    rows = len(facts["importance"])
    with connection.cursor() as cursor:
        cursor.execute("select coalesce(max(id), 0) from memories_memory")
        first = cursor.fetchone()[0] + 1
        columns = (
            "id, owner_id, category_id, body, kind, importance, status, source, use_count, last_used_at,"
            " created_at, updated_at, origin"
        )
        with cursor.copy(f"copy memories_memory ({columns}) from stdin") as copy:
            for n in range(rows):
                used_at = now - timedelta(days=float(facts["age_days"][n]))
                body = f"{first + n} ".ljust(BODY_CHARS, "m")
                copy.write_row((
                    first + n, account.pk, categories[n % CATEGORIES], body, "fact",
                    int(facts["importance"][n]), "active", "user", int(facts["use_count"][n]),
                    used_at, used_at, used_at, "{}",
                ))  # fmt: skip
        cursor.execute(
            "insert into memories_bodyhash (memory_id, sha256) select id, sha256(convert_to(body, 'UTF8'))"
            " from memories_memory where id >= %s",
            [first],
        )
    return np.arange(first, first + rows)


def insert_vectors(
    ids: Matrix, account: "Account", space: "EmbeddingSpace", categories: Sequence[int], halves: Matrix
) -> None:
    from django.db import connection

    columns = "memory_id, space_id, account_id, category_id, body_hash, vec"
    header = halves.shape[1].to_bytes(2) + b"\0\0"
    with connection.cursor() as cursor:
        cursor.execute("select memory_id, sha256 from memories_bodyhash where memory_id >= %s", [int(ids[0])])
        hashes = dict(cursor.fetchall())
        with cursor.copy(
            f"copy embeddings_memoryembedding ({columns}) from stdin with (format binary)"
        ) as copy:
            copy.set_types(["int8", "int8", "int8", "int8", "bytea", "bytea"])
            for n, (memory_id, half) in enumerate(zip(ids, halves, strict=True)):
                packed = header + half.astype(">f2").tobytes()
                copy.write_row((
                    int(memory_id), space.pk, account.pk, categories[n % CATEGORIES],
                    bytes(hashes[memory_id]), packed,
                ))  # fmt: skip


if __name__ == "__main__":
    main()
