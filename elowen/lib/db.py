"""Transactions of a stated kind, and QuerySets within statements of our own."""

import random
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import Error, InterfaceError, OperationalError, connection, transaction
from django.db.models import Q, QuerySet
from django.db.transaction import TransactionManagementError

CONFLICTS = {"40001", "40P01", "55P03"}  # a serialization failure, a deadlock, a lock that would not wait
ATTEMPTS = 10
FIRST_PAUSE_S, MOST_DOUBLINGS = 0.001, 2  # at most so long; doubled each time
SHUT_DOWN = {"57P01", "57P02", "57P03"}  # by an administrator, by a crash, not ready yet
RECONNECTS = 4
RECONNECT_PAUSE_S = 0.5  # doubled each time


@contextmanager
def read_snapshot() -> Iterator[None]:
    """Read everything within as of one moment, and write nothing.

    Raises:
        TransactionManagementError: a transaction is open already; its level cannot be changed.
    """
    with _transaction_of_its_own("REPEATABLE READ READ ONLY"):
        yield


def serializable[T](
    work: Callable[[], T], *, attempts: int = ATTEMPTS, wait: Callable[[], object] = lambda: None
) -> T:
    """Do `work` in a SERIALIZABLE transaction; if it meets another one, from its beginning again.

    Args:
        wait: called before each new attempt, outside of the transaction, to let the other one end.
    Raises:
        OperationalError: every attempt met a conflict.
        TransactionManagementError: a transaction is open already; its level cannot be changed.
    """
    for attempt in range(attempts - 1):
        try:
            with _transaction_of_its_own("SERIALIZABLE"):
                return work()
        except OperationalError as error:
            if sqlstate_of(error) not in CONFLICTS:
                raise
            time.sleep(random.uniform(0, FIRST_PAUSE_S * 2 ** min(attempt, MOST_DOUBLINGS)))
            wait()
    with _transaction_of_its_own("SERIALIZABLE"):
        return work()


def reconnecting[T](work: Callable[[], T], *, attempts: int = RECONNECTS) -> T:
    """Do `work`, and again on a new connection when the database dropped the old one.

    It may so be done twice: the connection can break after the commit and before the answer.
    """
    for attempt in range(attempts - 1):
        try:
            return work()
        except (OperationalError, InterfaceError) as error:
            if connection.in_atomic_block or not is_connection_lost(error):
                raise
            connection.close()
            time.sleep(RECONNECT_PAUSE_S * 2**attempt)
    return work()


def is_connection_lost(error: Error) -> bool:
    """Whether the connection broke or none was to be had; what the driver itself finds has no SQLSTATE."""
    state = sqlstate_of(error)
    return state is None or state.startswith("08") or state in SHUT_DOWN


def sqlstate_of(error: Error) -> str | None:
    return getattr(error.__cause__, "sqlstate", None)


@contextmanager
def _transaction_of_its_own(level: str) -> Iterator[None]:
    if connection.in_atomic_block:
        # Tests run inside a transaction of their own, and say so.
        if not getattr(settings, "SNAPSHOTS_MAY_NEST", False):
            raise TransactionManagementError("This must be the outermost transaction.")
        with transaction.atomic():
            yield
        return
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        yield


def any_of(column: str, values: Collection[Any]) -> Q:
    """Select the rows with one of these values, of which None may be one, as it may not in IN."""
    named = Q(**{f"{column}__in": [value for value in values if value is not None]})
    return named | Q(**{column: None}) if None in values else named


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
