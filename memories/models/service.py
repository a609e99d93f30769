from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import UniqueConstraint
from django.utils import timezone

from memories.models.account import Account


class IdempotentReply(models.Model):
    """The first answer to a request that carried an Idempotency-Key; given again for 24 hours."""

    account = models.ForeignKey(Account, models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    request_hash = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField(null=True)
    reply = models.JSONField(null=True)  # null as well once a memory in it has been purged
    memory_ids = ArrayField(models.BigIntegerField(), db_default=[])
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        verbose_name_plural = "idempotent replies"
        constraints = [UniqueConstraint(fields=["account", "key"], name="one_reply_per_key")]
        indexes = [GinIndex(fields=["memory_ids"], name="reply_by_memory")]

    def __str__(self) -> str:
        return f"reply {self.pk}"


class Lease(models.Model):
    """Who may do a job that only one process may do at a time, and until when.

    The fence grows with each holder: a holder that lost its lease is told by it. The session is the holder's
    connection to the database: what was killed leaves none behind, and its lease is free at once.
    """

    name = models.CharField(max_length=40, primary_key=True)
    holder = models.CharField(max_length=60, blank=True, default="")
    until = models.DateTimeField(default=timezone.now)
    session_pid = models.IntegerField(null=True, blank=True)
    session_began = models.DateTimeField(null=True, blank=True)
    fence = models.BigIntegerField(default=0)
    wanted = models.BooleanField(default=False)  # a wake-up is queued and has not begun

    def __str__(self) -> str:
        return self.name


class Heartbeat(models.Model):
    """When a background process was last seen alive."""

    name = models.CharField(max_length=40, primary_key=True)
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name
