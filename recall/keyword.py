"""Search by words where vectors cannot help: the whole question as it stands, or its words by worth."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL

from elowen.lib.text import escape_like
from embeddings.freshness import KNOWN_HASH
from embeddings.scoring import vector_cursor
from memories.models import Account, Memory
from recall.access_sql import READABLE, access_params, usable_sql
from recall.packing import Candidate
from recall.ranking import (
    KEYWORD_IMPORTANCE_SHARE,
    KEYWORD_SHARE,
    RECENCY_HALF_LIFE_DAYS,
    RECENCY_SHARE,
)
from recall.scope import RecallScope
from recall.words import POSSIBLE, WORDS

MEMORY_QUERY_CHARS = 2000
MIN_CHARS = 2
FIRST_PAGE, PAGE_GROWTH = 50, 4

MATCH = "memories_memory.body ILIKE %s"
# `ranking.keyword_score` in SQL. A full join within `offset 0` is never made a nested loop, whatever the
# planner believes about how many rows there are.
FOUND = f"""
select m.id, {KNOWN_HASH} as body_hash, m.body_bytes, strength.place, m.said
from (
    select m.*, least(coalesce(words.worth / nullif({POSSIBLE}, 0), 0), 1)::float8 as said,
           %(matching)s and m.body ilike %(pattern)s as whole
    from (select m.* from memories_memory m where {READABLE}) m
    full join words on words.memory_id = m.id offset 0
) m
left join memories_bodyhash h on h.memory_id = m.id
cross join lateral (select
    {KEYWORD_SHARE}::float8 * (case when m.whole then 1 else m.said end)
    + {KEYWORD_IMPORTANCE_SHARE}::float8 * (m.importance - 1) / 9
    + %(recency)s::float8 * power(0.5::float8,
        greatest(date_part('epoch', %(now)s::timestamptz - m.updated_at), 0)
        / 86400::float8 / {RECENCY_HALF_LIFE_DAYS}) as place
) strength
where m.id is not null
  and (%(recency)s::float8 > 0 or m.whole or (m.said > 0 and m.said >= %(lexical_floor)s::float8))
order by strength.place desc, m.id desc
limit %(size)s offset %(start)s
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class KeywordQuery:
    account: Account
    scope: RecallScope
    text: str
    lexical_floor: float  # share of the question's words, by worth, that makes a match
    now: datetime
    recency: bool  # every other memory of the scope takes part as well


def clean_query(query: str) -> str:
    """Return what of a query is embedded and matched."""
    return query.strip()[:MEMORY_QUERY_CHARS].strip()


def matches(rows: QuerySet[Memory], query: str) -> QuerySet[Memory]:
    """Keep the memories that contain the whole query in any case; none for less than two characters."""
    if len(query) < MIN_CHARS:
        return rows.none()
    return rows.filter(RawSQL(MATCH, [_pattern(query)], output_field=BooleanField()))  # noqa: S611 - constant


def candidates(asked: KeywordQuery) -> Iterator[Candidate]:
    """Yield the matches, and with `recency` every other memory of the scope as well, best first.

    Reads pages that widen, so that memories which nobody wants cannot crowd out the others. Call it in a
    snapshot: the pages belong together.
    """
    sql, params = statement(asked)
    start, size = 0, FIRST_PAGE
    with vector_cursor() as cursor:
        while page := cursor.execute(sql, params | {"start": start, "size": size}, binary=True).fetchall():
            for memory_id, body_hash, body_bytes, score, said in page:
                yield Candidate(memory_id, body_hash, body_bytes, score, None, said)
            start, size = start + size, size * PAGE_GROWTH


def statement(asked: KeywordQuery) -> tuple[Any, dict[str, Any]]:
    """Return the statement of a page, but for its `start` and `size`; access is decided within it."""
    sql = f"with usable as materialized ({usable_sql()}), {WORDS} {FOUND}"
    return sql, access_params(asked.account, asked.scope) | {
        "text": asked.text,
        "matching": len(asked.text) >= MIN_CHARS,
        "pattern": _pattern(asked.text),
        "lexical_floor": asked.lexical_floor,
        "recency": RECENCY_SHARE if asked.recency else 0.0,
        "now": asked.now,
    }


def _pattern(query: str) -> str:
    return f"%{escape_like(query)}%"
