"""How a memory stands now, as everybody is told it: pages, the administration and REST."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, Self

from django.utils import timezone

from memories.config import retention_policy
from memories.models import Memory
from memories.policy import RetentionPolicy
from memories.vitality import Facts, evictable_at, vitality


class Gauged(Facts, Protocol):
    @property
    def status(self) -> str: ...


@dataclass(frozen=True)
class Reading:
    vitality: float | None  # 0 to 100; None where the policy is malformed for this level
    evictable_at: datetime | None  # when the sweep would first take it if nobody used it; None for never

    @property
    def is_known(self) -> bool:
        return self.vitality is not None


@dataclass(frozen=True)
class Gauge:
    """One policy and one moment, for as many memories as there are to show."""

    policy: RetentionPolicy
    now: datetime

    @classmethod
    def today(cls) -> Self:
        return cls(retention_policy(), timezone.now())

    def read(self, memory: Gauged) -> Reading:
        try:
            alive = vitality(memory, self.policy, self.now)
            swept = memory.status == Memory.Status.ACTIVE
            return Reading(alive, evictable_at(memory, self.policy, self.now) if swept else None)
        except ValueError:
            return Reading(None, None)
