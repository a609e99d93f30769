from django.db import models
from django.db.models import Index
from django.utils import timezone

from memories.models.account import Account
from memories.models.memory import Memory


class MemoryUse(models.Model):
    """One delivery of a memory to a reader's model; nothing that ties it to a conversation. Kept 90 days."""

    memory = models.ForeignKey(Memory, models.CASCADE, related_name="uses", db_index=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="uses", db_index=False)  # the reader
    used_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            Index(fields=["memory", "used_at"], name="use_by_memory"),
            Index(fields=["account", "used_at"], name="use_by_reader"),
            Index(fields=["used_at"], name="use_by_time"),
        ]

    def __str__(self) -> str:
        return f"use of memory {self.memory_id}"
