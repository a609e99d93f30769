"""Exact scoring in SQL: the best memories of a scope in final order, as many as the packing asks for.

A window of the nearest vectors is scanned first, and joined to its memories only then. Whatever is outside
the window has a cosine of at most the window's worst, so its score is at most
`relevance * worst + importance + vitality`: rows above that bound are in their final order. When the packing
wants more, the window grows; the last one is the whole scope. See docs/recall.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from embeddings.embedding import QueryVector
from embeddings.freshness import KNOWN_HASH
from embeddings.scoring import vector_cursor, vector_param
from memories.models import Account, Memory
from memories.vitality import VITALITY, vitality_params
from recall.access_sql import READABLE, access_params, usable_sql
from recall.config import RecallConfig
from recall.packing import Candidate
from recall.scope import RecallScope

SECOND_SHARE = 8  # the second window is an eighth of the scope
MORE_ROWS = 8  # times as many come back from the later steps; only who wants more than these gets all
EVERYTHING = 2**31 - 1
ROUNDING = 1e-9

NEAR = """
with usable as materialized ({categories}),
near as materialized (
    select e.memory_id, e.body_hash, 1 - (e.vec <=> %(query)s::halfvec) as cosine
    from embeddings_memoryembedding e
    where e.space_id = %(space)s and e.category_id = any(array(select id from usable))
      and 1 - (e.vec <=> %(query)s::halfvec) >= %(floor)s
    order by cosine desc limit %(window)s
)
"""
# The window comes back even when none of its rows is a memory that may be read now: whether it was full
# decides if there is more. The scalar subqueries run once.
# `offset 0` asks for one primary-key probe a row of the window. Left to choose, the planner takes an account
# that was imported since the last ANALYZE for an empty one, and compares each memory with each vector.
SCORED = """
select scored.*, extent.found, extent.worst
from (select (select count(*) from near) as found, (select min(cosine) from near) as worst) extent
left join lateral (
    select m.id, near.body_hash, m.body_bytes,
           %(relevance)s::float8 * near.cosine + %(importance)s::float8 * (m.importance - 1) / 9
           + %(vitality)s::float8 * ({vitality}) / 100 as score,
           near.cosine
    from near
    cross join lateral (select * from memories_memory one where one.id = near.memory_id offset 0) m
    left join lateral (select sha256 from memories_bodyhash one where one.memory_id = m.id offset 0) h on true
    where {readable} and {hash} = near.body_hash
    order by score desc, m.id desc limit %(rows)s
) scored on true
order by scored.score desc, scored.id desc
"""

SIZE = """
with usable as materialized ({categories})
select count(*) from embeddings_memoryembedding e
where e.space_id = %(space)s and e.category_id = any(array(select id from usable))
"""

BODIES = """
with usable as materialized ({categories})
select m.* from memories_memory m where m.id = any(%(ids)s) and {readable}
"""


@dataclass(frozen=True)
class Step:
    """So many of the nearest vectors are looked at, and so many scored rows come back."""

    window: int
    rows: int


# A step that proves too little costs a scan. Of 100,000 vectors with 1,024 dimensions, 1,024 were too few.
FIRST_STEP = Step(window=2048, rows=128)


@dataclass(frozen=True)
class SemanticQuery:
    """Everything one scoring depends on. The answer does not depend on `first_step`."""

    account: Account
    scope: RecallScope
    query: QueryVector
    config: RecallConfig
    now: datetime
    first_step: Step = FIRST_STEP


def ranked(asked: SemanticQuery) -> Iterator[Candidate]:
    """Yield every eligible memory in the order of its score, newer ids first among equals."""
    given = 0
    for step in _steps(asked):
        certain, whole = _certain(asked, step)
        yield from certain[given:]
        if whole:
            return
        given = max(given, len(certain))


def _steps(asked: SemanticQuery) -> Iterator[Step]:
    first = asked.first_step
    yield first
    with vector_cursor() as cursor:
        size = cursor.execute(*_filled(SIZE, asked)).fetchone()
    second = size[0] // SECOND_SHARE if size else 0
    if second > first.window:
        yield Step(second, MORE_ROWS * first.rows)
    yield Step(EVERYTHING, MORE_ROWS * first.rows)
    yield Step(EVERYTHING, EVERYTHING)


def _certain(asked: SemanticQuery, step: Step) -> tuple[list[Candidate], bool]:
    """Return the rows whose place is final, and whether there are no others."""
    with vector_cursor() as cursor:
        answer = cursor.execute(*statement(asked, step), binary=True).fetchall()
    *_, found, worst = answer[0]
    rows = [Candidate(*row[:5]) for row in answer if row[0] is not None]
    if found < step.window:
        return rows, len(rows) < step.rows
    weights = asked.config.limits.weights
    bound = weights.relevance * worst + weights.most_without_relevance + ROUNDING
    return [row for row in rows if row.score > bound], False


def statement(asked: SemanticQuery, step: Step) -> tuple[Any, dict[str, Any]]:
    """Return the one statement of a step, with its parameters; access is decided within it."""
    sql, params = _filled(NEAR + SCORED, asked)
    limits = asked.config.limits
    return sql, {
        **params,
        **vitality_params(asked.config.policy, asked.now),
        "query": vector_param(asked.query.vector),
        "floor": limits.floor,
        "relevance": limits.weights.relevance,
        "importance": limits.weights.importance,
        "vitality": limits.weights.vitality,
        "window": step.window,
        "rows": step.rows,
    }


def _filled(template: str, asked: SemanticQuery) -> tuple[Any, dict[str, Any]]:
    sql = template.format(categories=usable_sql(), readable=READABLE, vitality=VITALITY, hash=KNOWN_HASH)
    return sql, access_params(asked.account, asked.scope) | {"space": asked.query.space.pk}


def memories_of(account: Account, scope: RecallScope, ids: Sequence[int]) -> dict[int, Memory]:
    """Read bodies, through the same access predicate as everything else."""
    statement = BODIES.format(categories=usable_sql(), readable=READABLE)
    rows = Memory.objects.raw(statement, access_params(account, scope) | {"ids": list(ids)})
    return {memory.pk: memory for memory in rows}
