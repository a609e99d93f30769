from django.utils import timezone

from embeddings import queue
from memories.models import Heartbeat


def drain_queue() -> int:
    Heartbeat.objects.bulk_create(
        [Heartbeat(name="queue", at=timezone.now())],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=["at"],
    )
    return queue.drain()


def reconcile(*, anew: bool = False) -> int:
    return queue.reconcile(anew=anew)
