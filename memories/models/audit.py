from django.db import models
from django.db.models import CheckConstraint, Index, Q
from django.utils import timezone


class MemoryEvent(models.Model):
    """One change of one memory. Append-only (a database trigger), and without foreign keys:
    the trail outlives what it describes.
    """

    class Action(models.TextChoices):
        ADD = "add"
        UPDATE = "update"
        DELETE = "delete"
        RESTORE = "restore"
        CATEGORIZE = "categorize"
        MERGE = "merge"
        PURGE = "purge"

    memory_id = models.BigIntegerField()
    account_id = models.BigIntegerField(null=True)  # the row's author, whoever acted
    action = models.CharField(max_length=10, choices=Action.choices)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    actor = models.CharField(max_length=40)  # user:<id>, agent, daemon, migration
    reason = models.CharField(max_length=300, blank=True, default="")
    model = models.CharField(max_length=200, blank=True, default="")  # only when a model decided
    run_id = models.BigIntegerField(null=True)
    automatic = models.BooleanField(default=False)  # an eviction by the sweep, which the daily limit counts
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "audit event"
        indexes = [
            Index(fields=["memory_id", "-id"], name="event_by_memory"),
            Index(fields=["account_id", "-id"], name="event_by_account"),
            Index(fields=["account_id", "created_at"], condition=Q(automatic=True), name="event_automatic"),
        ]
        constraints = [
            CheckConstraint(
                condition=Q(
                    action__in=["add", "update", "delete", "restore", "categorize", "merge", "purge"]
                ),
                name="known_action",
            )
        ]

    def __str__(self) -> str:
        return f"{self.action} of memory {self.memory_id}"


class ConfigEvent(models.Model):
    """One change of the settings document. Append-only, like the audit of memories."""

    section = models.CharField(max_length=60)
    revision = models.BigIntegerField()  # of the document, after the change
    before = models.JSONField(null=True)
    after = models.JSONField()
    actor = models.CharField(max_length=40)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "settings change"

    def __str__(self) -> str:
        return f"{self.section} at revision {self.revision}"
