"""Transactions of a stated kind, and QuerySets within statements of our own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.transaction import TransactionManagementError


@contextmanager
def read_snapshot() -> Iterator[None]:
    """Read everything within as of one moment, and write nothing.

    Raises:
        TransactionManagementError: a transaction is open already; its level cannot be changed.
    """
    if connection.in_atomic_block:
        # Tests run inside a transaction of their own, and say so.
        if not getattr(settings, "SNAPSHOTS_MAY_NEST", False):
            raise TransactionManagementError("A snapshot must be the outermost transaction.")
        with transaction.atomic():
            yield
        return
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


def named_sql(rows: QuerySet[Any, Any]) -> tuple[str, dict[str, Any]]:
    """Compile a QuerySet into SQL that takes its parameters by name, to stand within a larger statement.

    Raises:
        EmptyResultSet: its filters contradict each other.
    """
    sql, values = rows.query.sql_with_params()
    names = [f"inner{place}" for place in range(len(values))]
    # A percent sign of the statement's own stays doubled: it is read once more with the larger statement.
    named = sql.replace("%%", "%%%%") % tuple(f"%({name})s" for name in names)
    return named, dict(zip(names, values, strict=True))
