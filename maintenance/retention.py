"""The sweep: every account's active memories in pages, and each that is due handed to `auto_evict`."""

import logging
import os
import socket
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import DatabaseError, Error, connection, transaction
from django.db.models import F, Max
from django.utils import timezone

from elowen.lib.db import reconnecting, sqlstate_of
from maintenance.candidates import Page, Spent, next_page, spent_of
from maintenance.departures import SOON
from maintenance.models import SweepRun
from memories import leases
from memories.actions.eviction import Outcome, auto_evict
from memories.config import retention_policy
from memories.leases import Fence
from memories.models import Memory
from memories.policy import LIMIT_WINDOW, RetentionPolicy, to_document

LEASE = "sweep"
LEASE_SECONDS = 60
UNUSABLE = "A half-life is unusable; save the retention settings again."
COUNTED = ("eligible", *(outcome.value for outcome in Outcome), "failed")

log = logging.getLogger(__name__)

type Counts = dict[int | None, Counter[str]]


class LeaseLost(Exception):
    """Another process has taken over the sweep."""


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
    policy = retention_policy()
    run = _begin(now, policy, dry_run=dry_run, asked_by=asked_by)
    try:
        _Sweep(run, policy, fence).go()
        _end(run, SweepRun.State.DONE)
    except LeaseLost as lost:
        _end(run, SweepRun.State.STOPPED, str(lost.__doc__))
    except Exception as error:
        with suppress(Error):
            _end(run, SweepRun.State.FAILED, type(error).__name__)
        raise
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


def _end(run: SweepRun, state: SweepRun.State, problem: str = "") -> None:
    run.state, run.finished_at, run.problem = state, timezone.now(), problem or run.problem
    values = {name: getattr(run, name) for name in ("state", "finished_at", "problem", "again_at")}
    reconnecting(lambda: SweepRun.objects.filter(pk=run.pk).update(**values))
    run.refresh_from_db()


@dataclass(frozen=True)
class _Sweep:
    run: SweepRun
    policy: RetentionPolicy
    fence: Fence

    def go(self) -> None:
        run = self.run
        while run.position < run.upto:
            if not reconnecting(partial(leases.renew, self.fence, seconds=LEASE_SECONDS)):
                raise LeaseLost
            bounds = {"position": run.position, "upto": run.upto}
            page = reconnecting(partial(next_page, self.policy, run.started_at, **bounds))
            reconnecting(partial(_save, run, page, self.judge(page)))
            run.position = page.last_id
            if page.stuck:
                run.problem = UNUSABLE

    def judge(self, page: Page) -> Counts:
        counts: Counts = defaultdict(Counter)
        for author in page.stuck:
            counts[author]["failed"] += 1
        authors = {author for _, author in page.due}
        spent = reconnecting(partial(spent_of, self.run, authors)) if authors else {}
        for memory_id, author in page.due:
            counts[author].update(("eligible", self.decide(memory_id, spent[author])))
        return counts

    def decide(self, memory_id: int, spent: Spent) -> str:
        """Let one memory go or not; the transaction that does it has the last word."""
        if spent.deletions >= self.policy.daily_deletion_limit:
            return self.refuse(spent.newest_at and spent.newest_at + LIMIT_WINDOW)
        if self.run.dry_run:
            spent.deletions += 1
            return Outcome.EVICTED.value
        try:
            evict = partial(auto_evict, memory_id=memory_id, policy=self.policy, now=self.run.started_at)
            eviction = reconnecting(evict)
        except DatabaseError as error:
            # Never the message: it may quote the row.
            log.error("Memory %s: %s %s", memory_id, type(error).__name__, sqlstate_of(error) or "")
            connection.ensure_connection()  # without a database, the sweep ends here
            return "failed"
        if eviction.outcome is Outcome.LIMITED:
            return self.refuse(eviction.free_at)
        if eviction.outcome is Outcome.EVICTED:
            spent.deletions, spent.newest_at = spent.deletions + 1, timezone.now()
        return str(eviction.outcome.value)

    def refuse(self, free_at: datetime | None) -> str:
        """A sweep moments before yesterday's deletions leave the window must not cost the account a day."""
        if free_at and free_at - self.run.started_at <= SOON:
            self.run.again_at = max(self.run.again_at or free_at, free_at)
        return Outcome.LIMITED.value


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
def _save(run: SweepRun, page: Page, counts: Counts) -> None:
    """Add a page's counts once, however often this is called."""
    total = sum(counts.values(), Counter[str]())
    added = {name: F(name) + total[name] for name in COUNTED}
    rows = SweepRun.objects.filter(pk=run.pk, position=run.position)
    if rows.update(position=page.last_id, scanned=F("scanned") + page.scanned, **added) and counts:
        with connection.cursor() as cursor:
            values = [{"run": run.pk, "account": author} | counted(of) for author, of in counts.items()]
            cursor.executemany(_ADD, values)


def counted(counts: Counter[str]) -> dict[str, int | None]:
    return {name: counts[name] for name in COUNTED}
