"""Search by hand, over whatever rows a list shows; and near-duplicates of a text."""

from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet

from elowen.lib.db import named_sql
from elowen.lib.errors import Unavailable
from embeddings.embedding import QueryVector, embed_query
from embeddings.freshness import KNOWN_HASH
from embeddings.scoring import vector_cursor, vector_param
from memories.models import Account, Memory
from recall.config import load_limits
from recall.keyword import clean_query, matches

MAX_SIMILAR = 5

NEAREST = """
select m.id, 1 - (e.vec <=> %(query)s::halfvec) as cosine
from ({rows}) chosen (id)
join memories_memory m on m.id = chosen.id
join embeddings_memoryembedding e on e.memory_id = m.id and e.space_id = %(space)s
left join memories_bodyhash h on h.memory_id = m.id
where {hash} = e.body_hash and 1 - (e.vec <=> %(query)s::halfvec) >= %(floor)s
order by cosine desc, m.id desc limit %(count)s
"""


def search(account: Account, rows: QuerySet[Memory], query: str, *, limit: int) -> tuple[list[int], str]:
    """Return ids of the rows nearest to the query, best first, and the path taken.

    Falls back to the words of the query where nothing is near, or nothing can be embedded.
    """
    text = clean_query(query)
    if not text:
        return [], "empty"
    try:
        vector = embed_query(text, account_id=account.pk)
        found = nearest(rows, vector, floor=load_limits().floor, count=limit)
    except Unavailable:
        found = []
    if found:
        return [memory_id for memory_id, _ in found], "semantic"
    ids = matches(rows, text).order_by("-updated_at", "-pk").values_list("pk", flat=True)[:limit]
    return list(ids), "keyword"


def similar(account: Account, body: str) -> list[tuple[int, float]]:
    """Return up to five own memories that say nearly the same, with their cosine; none without vectors."""
    text = body.strip()
    if not text:
        return []
    try:
        vector = embed_query(text, account_id=account.pk)
    except Unavailable:
        return []
    own = Memory.objects.active().owned_by(account)
    return nearest(own, vector, floor=load_limits().duplicate, count=MAX_SIMILAR)


def nearest(
    rows: QuerySet[Memory], query: QueryVector, *, floor: float, count: int
) -> list[tuple[int, float]]:
    """Return (id, cosine) of the rows with a current vector at least `floor` near, nearest first. Exact."""
    try:
        chosen, params = named_sql(rows.order_by().values_list("pk"))
    except EmptyResultSet:  # the filters contradict each other
        return []
    statement = NEAREST.format(rows=chosen, hash=KNOWN_HASH)
    params |= {
        "query": vector_param(query.vector),
        "space": query.space.pk,
        "floor": floor,
        "count": count,
    }
    with vector_cursor() as cursor:
        return cursor.execute(statement, params).fetchall()
