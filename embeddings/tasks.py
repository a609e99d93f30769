from django.utils import timezone

from embeddings import failures, pending, queue
from embeddings.actions import reindexing
from memories.models import Heartbeat


def drain_queue() -> int:
    Heartbeat.objects.bulk_create(
        [Heartbeat(name="queue", at=timezone.now())],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=["at"],
    )
    return queue.drain()


def reconcile(*, anew: bool = False, asked_by: str = "") -> int:
    failures.forget_old()
    return reindexing.reconcile(anew=anew, asked_by=asked_by)


def retry_now() -> None:
    pending.retry_now()
