"""Vitality as pages and the administration show it: today's policy, read once."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from django.utils import timezone

from memories.config import retention_policy
from memories.models import Memory
from memories.policy import RetentionPolicy
from memories.vitality import evictable_at, vitality


@dataclass(frozen=True)
class Gauge:
    policy: RetentionPolicy
    now: datetime

    @classmethod
    def today(cls) -> Self:
        return cls(retention_policy(), timezone.now())

    def vitality(self, memory: Memory) -> float:
        return vitality(memory, self.policy, self.now)

    def evicts_at(self, memory: Memory) -> datetime | None:
        """Return when the sweep would first take this memory if nobody used it, or None for never."""
        if memory.status != Memory.Status.ACTIVE:
            return None
        return evictable_at(memory, self.policy, self.now)
