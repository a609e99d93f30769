"""Upkeep that people ask for, and the end of its records."""

from datetime import datetime, timedelta

from django_q.tasks import async_task

from maintenance.models import SweepRun
from maintenance.schedules import SWEEP_OPTIONS, SWEEP_TASK

SWEEP_HISTORY_DAYS = 365


def ask_for_sweep(*, dry_run: bool = False, asked_by: str = "") -> None:
    """Let a worker sweep as soon as it can."""
    async_task(SWEEP_TASK, dry_run=dry_run, asked_by=asked_by, q_options=dict(SWEEP_OPTIONS))


def expire_sweeps(*, now: datetime, batch: int = 1) -> int:
    """Delete one batch of sweeps past a year, counts per account included. Returns how many; call until 0."""
    old = SweepRun.objects.filter(started_at__lt=now - timedelta(days=SWEEP_HISTORY_DAYS))
    ids = list(old.order_by("started_at").values_list("pk", flat=True)[:batch])
    SweepRun.objects.filter(pk__in=ids).delete()
    return len(ids)
