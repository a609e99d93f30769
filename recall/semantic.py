"""Exact scoring in SQL: the best memories of a scope in final order, as many as the packing asks for.

A window of the nearest vectors is scanned, and joined with the best by words to its memories only then.
Whatever is in neither has a cosine of at most the window's worst and words worth at most the cutoff, which
bounds its score: rows above the bound are in their final order. When the packing wants more, both grow; the
last step is the whole scope. See docs/recall.md.
"""

import math
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
from recall.config import RecallConfig, RecallLimits
from recall.packing import Candidate
from recall.ranking import relevance
from recall.scope import RecallScope
from recall.words import BEST, POSSIBLE, WORDS

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
),
"""
# The scalar subqueries run once.
EXTENT = f""",
extent as materialized (
    select (select count(*) from near) as found, (select min(cosine) from near) as worst,
           {BEST} as best, {POSSIBLE} as possible,
           (select worth from words order by worth desc offset %(said)s limit 1) as cutoff
),
"""
# A full join is never a nested loop, and `offset 0` asks for one primary-key probe a row. Left to choose, the
# planner takes an account that was imported since the last ANALYZE for an empty one, and compares each
# memory with each vector.
CANDIDATES = """
candidate as (
    select coalesce(near.memory_id, words.memory_id) as memory_id, near.body_hash, near.cosine,
           coalesce(words.worth, 0) as worth
    from near full join words on words.memory_id = near.memory_id
    where near.memory_id is not null or words.worth > coalesce((select cutoff from extent), -1)
),
known as materialized (
    select m.id, {hash} as body_hash, m.body_bytes, candidate.worth,
           case when coalesce(candidate.body_hash, e.body_hash) = {hash}
                then coalesce(candidate.cosine, e.cosine) end as cosine,
           %(importance)s::float8 * (m.importance - 1) / 9
           + %(vitality)s::float8 * ({vitality}) / 100 as merit
    from candidate
    cross join lateral (select * from memories_memory one where one.id = candidate.memory_id offset 0) m
    left join lateral (select sha256 from memories_bodyhash one where one.memory_id = m.id offset 0) h on true
    left join lateral (
        select one.body_hash, 1 - (one.vec <=> %(query)s::halfvec) as cosine
        from embeddings_memoryembedding one
        where candidate.cosine is null and one.memory_id = m.id and one.space_id = %(space)s offset 0
    ) e on true
    where {readable}
),
anchored as materialized (
    select extent.*, (select max(cosine) from known where cosine >= %(floor)s) as anchor from extent
)
"""
# `ranking.relevance` in SQL. The extent comes back even when no row does: it decides if there is more.
SCORED = """
select scored.*, anchored.*
from anchored left join lateral (
    select id, body_hash, body_bytes, merit + %(relevance)s::float8 * case
               when %(lexical)s = 0 then cosine
               when anchored.best > 0 then
                   (1 - %(lexical)s::float8) * coalesce(cosine_share, 0)
                   + %(lexical)s::float8 * worth / anchored.best
               else coalesce(cosine_share, 0) end as score,
           cosine, coalesce(worth / nullif(anchored.possible, 0), 0)::float8 as lexical
    from known cross join lateral (
        select greatest(cosine, 0) / nullif(coalesce(anchored.anchor, %(floor)s::float8), 0) as cosine_share
    ) shares
    where cosine >= %(floor)s or (worth > 0 and worth >= %(lexical_floor)s::float8 * anchored.possible)
    order by score desc, id desc limit %(rows)s
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
    """How much is looked at."""

    window: int  # nearest vectors
    rows: int  # scored rows that come back
    said: int  # best by words


# A step that proves too little costs a scan. Of 100,000 vectors with 1,024 dimensions, 1,024 were too few.
FIRST_STEP = Step(window=2048, rows=128, said=512)


@dataclass(frozen=True)
class Extent:
    """What a step has seen, by which is decided what it has not."""

    found: int  # vectors in its window
    worst: float | None  # cosine among them
    best: int | None  # worth of the words of a memory
    possible: int | None  # worth of all words of the question
    cutoff: int | None  # worth up to which memories were left out that no window holds; None: none were
    anchor: float | None  # best cosine of a memory in the scope, if the window shows it


@dataclass(frozen=True)
class SemanticQuery:
    """Everything one scoring depends on. The answer does not depend on `first_step`."""

    account: Account
    scope: RecallScope
    text: str
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
        yield Step(second, MORE_ROWS * first.rows, second)
    yield Step(EVERYTHING, MORE_ROWS * first.rows, EVERYTHING)
    yield Step(EVERYTHING, EVERYTHING, EVERYTHING)


def _certain(asked: SemanticQuery, step: Step) -> tuple[list[Candidate], bool]:
    """Return the rows whose place is final, and whether there are no others."""
    with vector_cursor() as cursor:
        answer = cursor.execute(*statement(asked, step), binary=True).fetchall()
    rows = [Candidate(*row[:6]) for row in answer if row[0] is not None]
    extent = Extent(*answer[0][6:])
    if extent.found < step.window and extent.cutoff is None:
        return rows, len(rows) < step.rows
    bound = _bound(asked.config.limits, extent, full=extent.found >= step.window)
    return [row for row in rows if row.score > bound], False


def _bound(limits: RecallLimits, extent: Extent, *, full: bool) -> float:
    """Return what no memory that was not looked at can score more than."""
    if full and extent.anchor is None:
        return math.inf  # the best cosine is still to be seen
    nearest = extent.worst if full and extent.worst is not None else limits.floor
    outside = relevance(
        nearest,
        (extent.cutoff or 0) / extent.best if extent.best else None,
        anchor=limits.floor if extent.anchor is None else extent.anchor,
        lexical=limits.lexical,
    )
    return limits.weights.relevance * outside + limits.weights.most_without_relevance + ROUNDING


def statement(asked: SemanticQuery, step: Step) -> tuple[Any, dict[str, Any]]:
    """Return the one statement of a step, with its parameters; access is decided within it."""
    sql, params = _filled(NEAR + WORDS + EXTENT + CANDIDATES + SCORED, asked)
    limits = asked.config.limits
    return sql, {
        **params,
        **vitality_params(asked.config.policy, asked.now),
        "query": vector_param(asked.query.vector),
        "text": asked.text if limits.lexical else "",
        "floor": limits.floor,
        "lexical": limits.lexical,
        "lexical_floor": limits.lexical_floor,
        "relevance": limits.weights.relevance,
        "importance": limits.weights.importance,
        "vitality": limits.weights.vitality,
        "window": step.window,
        "said": step.said,
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
