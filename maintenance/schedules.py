"""What runs by itself, and how often. `sync_schedules` makes the database say the same."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django_q.models import Schedule

from memories.models import Lease

SWEEP_TASK = "maintenance.tasks.sweep"
SWEEP_MINUTES = 24 * 60
# A sweep may outlast the usual limit of a task; the queue then hands it out anew, and its lease says no.
SWEEP_OPTIONS = {"timeout": 3600}
SWEEP_SCHEDULE = "sweep faded memories"
AFTER_LEASE = "sweep once the lease has ended"


@dataclass(frozen=True)
class Job:
    task: str
    minutes: int
    options: dict[str, Any] = field(default_factory=dict)


SCHEDULES: dict[str, Job] = {
    "index pending memories": Job("embeddings.tasks.drain_queue", minutes=1),
    "find unindexed memories": Job("embeddings.tasks.reconcile", minutes=10),
    "expire old usage, replies and sweeps": Job("maintenance.tasks.expire", minutes=60),
    SWEEP_SCHEDULE: Job(SWEEP_TASK, minutes=SWEEP_MINUTES, options=SWEEP_OPTIONS),
}


@transaction.atomic
def sync_schedules() -> None:
    """Create missing schedules, correct changed ones, remove others. Two may do so at once."""
    _one_at_a_time()
    Schedule.objects.exclude(name__in=SCHEDULES).delete()
    for name, job in SCHEDULES.items():
        _sync(name, job)


@transaction.atomic
def sweep_after_lease(*, at: datetime, dry_run: bool = False, **kwargs: Any) -> None:
    """Plan one more look at what another process is doing, or died doing, if none is planned."""
    _one_at_a_time()
    name = f"{AFTER_LEASE}{' (dry run)' if dry_run else ''}"
    if not Schedule.objects.filter(name=name).exists():
        given = kwargs | {"dry_run": dry_run, "q_options": SWEEP_OPTIONS}
        Schedule.objects.create(
            name=name, func=SWEEP_TASK, schedule_type=Schedule.ONCE, next_run=at, kwargs=repr(given)
        )


def plan_daily_sweep(*, after: datetime) -> None:
    """Let the daily sweep come a whole day after the last one ended.

    One that came earlier by a moment would find that moment's deletions still within its 24 hours,
    and accounts at their limit would lose a day.
    """
    daily = Schedule.objects.filter(name=SWEEP_SCHEDULE)
    daily.update(next_run=after + timedelta(minutes=SWEEP_MINUTES))


def next_sweep_at(now: datetime) -> datetime:
    """Return when the daily sweep comes next; now, if it is overdue or not planned."""
    planned = Schedule.objects.filter(name=SWEEP_SCHEDULE).first()
    return max(planned.next_run, now) if planned else now


def _one_at_a_time() -> None:
    # The library's names are not unique, so one process at a time looks and writes.
    Lease.objects.get_or_create(name="schedules")
    Lease.objects.select_for_update().get(name="schedules")


def _sync(name: str, job: Job) -> None:
    wanted = {
        "func": job.task,
        "schedule_type": Schedule.MINUTES,
        "minutes": job.minutes,
        "repeats": -1,
        "kwargs": repr({"q_options": job.options}) if job.options else None,
    }
    same = Schedule.objects.filter(name=name)
    if same.count() == 1:
        same.update(**wanted)
        return
    same.delete()
    # The first round is started by whoever calls this.
    Schedule.objects.create(name=name, next_run=timezone.now() + timedelta(minutes=job.minutes), **wanted)
