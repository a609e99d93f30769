"""Transactions of a stated kind."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection, transaction
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
