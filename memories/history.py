"""A memory's vitality over time, read from its row and its logged uses."""

from datetime import datetime

from django.utils import timezone

from memories.actions.editing import KEPT
from memories.config import retention_policy, usable
from memories.models import Memory, MemoryEvent, MemoryUse
from memories.vitality_history import VitalityHistory, vitality_history

MAX_USES = 2000  # of a memory in daily use; the past is known since the oldest of them


def history_of(memory: Memory, *, days: int) -> VitalityHistory:
    """Raises Unavailable when the stored half-lives cannot be used."""
    now = timezone.now()
    newest_first = MemoryUse.objects.filter(memory=memory, used_at__lte=now).order_by("-used_at")
    uses = list(newest_first.values_list("used_at", flat=True)[:MAX_USES])[::-1]
    swept = memory.status == Memory.Status.ACTIVE
    policy = usable(retention_policy())
    kept = _kept(memory, now)
    return vitality_history(memory, policy, now, days=days, uses=uses, kept=kept, swept=swept)


def _kept(memory: Memory, now: datetime) -> list[datetime]:
    """Return when the memory was kept: contact that leaves an event in the trail, and no use."""
    events = MemoryEvent.objects.filter(memory_id=memory.pk, reason__iendswith=KEPT)
    times = events.order_by("-pk").values_list("after__last_used_at", flat=True)[:MAX_USES]
    return sorted(at for text in times if text and (at := datetime.fromisoformat(text)) <= now)
