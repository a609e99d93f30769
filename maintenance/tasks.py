"""What the queue calls. Every task may safely run twice."""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.utils import timezone

from maintenance import retention
from maintenance.actions import expire_sweeps
from maintenance.models import SweepRun
from maintenance.schedules import sweep_after_lease
from memories.actions.purging import expire_replies, expire_uses

AFTER_LEASE = timedelta(seconds=retention.LEASE_SECONDS + 5)


def expire() -> None:
    """Delete usage past 90 days, replies past 24 hours and sweeps past a year, in bounded batches."""
    for expire_batch in (expire_uses, expire_replies, expire_sweeps):
        _until_done(expire_batch)


def sweep(asked_at: str | None = None, *, dry_run: bool = False, asked_by: str = "") -> None:
    """Sweep now. If another process is at it, look again once its lease would have ended, had it died.

    Args:
        asked_at: in ISO 8601; a whole sweep that has ended since will do.
    """
    now = timezone.now()
    since = datetime.fromisoformat(asked_at) if asked_at else now
    if not dry_run and SweepRun.objects.whole().filter(finished_at__gt=since).exists():
        return
    run = retention.sweep(now=now, dry_run=dry_run, asked_by=asked_by)
    if run is None or run.state == SweepRun.State.STOPPED:
        again = {"asked_at": since.isoformat(), "asked_by": asked_by}
        sweep_after_lease(at=now + AFTER_LEASE, dry_run=dry_run, **again)


def _until_done(expire_batch: Callable[..., int]) -> None:
    now = timezone.now()
    while expire_batch(now=now):
        pass
