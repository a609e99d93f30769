"""Access within a statement, as `recall.scope` and `memories.access` define it, so that one snapshot decides."""

from functools import cache

from memories.models import Account, Category

PLACEHOLDER = 2**62 + 11  # stands for the account while the QuerySet is compiled

# Over `usable` and the alias `m` of memories_memory; the access that MemoryQuerySet.readable_by gives.
READABLE = """
    m.status = 'active' and m.category_id = any(array(select id from usable))
    and (m.owner_id = %(account)s or m.category_id = any(array(select id from usable where pool)))
"""


@cache
def usable_categories_sql() -> str:
    """Return a SELECT of (id, pool): what of `scope` the `account` may use when the statement runs.

    It is Category.objects.usable_by, compiled once in a process: that takes longer than a whole recall.
    """
    usable = Category.objects.usable_by(Account(pk=PLACEHOLDER)).values_list("pk", "owner_id")
    sql, values = usable.query.sql_with_params()
    if set(values) != {PLACEHOLDER}:
        raise TypeError("Access depends on more than the account.")
    named = sql % (("%(account)s",) * len(values))
    return (
        f"select c.id, c.owner_id is null as pool from ({named}) c (id, owner_id)"
        " where c.id = any(%(scope)s::bigint[])"
    )
