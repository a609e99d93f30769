from typing import Self

from django.db import models
from django.db.models import UniqueConstraint
from django.utils import timezone

REPORTED_AT = 3  # failures in a row; one or two are everyday life with a network


class FailureSequenceQuerySet(models.QuerySet["FailureSequence"]):
    def reported(self) -> Self:
        return self.exclude(reported_at=None)


class FailureSequence(models.Model):
    """How often one operation has failed in a row, for all processes. Its first success deletes the row."""

    class Operation(models.TextChoices):
        QUERY = "query", "embedding of a question"
        TRANSPORT = "transport", "request for memories"
        REFUSED = "refused", "text of a memory"
        WRITE = "write", "storing of a vector"
        CORPUS = "corpus", "text of the search"

    operation = models.CharField(max_length=9, choices=Operation.choices)
    account_id = models.BigIntegerField(default=0)  # 0 is the instance, or a memory that nobody owns
    subject = models.CharField(max_length=80, blank=True)  # the memory or text; empty where any is meant
    count = models.PositiveIntegerField(default=1)
    code = models.CharField(max_length=40)  # of the last failure
    first_at = models.DateTimeField(default=timezone.now)
    last_at = models.DateTimeField(default=timezone.now)
    reported_at = models.DateTimeField(null=True)
    objects = FailureSequenceQuerySet.as_manager()

    class Meta:
        verbose_name = "embedding failure"
        constraints = [
            UniqueConstraint(fields=["operation", "account_id", "subject"], name="one_sequence_per_operation")
        ]

    def __str__(self) -> str:
        return f"{self.get_operation_display()} failed {self.count} times"
