"""Search by words where vectors cannot help. The place for a ranked match (BM25) is `matches`."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import QuerySet

from elowen.lib.text import escape_like
from memories.models import Account, Memory
from recall.packing import Candidate
from recall.ranking import keyword_score
from recall.scope import RecallScope

MEMORY_QUERY_CHARS = 2000
MIN_CHARS = 2
FIRST_PAGE, PAGE_GROWTH = 50, 4
DAY = timedelta(days=1)


def matches(rows: QuerySet[Memory], query: str) -> QuerySet[Memory]:
    """Keep the memories that contain the whole query in any case; none for less than two characters."""
    if len(query) < MIN_CHARS:
        return rows.none()
    return rows.extra(where=["body ILIKE %s"], params=[f"%{escape_like(query)}%"])


def candidates(
    account: Account, scope: RecallScope, query: str, *, now: datetime, recency: bool
) -> Iterator[Candidate]:
    """Yield matches, and with `recency` also the newest memories, best first within widening pages."""
    rows = Memory.objects.active().readable_by(account).filter(category_id__in=scope.category_ids)
    seen: set[int] = set()
    page = FIRST_PAGE
    while True:
        found = _page(rows, query, page, recency=recency)
        fresh = [(match, memory) for match, memory in found if memory.pk not in seen]
        yield from _scored(fresh, now=now, recency=recency)
        seen |= {memory.pk for _, memory in fresh}
        if len(found) < page:
            return
        page *= PAGE_GROWTH


def _page(rows: QuerySet[Memory], query: str, size: int, *, recency: bool) -> list[tuple[float, Memory]]:
    newest = ("-updated_at", "-pk")
    slim = rows.only("pk", "importance", "updated_at", "body_bytes")
    hits = {memory.pk: (1.0, memory) for memory in matches(slim, query).order_by(*newest)[:size]}
    if recency:
        for memory in slim.order_by(*newest)[:size]:
            hits.setdefault(memory.pk, (0.0, memory))
    return list(hits.values())


def _scored(found: list[tuple[float, Memory]], *, now: datetime, recency: bool) -> list[Candidate]:
    scored = [
        Candidate(
            memory.pk,
            memory.body_bytes,
            keyword_score(
                match=match,
                importance=memory.importance,
                age_days=(now - memory.updated_at) / DAY,
                recency=recency,
            ),
            None,
        )
        for match, memory in found
    ]
    return sorted(scored, key=lambda one: (-one.score, -one.memory_id))
