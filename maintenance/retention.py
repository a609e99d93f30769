"""The sweep: every account's active memories in pages, and each that is due handed to `auto_evict`."""

import logging
import os
import socket
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import DatabaseError, Error, connection, transaction
from django.db.models import F, Max
from django.utils import timezone

from elowen.lib.db import reconnecting, sqlstate_of
from maintenance.candidates import Page, Spent, next_page, spent_of
from maintenance.models import SweepRun
from maintenance.schedules import plan_daily_sweep
from memories import leases
from memories.actions.eviction import Outcome, auto_evict
from memories.config import retention_policy
from memories.leases import Fence
from memories.models import Memory
from memories.policy import RetentionPolicy, to_document

LEASE = "sweep"
LEASE_SECONDS = 60
STEP_EVICTIONS = 50
UNUSABLE = "A half-life is unusable; save the retention settings again."
COUNTED = ("eligible", *(outcome.value for outcome in Outcome), "failed")

log = logging.getLogger(__name__)

type Counts = dict[int | None, Counter[str]]


class LeaseLost(Exception):
    """Its lease ended before it was renewed; another sweep may have begun."""


def sweep(*, now: datetime, dry_run: bool = False, asked_by: str = "") -> SweepRun | None:
    """Look at every active memory once and let those go that are due. None: another sweep is under way.

    Args:
        now: the sweep's clock.
        dry_run: count what would go, and change nothing.
    Raises:
        Error: the database could not be reached again. The next sweep does what is left.
    """
    fence = leases.take(LEASE, seconds=LEASE_SECONDS, holder=f"{socket.gethostname()}:{os.getpid()}")
    if fence is None:
        return None
    try:
        policy = retention_policy()
        run = _begin(now, policy, dry_run=dry_run, asked_by=asked_by)
        _swept(run, policy, fence)
    finally:
        with suppress(Error):
            leases.release(fence)
    log.info("Sweep %s", summary(run))
    return run


def summary(run: SweepRun) -> str:
    """Return a sweep's counts in one line."""
    counts = ", ".join(f"{name} {getattr(run, name):,}" for name in ("scanned", *COUNTED))
    kind = " (dry run)" if run.dry_run else ""
    return f"{run.pk}{kind}: {run.state}, {counts}. {run.problem}".strip()


def _begin(now: datetime, policy: RetentionPolicy, *, dry_run: bool, asked_by: str) -> SweepRun:
    # Whoever holds the lease knows that no other sweep is running any more.
    left = SweepRun.objects.filter(state=SweepRun.State.RUNNING)
    left.update(state=SweepRun.State.STOPPED, problem="Its process ended.", finished_at=timezone.now())
    newest = Memory.objects.aggregate(id=Max("pk"))["id"] if policy.enabled else None
    return SweepRun.objects.create(
        started_at=now,
        dry_run=dry_run,
        asked_by=asked_by[:160],
        policy=to_document(policy),
        upto=newest or 0,
        problem="" if policy.enabled else "Retention is switched off.",
    )


def _swept(run: SweepRun, policy: RetentionPolicy, fence: Fence) -> None:
    try:
        _Sweep(run, policy, fence).go()
    except LeaseLost as lost:
        _end(run, SweepRun.State.STOPPED, str(lost.__doc__))
    except Exception as error:
        with suppress(Error):
            _end(run, SweepRun.State.FAILED, type(error).__name__)
        raise
    else:
        _end(run, SweepRun.State.DONE)


def _end(run: SweepRun, state: SweepRun.State, problem: str = "") -> None:
    now, problem = timezone.now(), problem or run.problem
    ended = SweepRun.objects.filter(pk=run.pk)
    reconnecting(lambda: ended.update(state=state, finished_at=now, problem=problem))
    run.refresh_from_db()
    if state == SweepRun.State.DONE and not run.dry_run:
        plan_daily_sweep(after=now)


@dataclass(frozen=True)
class _Step:
    """A stretch of a page whose counts are saved together."""

    upto: int  # the last id it covers
    scanned: int
    counts: Counts


@dataclass(frozen=True)
class _Sweep:
    run: SweepRun
    policy: RetentionPolicy
    fence: Fence

    def go(self) -> None:
        run = self.run
        self.hold()
        while run.position < run.upto:
            bounds = {"position": run.position, "upto": run.upto}
            page = reconnecting(partial(next_page, self.policy, run.started_at, **bounds))
            if page.stuck:
                run.problem = UNUSABLE
            for step in self.steps(page):
                reconnecting(partial(_save, run, step))
                run.position = step.upto
                self.hold()

    def hold(self) -> None:
        if not reconnecting(partial(leases.renew, self.fence, seconds=LEASE_SECONDS)):
            raise LeaseLost

    def steps(self, page: Page) -> Iterator[_Step]:
        """Work through a page. A step has few transactions, so that the lease outlasts it on a slow disk."""
        authors = {author for _, author in page.due}
        spent = reconnecting(partial(spent_of, self.run, authors)) if authors else {}
        counts, tried = _counts(), 0
        for memory_id, author in page.due:
            if tried == STEP_EVICTIONS:
                yield _Step(memory_id - 1, 0, counts)
                counts, tried = _counts(), 0
            tried += self.has_room(spent[author])
            counts[author].update(("eligible", self.decide(memory_id, spent[author])))
        for author in page.stuck:
            counts[author]["failed"] += 1
        yield _Step(page.last_id, page.scanned, counts)

    def has_room(self, spent: Spent) -> bool:
        return spent.deletions < self.policy.daily_deletion_limit

    def decide(self, memory_id: int, spent: Spent) -> str:
        """Let one memory go or not; the transaction that does it has the last word."""
        if not self.has_room(spent):
            return Outcome.LIMITED.value
        outcome = Outcome.EVICTED.value if self.run.dry_run else self.evict(memory_id)
        if outcome == Outcome.LIMITED.value:
            spent.deletions = self.policy.daily_deletion_limit  # somebody else was faster
        spent.deletions += outcome == Outcome.EVICTED.value
        return outcome

    def evict(self, memory_id: int) -> str:
        evict = partial(auto_evict, memory_id=memory_id, policy=self.policy, now=self.run.started_at)
        try:
            return str(reconnecting(evict).value)
        except (DatabaseError, ValueError) as error:
            # Never the message: it may quote the row.
            state = sqlstate_of(error) if isinstance(error, DatabaseError) else None
            log.error("Memory %s: %s %s", memory_id, type(error).__name__, state or "")
            connection.ensure_connection()  # without a database, the sweep ends here
            return "failed"


def _counts() -> Counts:
    return defaultdict(Counter)


_ADD = """
insert into maintenance_sweepaccount (run_id, account_id, eligible, evicted, spared, limited, failed)
values (%(run)s, %(account)s, %(eligible)s, %(evicted)s, %(spared)s, %(limited)s, %(failed)s)
on conflict (run_id, account_id) do update
set eligible = maintenance_sweepaccount.eligible + excluded.eligible,
    evicted = maintenance_sweepaccount.evicted + excluded.evicted,
    spared = maintenance_sweepaccount.spared + excluded.spared,
    limited = maintenance_sweepaccount.limited + excluded.limited,
    failed = maintenance_sweepaccount.failed + excluded.failed
"""


@transaction.atomic
def _save(run: SweepRun, step: _Step) -> None:
    """Add a step's counts once, however often this is called."""
    total = sum(step.counts.values(), Counter[str]())
    added = {name: F(name) + total[name] for name in COUNTED}
    rows = SweepRun.objects.filter(pk=run.pk, position=run.position)
    if rows.update(position=step.upto, scanned=F("scanned") + step.scanned, **added) and step.counts:
        with connection.cursor() as cursor:
            values = [{"run": run.pk, "account": author} | counted(of) for author, of in step.counts.items()]
            cursor.executemany(_ADD, values)


def counted(counts: Counter[str]) -> dict[str, int | None]:
    return {name: counts[name] for name in COUNTED}
