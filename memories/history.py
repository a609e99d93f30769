"""A memory's vitality over time, read from its row and its logged uses."""

from django.utils import timezone

from memories.config import retention_policy, usable
from memories.models import Memory, MemoryUse
from memories.vitality_history import VitalityHistory, vitality_history

MAX_USES = 2000  # of a memory in daily use; the past is known since the oldest of them


def history_of(memory: Memory, *, days: int) -> VitalityHistory:
    """Raises Unavailable when the stored half-lives cannot be used."""
    now = timezone.now()
    newest_first = MemoryUse.objects.filter(memory=memory, used_at__lte=now).order_by("-used_at")
    uses = list(newest_first.values_list("used_at", flat=True)[:MAX_USES])[::-1]
    swept = memory.status == Memory.Status.ACTIVE
    policy = usable(retention_policy())
    return vitality_history(memory, policy, now, days=days, uses=uses, swept=swept)
