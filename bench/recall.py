"""How fast an exact recall is, beside the least that could be done (M1, M2).

    python -m bench.recall --rows 1000 10000 --dims 384 1024

In one run and interleaved: the whole database work of `retrieve`, by meaning and words as by default and
by meaning alone; the bare scan `min(vec <=> q)` of the same account in the same session; and brute force by
meaning with numpy over the same vectors in memory, on one thread. Every answer is compared with an oracle in
float64. Compare ratios of one run; milliseconds depend on the machine.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.database import own_database
from bench.recall_store import Matrix, Question, Store, fill, question

if TYPE_CHECKING:
    from recall.retrieval import Recall

COUNT, BYTES, FLOOR, PARAPHRASE = 10, 20_000, 0.2, 0.9
LEXICAL, LEXICAL_FLOOR = 0.4, 0.4
HALF_LIVES = np.array([1, 3, 7, 14, 21, 30, 45, 60, 90, 180], float)
CLOSE = 1e-6  # scores nearer than this may change places: pgvector adds up in float32
WARM_UP = 6


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
    times: dict[str, list[float]] = {}
    mismatches = 0
    for turn in range(rounds + WARM_UP):
        asked = question(store, random)
        taken = {
            "recall": recalled(store, asked, LEXICAL),
            "by_meaning": recalled(store, asked, 0),
            "bare_scan": timed(bare_scan, store, asked),
            "numpy": timed(brute_force, store, asked),
        }
        if turn >= WARM_UP:
            for name, (ms, _) in taken.items():
                times.setdefault(name, []).append(ms)
        mismatches += not same(taken["recall"][1], oracle(store, asked, LEXICAL), store)
        mismatches += not same(taken["by_meaning"][1], oracle(store, asked, 0), store)
    return summary(rows, dims, times, mismatches)


def recalled(store: Store, asked: Question, lexical: float) -> tuple[float, "Recall"]:
    set_lexical(lexical)
    return timed(recall, store, asked)


def timed[**P](work: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = work(*args, **kwargs)
    return (time.perf_counter() - began) * 1000, answer


def summary(rows: int, dims: int, times: dict[str, list[float]], mismatches: int) -> dict[str, Any]:
    middle = {name: median(values) for name, values in times.items()}
    ratios = {
        f"{ours}/{other}": round(middle[ours] / middle[other], 2)
        for ours in ("recall", "by_meaning")
        for other in ("bare_scan", "numpy")
    }
    spent = {f"{name}_ms": round(ms, 2) for name, ms in middle.items()}
    return {"rows": rows, "dims": dims, **spent, **ratios, "mismatches": mismatches}


def show(results: Sequence[dict[str, Any]]) -> None:
    names = list(results[0])
    print("  ".join(f"{name:>20}" for name in names))
    for result in results:
        print("  ".join(f"{result[name]:>20}" for name in names))
    print(json.dumps(results))


# --- The contenders ---


def set_lexical(share: float) -> None:
    from memories.models import ConfigSection

    ConfigSection.objects.update_or_create(
        name="runtime.limits", defaults={"document": {"memoryLexicalWeightPerMille": round(1000 * share)}}
    )


def recall(store: Store, asked: Question) -> "Recall":
    from recall.retrieval import recall_with

    return recall_with(
        asked.asked(store),
        account=store.account,
        text=asked.text,
        scope=store.scope,
        count=COUNT,
        byte_budget=BYTES,
    )


def bare_scan(store: Store, asked: Question) -> float:
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


def brute_force(store: Store, asked: Question) -> list[int]:
    cosines = store.vectors @ (asked.vector / np.linalg.norm(asked.vector))
    found = picks(store, np.flatnonzero(cosines >= FLOOR), cosines, store.vectors)
    return [int(store.ids[place]) for place, _ in found]


def oracle(store: Store, asked: Question, lexical: float) -> list[tuple[int, float]]:
    """Return (place, score) of what should be recalled, computed in float64."""
    wide = store.halves.astype(np.float64)
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    wanted = asked.vector.astype(np.float64)
    cosines = wide @ (wanted / np.linalg.norm(wanted))
    if not lexical:
        return picks(store, np.flatnonzero(cosines >= FLOOR), cosines, wide)
    worth, possible = worths(store, asked)
    eligible = np.flatnonzero((cosines >= FLOOR) | (worth >= LEXICAL_FLOOR * possible))
    anchor = max(cosines.max(), FLOOR)
    relevance = (1 - lexical) * np.maximum(cosines, 0) / anchor + lexical * worth / worth.max()
    return picks(store, eligible, relevance, wide)


def worths(store: Store, asked: Question) -> tuple[Matrix, float]:
    """Return what the question's words are worth that each memory holds, and what all of them are."""
    worth, possible, rows = np.zeros(len(store.ids)), 0, len(store.ids)
    for word in asked.words:
        holders = store.holders.get(word, np.array([], int))
        rarity = round(1_000_000 * math.log(1 + (rows - len(holders) + 0.5) / (len(holders) + 0.5)))
        worth[holders] += rarity
        possible += rarity
    return worth, possible


def picks(store: Store, eligible: Matrix, relevance: Matrix, vectors: Matrix) -> list[tuple[int, float]]:
    importance, uses = store.importance[eligible], store.use_count[eligible]
    age_days = store.age_days[eligible]
    vitality = 0.5 ** (age_days / HALF_LIVES[importance - 1]) * (0.5 + 0.5 * uses / (uses + 5))
    scores = 0.8 * relevance[eligible] + 0.1 * (importance - 1) / 9 + 0.1 * vitality
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


if __name__ == "__main__":
    main()
