"""How fast memories are looked at and let go (M5).

    python -m bench.sweep --memories 1000000 --accounts 2000 --rounds 5

First the pages of the sweep's SQL filter, beside asking Python for every row. Then one whole sweep, in a
process of its own. Last `auto_evict` by one worker and by four, with an account each and all on the same one,
under a policy by which every memory is due; of each account a few more are asked for than the limit lets go.
Four that only count tell how many processors there really are. What is compared takes turns in one run:
compare ratios, milliseconds depend on the machine.
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

import django

from bench.database import own_database
from memories.policy import DEFAULT_POLICY, RetentionPolicy

if TYPE_CHECKING:
    from maintenance.candidates import Page

END_PAGES = 20  # so many stand for the first page, and for the last
WORKERS = 4
WARM_UP = 1
TURN_ACCOUNTS = WORKERS + 2  # one for the worker that is alone, one that four share, one for each of four

FILL = """
insert into memories_memory (owner_id, body, kind, importance, status, source, use_count, last_used_at,
                             created_at, updated_at, origin)
select %(first)s + n %% %(accounts)s, rpad(n || ' ', 200, 'm'), 'fact', 1 + n / 7 %% 10, 'active', 'user',
       n %% 10, now() - age, now() - interval '700 days', now() - age, '{}'
from (select n, interval '1 day' * case when random() < 0.05 then 600 else random() end as age
      from generate_series(0, %(memories)s - 1) n) as one
"""
# Not used for so long is due at every importance; used today is not.
DUE_WITHIN_LIMIT = """
select coalesce(sum(least(due, %(limit)s)), 0)
from (select count(*) as due from memories_memory
      where last_used_at < now() - interval '599 days' group by owner_id) as account
"""
OVER = """
select count(*) from (select from memories_memoryevent where automatic
                      group by account_id having count(*) > %(limit)s) as account
"""


@dataclass(frozen=True)
class Pass:
    """One look at every memory."""

    ms: list[float]  # of each page
    due: list[int]


@dataclass(frozen=True)
class Work:
    """What one worker did. All processes of a machine share the monotonic clock."""

    began: float
    ended: float
    ms: list[float]  # of each call
    outcomes: Counter[str]
    transactions: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--accounts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=200, help="daily limit where workers evict")
    parser.add_argument("--calls", type=int, default=220, help="memories of one account that are asked for")
    args = parser.parse_args()
    accounts = TURN_ACCOUNTS * (args.rounds + WARM_UP)
    if args.accounts < accounts or args.memories < args.accounts * args.calls:
        parser.error(f"These need {accounts} accounts at least, of {args.calls} memories each.")
    with own_database():
        results = measure(args)
    show(results)
    print(json.dumps(results))
    over_limit = results["sweep"]["accounts_over_limit"] + results["evict"]["accounts_over_limit"]
    sys.exit(bool(results["scan"]["disagreements"] or over_limit))


def measure(args: argparse.Namespace) -> dict[str, Any]:
    sizes = {"memories": args.memories, "accounts": args.accounts, "rounds": args.rounds}
    filled_s, scanned = fill(args.memories, args.accounts), compare_scans(args.rounds, args.memories)
    with worker() as sweeper:
        swept = sweeper.submit(whole_sweep).result()
    evicted = compare_workers(args.rounds, args.limit, args.calls)
    return sizes | {"filled_s": filled_s, "scan": scanned, "sweep": swept, "evict": evicted}


def show(values: dict[str, Any], indent: str = "") -> None:
    for name, value in values.items():
        if isinstance(value, dict):
            print(f"{indent}{name}")
            show(value, f"{indent}  ")
        else:
            print(f"{indent + name:<28}{value:>14,}")


# --- Looking ---


def compare_scans(rounds: int, memories: int) -> dict[str, Any]:
    from django.utils import timezone

    from maintenance.candidates import next_page

    now = timezone.now()
    in_sql, in_python, disagreements = list[Pass](), list[Pass](), 0
    for _ in range(rounds):
        in_sql.append(scan(next_page, now))
        in_python.append(scan(page_in_python, now))
        disagreements += in_sql[-1].due != in_python[-1].due
    return {
        "sql_rows_per_s": round(memories / seconds_of(in_sql)),
        "python_rows_per_s": round(memories / seconds_of(in_python)),
        "python_per_sql": round(seconds_of(in_python) / seconds_of(in_sql), 2),
        "last_page_per_first": last_per_first(in_sql),
        "due": len(in_sql[0].due),
        "disagreements": disagreements,
    }


def scan(look: Callable[..., "Page"], now: datetime) -> Pass:
    from memories.models import Memory

    position, upto = 0, Memory.objects.latest("pk").pk
    ms, due = list[float](), list[int]()
    while position < upto:
        began = time.perf_counter()
        page = look(DEFAULT_POLICY, now, position=position, upto=upto)
        ms.append((time.perf_counter() - began) * 1000)
        due += [memory_id for memory_id, _ in page.due]
        position = page.last_id
    return Pass(ms, due)


def page_in_python(policy: RetentionPolicy, now: datetime, *, position: int, upto: int) -> "Page":
    """Return what `next_page` returns, judged row by row in this process."""
    from maintenance.candidates import PAGE_ROWS, Page
    from memories.models import Memory
    from memories.vitality import is_evictable

    rows = Memory.objects.active().filter(pk__gt=position, pk__lte=upto).order_by("pk")
    names = ("pk", "owner_id", "importance", "use_count", "last_used_at", "created_at")
    page = list(rows.values_list(*names, named=True)[:PAGE_ROWS])
    due = [(row.pk, row.owner_id) for row in page if is_evictable(row, policy, now)]
    return Page(page[-1].pk if len(page) == PAGE_ROWS else upto, len(page), due, [])


def seconds_of(passes: Sequence[Pass]) -> float:
    return median(sum(one.ms) for one in passes) / 1000


def last_per_first(passes: Sequence[Pass]) -> float:
    first = median(ms for one in passes for ms in one.ms[:END_PAGES])
    last = median(ms for one in passes for ms in one.ms[-END_PAGES:])
    return round(last / first, 2)


# --- Letting go ---


def whole_sweep() -> dict[str, Any]:
    from django.utils import timezone

    from maintenance.retention import sweep

    limit = DEFAULT_POLICY.daily_deletion_limit
    expected = number(DUE_WITHIN_LIMIT, limit=limit)
    before, began = peak_mib(), time.perf_counter()
    run = sweep(now=timezone.now())
    assert run is not None
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "peak_mib_before": before,
        "peak_mib_after": peak_mib(),
        **{name: getattr(run, name) for name in ("scanned", "eligible", "evicted", "limited", "failed")},
        "expected": expected,
        "accounts_over_limit": number(OVER, limit=limit),
    }


def peak_mib() -> float:
    """Return this program's peak memory; getrusage would give its parent's where that was larger."""
    status = Path("/proc/self/status").read_text()
    return round(int(status.partition("VmHWM:")[2].split()[0]) / 1024, 1)


def compare_workers(rounds: int, limit: int, calls: int) -> dict[str, Any]:
    policy = replace(DEFAULT_POLICY, floor=90, grace_days=0, daily_deletion_limit=limit)
    done: dict[str, list[list[Work]]] = defaultdict(list)
    alone, crowd = list[int](), list[int]()
    with ExitStack() as stack:
        workers = [stack.enter_context(worker()) for _ in range(WORKERS)]
        for hands in deal(rounds + WARM_UP, calls):
            for name, shares in hands.items():
                done[name].append(work_off(workers, shares, policy))
            alone.append(loops_of(workers[:1]))
            crowd.append(loops_of(workers))
    found = {name: summary(turns[WARM_UP:]) for name, turns in done.items()}
    rates = {name: one["evictions_per_s"] for name, one in found.items()}
    return found | {
        "apart_per_one": round(rates["four_apart"] / rates["one"], 2),
        "together_per_one": round(rates["four_together"] / rates["one"], 2),
        "counting_four_per_one": round(median(crowd) / median(alone), 2),
        "accounts_over_limit": number(OVER, limit=limit),
    }


def deal(turns: int, calls: int) -> Iterator[dict[str, list[list[int]]]]:
    """Yield, turn by turn, the memories that each worker is given; no account is met twice."""
    from memories.models import Account, Memory

    accounts = list(Account.objects.order_by("pk"))
    apart = len(accounts) // (turns * TURN_ACCOUNTS)
    piles = (
        list(Memory.objects.active().owned_by(account).order_by("pk").values_list("pk", flat=True)[:calls])
        for account in accounts[::apart]
    )
    for _ in range(turns):
        shared = next(piles)
        yield {
            "one": [next(piles)],
            "four_apart": [next(piles) for _ in range(WORKERS)],
            "four_together": [shared[place::WORKERS] for place in range(WORKERS)],
        }


def work_off(
    workers: Sequence[ProcessPoolExecutor], shares: Sequence[list[int]], policy: RetentionPolicy
) -> list[Work]:
    started = [one.submit(evict_all, share, policy) for one, share in zip(workers, shares, strict=False)]
    return [one.result() for one in started]


def evict_all(memory_ids: Sequence[int], policy: RetentionPolicy) -> Work:
    from django.db import connection
    from django.utils import timezone

    ms, outcomes, statements = list[float](), Counter[str](), Counter[bool]()

    def count(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        statements[sql.startswith("SET TRANSACTION")] += 1
        return execute(sql, *rest)

    now, began = timezone.now(), time.monotonic()
    with connection.execute_wrapper(count):
        for memory_id in memory_ids:
            start = time.perf_counter()
            outcomes[evict(memory_id, policy, now)] += 1
            ms.append((time.perf_counter() - start) * 1000)
    return Work(began, time.monotonic(), ms, outcomes, statements[True])


def evict(memory_id: int, policy: RetentionPolicy, now: datetime) -> str:
    from django.db import OperationalError

    from memories.actions.eviction import auto_evict

    try:
        return str(auto_evict(memory_id=memory_id, policy=policy, now=now).value)
    except OperationalError:
        return "failed"


def loops_of(workers: Sequence[ProcessPoolExecutor]) -> int:
    started = [one.submit(count_up) for one in workers]
    return sum(one.result() for one in started)


def count_up(seconds: float = 0.3) -> int:
    """Return how often a loop without a database runs."""
    ends, loops = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        loops += len([n for n in range(1000) if n % 7])
    return loops


def summary(turns: Sequence[Sequence[Work]]) -> dict[str, Any]:
    works = [work for turn in turns for work in turn]
    outcomes = sum((work.outcomes for work in works), Counter[str]())
    calls = [ms for work in works for ms in work.ms]
    cuts = quantiles(calls, n=100, method="inclusive")
    return {
        "evictions_per_s": round(median(evictions_per_second(turn) for turn in turns)),
        "p50_ms": round(cuts[49], 2),
        "p99_ms": round(cuts[98], 2),
        "p99_per_p50": round(cuts[98] / cuts[49], 2),
        "calls": len(calls),
        **{name: outcomes[name] for name in ("evicted", "limited", "failed")},
        "retries": sum(work.transactions for work in works) - len(calls),
    }


def evictions_per_second(turn: Sequence[Work]) -> float:
    seconds = max(work.ended for work in turn) - min(work.began for work in turn)
    return sum(work.outcomes["evicted"] for work in turn) / seconds


# --- Processes and the store ---


@contextmanager
def worker() -> Iterator[ProcessPoolExecutor]:
    """Give one process with a connection of its own; a fork would share ours."""
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawning, initializer=django.setup) as executor:
        yield executor


def fill(memories: int, accounts: int) -> float:
    """Store the memories, the accounts' in turn, and return how many seconds it took."""
    from django.db import connection

    from memories.models import Account

    began = time.perf_counter()
    new = Account.objects.bulk_create(Account(username=f"bench {n}") for n in range(accounts))
    sizes = {"first": new[0].pk, "accounts": accounts, "memories": memories}
    with connection.cursor() as cursor:
        # Without triggers: none of these memories waits for a vector.
        cursor.execute("set session_replication_role = replica; select setseed(0.5)")
        cursor.execute(FILL, sizes)
        cursor.execute("set session_replication_role = origin")
        cursor.execute("vacuum (analyze)")
    return round(time.perf_counter() - began, 1)


def number(sql: str, **values: int) -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return int(cursor.fetchone()[0])


if __name__ == "__main__":
    main()
