"""What runs by itself, and how often. `sync_schedules` makes the database say the same."""

from dataclasses import dataclass

from django.db import transaction
from django_q.models import Schedule

from memories.models import Lease


@dataclass(frozen=True)
class Job:
    task: str
    minutes: int


SCHEDULES: dict[str, Job] = {
    "index pending memories": Job("embeddings.tasks.drain_queue", minutes=1),
    "find unindexed memories": Job("embeddings.tasks.reconcile", minutes=10),
    "expire old usage and replies": Job("maintenance.tasks.expire", minutes=60),
}


@transaction.atomic
def sync_schedules() -> None:
    """Create missing schedules, correct changed ones, remove others. Two may do so at once."""
    # The library's names are not unique, so one process at a time looks and writes.
    Lease.objects.get_or_create(name="schedules")
    Lease.objects.select_for_update().get(name="schedules")
    Schedule.objects.exclude(name__in=SCHEDULES).delete()
    for name, job in SCHEDULES.items():
        _sync(name, job)


def _sync(name: str, job: Job) -> None:
    wanted = {"func": job.task, "schedule_type": Schedule.MINUTES, "minutes": job.minutes, "repeats": -1}
    same = Schedule.objects.filter(name=name)
    if same.count() != 1:
        same.delete()
        Schedule.objects.create(name=name, **wanted)
    else:
        same.update(**wanted)
