"""Counting deliveries. Whoever calls has seen the text reach a model."""

from collections.abc import Sequence
from datetime import datetime

from django.db import connection, transaction

from memories.models import Account, Memory

_MARK_USED = """
with wanted as (
    select id, count(*) as times from unnest(%s::bigint[]) as id group by id
), marked as (
    update memories_memory m
    set use_count = m.use_count + wanted.times, last_used_at = greatest(m.last_used_at, %s)
    from wanted where m.id = wanted.id and m.id in ({accessible})
    returning m.id, wanted.times
)
insert into memories_memoryuse (memory_id, account_id, used_at)
select marked.id, %s, %s from marked cross join lateral generate_series(1, marked.times)
"""


@transaction.atomic
def mark_used(*, reader: Account, ids: Sequence[int], now: datetime) -> int:
    """Count one delivery per id, repeats included, and log it. Returns how many were counted.

    Inaccessible and absent ids count nothing. A failure undoes only this, not the caller's transaction.
    """
    rows = Memory.objects.readable_by(reader).filter(pk__in=set(ids)).values("pk")
    accessible, params = rows.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(_MARK_USED.format(accessible=accessible), [list(ids), now, *params, reader.pk, now])
        return int(cursor.rowcount)
