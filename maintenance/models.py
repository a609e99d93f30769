from typing import Self

from django.db import models
from django.db.models import Index, UniqueConstraint


class SweepCounts(models.Model):
    """What became of the memories that were due."""

    eligible = models.BigIntegerField(default=0)  # due, and not stopped by an unusable half-life
    evicted = models.BigIntegerField(default=0)  # in a dry run: would have been
    limited = models.BigIntegerField(default=0)  # left for another day by the daily limit
    spared = models.BigIntegerField(default=0)  # used, edited or moved away since they were looked at
    failed = models.BigIntegerField(default=0)

    class Meta:
        abstract = True


class SweepRunQuerySet(models.QuerySet["SweepRun"]):
    def whole(self) -> Self:
        """Keep the sweeps that came to their end, dry runs apart."""
        return self.filter(state=SweepRun.State.DONE, dry_run=False)


class SweepRun(SweepCounts):
    """One pass over the active memories of all accounts, or a dry run of one, which changes nothing."""

    class State(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        STOPPED = "stopped"  # its process ended, or another took over

    started_at = models.DateTimeField()  # the clock by which every memory is judged
    finished_at = models.DateTimeField(null=True)
    state = models.CharField(max_length=7, choices=State.choices, default=State.RUNNING)
    dry_run = models.BooleanField(default=False)
    asked_by = models.CharField(max_length=160, blank=True)  # empty: the schedule
    policy = models.JSONField()  # as it was read, once
    upto = models.BigIntegerField(default=0)  # the newest memory at the start
    position = models.BigIntegerField(default=0)  # the last memory looked at
    scanned = models.BigIntegerField(default=0)
    problem = models.CharField(max_length=300, blank=True)
    objects = SweepRunQuerySet.as_manager()

    class Meta:
        verbose_name = "sweep"
        permissions = [("start_sweep", "Can start a sweep or a dry run")]
        indexes = [Index(fields=["started_at"], name="sweep_by_time")]

    def __str__(self) -> str:
        return f"sweep {self.pk}"

    @property
    def progress(self) -> float:
        """The share of the ids that are behind it, 0 to 1."""
        return min(self.position / self.upto, 1.0) if self.upto else 1.0


class SweepAccount(SweepCounts):
    """One sweep's counts for one author; without one, for pools' memories whose author is gone."""

    run = models.ForeignKey(SweepRun, models.CASCADE, related_name="accounts", db_index=False)
    account_id = models.BigIntegerField(null=True)

    class Meta:
        verbose_name, verbose_name_plural = "sweep of one account", "sweeps by account"
        constraints = [
            UniqueConstraint(fields=["run", "account_id"], name="one_count_per_account", nulls_distinct=False)
        ]

    def __str__(self) -> str:
        return f"sweep {self.run_id} of account {self.account_id}"
