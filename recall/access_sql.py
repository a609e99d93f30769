"""Access decided within a statement, by the one predicate of `memories.access`."""

from functools import cache
from typing import Any

from elowen.lib.db import named_sql
from memories.models import Account, Category
from recall.scope import RecallScope

PLACEHOLDER = 2**62 + 11  # stands for the account while the QuerySet is compiled

# Over `usable` and the alias `m` of memories_memory; the access that MemoryQuerySet.readable_by gives.
READABLE = """
    m.status = 'active' and m.category_id = any(array(select id from usable))
    and (m.owner_id = %(account)s or m.category_id = any(array(select id from usable where pool)))
"""


def usable_sql() -> str:
    """Return a SELECT of (id, pool): what of the scope the account may use when the statement runs."""
    return _compiled()[0]


def access_params(account: Account, scope: RecallScope) -> dict[str, Any]:
    """Return the parameters of `usable_sql` and READABLE."""
    return _compiled()[1] | {"account": account.pk, "scope": list(scope.category_ids)}


@cache
def _compiled() -> tuple[str, dict[str, Any]]:
    # Once in a process: Django takes longer to compile this than PostgreSQL for a whole recall.
    usable = Category.objects.usable_by(Account(pk=PLACEHOLDER)).values_list("pk", "owner_id")
    sql, values = named_sql(usable)
    constants = {name: value for name, value in values.items() if value != PLACEHOLDER}
    for name in values.keys() - constants.keys():
        sql = sql.replace(f"%({name})s", "%(account)s")
    return (
        f"select c.id, c.owner_id is null as pool from ({sql}) c (id, owner_id)"  # noqa: S608 - compiled
        " where c.id = any(%(scope)s::bigint[])"
    ), constants
