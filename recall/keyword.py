"""Search by words where vectors cannot help. The place for a ranked match (BM25) is `MATCH`."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import BinaryField, BooleanField, F, FloatField, Func, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from elowen.lib.text import escape_like
from memories.models import Account, Memory
from recall.packing import Candidate
from recall.ranking import (
    KEYWORD_IMPORTANCE_SHARE,
    KEYWORD_SHARE,
    RECENCY_HALF_LIFE_DAYS,
    RECENCY_SHARE,
)
from recall.scope import RecallScope, usable_categories

MEMORY_QUERY_CHARS = 2000
MIN_CHARS = 2
FIRST_PAGE, PAGE_GROWTH = 50, 4

MATCH = "memories_memory.body ILIKE %s"
# `ranking.keyword_score` in SQL.
SCORE = f"""
    {KEYWORD_SHARE}::float8 * (%s AND {MATCH})::int
    + {KEYWORD_IMPORTANCE_SHARE}::float8 * (memories_memory.importance - 1) / 9
    + %s::float8 * power(0.5::float8,
        greatest(date_part('epoch', %s::timestamptz - memories_memory.updated_at), 0)
        / 86400::float8 / {RECENCY_HALF_LIFE_DAYS})
"""
BODY_HASH = Coalesce(
    F("body_hash__sha256"),
    Func("body", template="sha256(convert_to(%(expressions)s, 'UTF8'))", output_field=BinaryField()),
)


def clean_query(query: str) -> str:
    """Return what of a query is embedded and matched."""
    return query.strip()[:MEMORY_QUERY_CHARS].strip()


def matches(rows: QuerySet[Memory], query: str) -> QuerySet[Memory]:
    """Keep the memories that contain the whole query in any case; none for less than two characters."""
    if len(query) < MIN_CHARS:
        return rows.none()
    return rows.filter(RawSQL(MATCH, [_pattern(query)], output_field=BooleanField()))  # noqa: S611 - constant


def candidates(
    account: Account, scope: RecallScope, query: str, *, now: datetime, recency: bool
) -> Iterator[Candidate]:
    """Yield the matches, and with `recency` every other memory of the scope as well, best first.

    Reads pages that widen, so that memories which nobody wants cannot crowd out the others. Call it in a
    snapshot: the pages belong together.
    """
    rows = _ranked(account, scope, query, now=now, recency=recency)
    start, size = 0, FIRST_PAGE
    while page := list(rows[start : start + size]):
        for memory_id, body_hash, body_bytes, score in page:
            yield Candidate(memory_id, bytes(body_hash), body_bytes, score, None)
        start, size = start + size, size * PAGE_GROWTH


def _ranked(
    account: Account, scope: RecallScope, query: str, *, now: datetime, recency: bool
) -> QuerySet[Memory, tuple[int, bytes, int, float]]:
    rows = Memory.objects.active().readable_by(account)
    rows = rows.filter(category_id__in=usable_categories(account, scope).values("pk"))
    found = rows if recency else matches(rows, query)
    values = (len(query) >= MIN_CHARS, _pattern(query), RECENCY_SHARE if recency else 0.0, now)
    place = RawSQL(SCORE, values, output_field=FloatField())  # noqa: S611 - constants
    return (
        found.annotate(place=place, exact_hash=BODY_HASH)
        .order_by("-place", "-pk")
        .values_list("pk", "exact_hash", "body_bytes", "place")
    )


def _pattern(query: str) -> str:
    return f"%{escape_like(query)}%"
