"""Exact scoring in SQL: the best memories of a scope in final order, as many as the packing asks for.

A window of the nearest vectors is scanned first, and joined to its memories only then. Whatever is outside
the window has a cosine of at most the window's worst, so its score is at most
`relevance * worst + importance + vitality`: rows above that bound are in their final order. When the packing
wants more, the window grows; the last one is the whole scope. See docs/recall.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from embeddings.embedding import QueryVector
from embeddings.freshness import KNOWN_HASH
from embeddings.scoring import vector_cursor, vector_param
from memories.models import Account, Category, Memory
from memories.policy import RetentionPolicy
from memories.vitality_sql import VITALITY, vitality_params
from recall.config import RecallLimits
from recall.packing import Candidate
from recall.scope import RecallScope

FIRST_WINDOW = 1024
SECOND_SHARE = 8  # the second window is an eighth of what clears the floor
ROUNDING = 1e-9

# `offset 0` makes one primary-key probe of each row of the window, whatever the planner believes about
# how many rows clear the floor. The scalar subqueries run once.
STATEMENT = """
with usable as materialized ({categories}),
near as materialized (
    select e.memory_id, e.body_hash, 1 - (e.vec <=> %(query)s::halfvec) as cosine
    from embeddings_memoryembedding e
    where e.space_id = %(space)s and e.category_id = any(array(select id from usable))
      and 1 - (e.vec <=> %(query)s::halfvec) >= %(floor)s
    order by cosine desc limit %(window)s
)
select m.id, m.body_bytes,
       %(relevance)s::float8 * near.cosine + %(importance)s::float8 * (m.importance - 1) / 9
       + %(vitality)s::float8 * ({vitality}) / 100 as score,
       near.cosine,
       (select count(*) from near) as found,
       (select min(cosine) from near) as worst
from near
cross join lateral (select * from memories_memory one where one.id = near.memory_id offset 0) m
left join memories_bodyhash h on h.memory_id = m.id
where m.status = 'active' and {hash} = near.body_hash
  and m.category_id = any(array(select id from usable))
  and (m.owner_id = %(account)s
       or m.category_id = any(array(select id from usable where pool)))
order by score desc, m.id desc
"""

COUNT = "select count(*) from near"


@dataclass(frozen=True)
class SemanticQuery:
    """Everything one scoring depends on."""

    account: Account
    scope: RecallScope
    query: QueryVector
    limits: RecallLimits
    policy: RetentionPolicy
    now: datetime


def ranked(asked: SemanticQuery) -> Iterator[Candidate]:
    """Yield every eligible memory in the order of its score, newer ids first among equals.

    Raises:
        ValueError: the retention policy has no usable half-life for a level.
    """
    given, window = 0, FIRST_WINDOW
    while True:
        rows, found, worst = _window(asked, window)
        whole = found < window
        bound = _bound(asked, worst) if not whole else float("-inf")
        certain = [row for row in rows if row.score > bound]
        yield from certain[given:]
        if whole:
            return
        given, window = len(certain), _next_window(asked, window)


def _window(asked: SemanticQuery, window: int) -> tuple[list[Candidate], int, float]:
    statement, params = _statement(asked)
    with vector_cursor() as cursor:
        cursor.execute(statement, params | {"window": window})
        rows = cursor.fetchall()
    if not rows:
        return [], _found(asked, window), -1.0
    return [Candidate(row[0], row[1], row[2], row[3]) for row in rows], rows[0][4], rows[0][5]


def _found(asked: SemanticQuery, window: int) -> int:
    # No row came through the join, which says nothing about the window: it may have been full.
    statement, params = _statement(asked)
    counting = statement[: statement.rindex("select m.id")] + COUNT
    with vector_cursor() as cursor:
        row = cursor.execute(counting, params | {"window": window}).fetchone()
    return int(row[0]) if row else 0


def _bound(asked: SemanticQuery, worst: float) -> float:
    weights = asked.limits.weights
    return weights.relevance * worst + weights.most_without_relevance + ROUNDING


def _next_window(asked: SemanticQuery, window: int) -> int:
    if window > FIRST_WINDOW:
        return 2**31
    total = _found(asked, 2**31)
    return max(total // SECOND_SHARE, FIRST_WINDOW + 1)


def _statement(asked: SemanticQuery) -> tuple[Any, dict[str, Any]]:
    categories, params = _named(_usable(asked))
    statement = STATEMENT.format(categories=categories, vitality=VITALITY, hash=KNOWN_HASH)
    weights = asked.limits.weights
    return statement, {
        **params,
        **vitality_params(asked.policy, asked.now),
        "account": asked.account.pk,
        "query": vector_param(asked.query.vector),
        "space": asked.query.space.pk,
        "floor": asked.limits.floor,
        "relevance": weights.relevance,
        "importance": weights.importance,
        "vitality": weights.vitality,
    }


def _usable(asked: SemanticQuery) -> Any:
    """The scope's categories that the account may use at this moment: the one access predicate."""
    usable = Category.objects.usable_by(asked.account).filter(pk__in=asked.scope.category_ids)
    return usable.values_list("pk", "owner_id")


def _named(queryset: Any) -> tuple[str, dict[str, Any]]:
    """Compile a QuerySet of (id, owner) into SQL with named parameters that can stand within a statement."""
    sql, values = queryset.query.sql_with_params()
    names = [f"access{place}" for place in range(len(values))]
    inner = sql % tuple(f"%({name})s" for name in names)
    return f"select c.id, c.owner_id is null as pool from ({inner}) c (id, owner_id)", dict(
        zip(names, values, strict=True)
    )


def memories_of(account: Account, ids: list[int]) -> dict[int, Memory]:
    """Read bodies, through the same access predicate as everything else."""
    return Memory.objects.active().readable_by(account).in_bulk(ids)
