"""Failures in a row, counted across processes: one is everyday life, the third is reported."""

import logging
from collections.abc import Collection
from datetime import timedelta

from django.db import connection
from django.db.models import Exists
from django.utils import timezone

from elowen.providers.errors import InvalidAnswer
from embeddings.connections import NoConnection, OnHold
from embeddings.models import REPORTED_AT, FailureSequence

log = logging.getLogger(__name__)

Operation = FailureSequence.Operation
UNTRIED = (NoConnection, OnHold)  # nothing was sent, so nothing has failed
KEPT = timedelta(days=30)  # after the last failure, whoever it was that never tried again

# Of processes that fail at once, the one whose failure makes it three reports, and no other.
COUNT = f"""
    INSERT INTO embeddings_failuresequence AS known
        (operation, account_id, subject, count, code, first_at, last_at, reported_at)
    SELECT %(operation)s, %(account)s, %(subject)s, 1, %(code)s, now, now, CASE WHEN %(at_once)s THEN now END
    FROM clock_timestamp() AS now
    ON CONFLICT (operation, account_id, subject) DO UPDATE SET
        count = known.count + 1, code = excluded.code, last_at = excluded.last_at,
        reported_at = CASE
            WHEN known.reported_at IS NULL AND (known.count + 1 >= {REPORTED_AT} OR %(at_once)s)
            THEN excluded.last_at ELSE known.reported_at END
    RETURNING coalesce(reported_at = last_at, false), count
"""  # noqa: S608 - a constant


def failed(operation: Operation, account_id: int | None, error: Exception, *, subject: str = "") -> None:
    """Count a failure, and report it if it is the third in a row, or an answer that makes no sense."""
    if isinstance(error, UNTRIED):
        return
    values = {
        "operation": operation,
        "account": account_id or 0,
        "subject": subject,
        "code": getattr(error, "code", type(error).__name__)[:40],
        "at_once": isinstance(error, InvalidAnswer),
    }
    with connection.cursor() as cursor:
        cursor.execute(COUNT, values)
        is_report, count = cursor.fetchone()
    if is_report:
        event = "search.index_embed_failed" if operation == Operation.CORPUS else "memory.embed_failed"
        log.error("%s: %s, %s in a row, %s", event, operation.label, count, values["code"], extra=values)


def failing(operation: Operation, account_id: int | None) -> Exists:
    """Return whether such a sequence is open, as part of a query that is made anyway."""
    return Exists(FailureSequence.objects.filter(operation=operation, account_id=account_id or 0))


def succeeded(operation: Operation, account_id: int | None) -> None:
    FailureSequence.objects.filter(operation=operation, account_id=account_id or 0).delete()


def indexed(memory_ids: Collection[int]) -> None:
    """Note that these memories have their vectors, whoever owned them when they had none."""
    subjects = [str(memory_id) for memory_id in memory_ids]
    operations = [Operation.REFUSED, Operation.WRITE]
    FailureSequence.objects.filter(operation__in=operations, subject__in=subjects).delete()


def forget_old() -> None:
    FailureSequence.objects.filter(last_at__lt=timezone.now() - KEPT).delete()
