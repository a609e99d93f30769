"""Looks at everything that an installation needs and says what to do about what is wrong."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, connection
from django.utils import timezone

from elowen.checks import database_is_able
from elowen.health import missing_migrations
from elowen.lib.errors import ElowenError

HEARTBEAT_SECONDS = 180
CLOCK_SECONDS = 5
FREE_BYTES = 1_000_000_000


class Trouble(Exception):
    """What is wrong, and what to do about it."""


@dataclass(frozen=True)
class Finding:
    name: str
    is_good: bool
    text: str


def examine() -> list[Finding]:
    """Run every check; without a database those that need one are left out."""
    first = look("database", database)
    rest = CHECKS if first.is_good else {"disk": disk}
    return [first, *(look(name, check) for name, check in rest.items())]


def look(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, check())
    except (Trouble, ElowenError, DatabaseError, OSError) as trouble:
        return Finding(name, False, " ".join(str(trouble).split()))


def database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('server_version')")
            version = cursor.fetchone()[0]
    except DatabaseError as error:
        raise Trouble(f"No connection: {error} Start the server, or correct DATABASE_URL.") from error
    return f"PostgreSQL {version}"


def extension() -> str:
    for problem in database_is_able(databases=["default"]):
        raise Trouble(f"{problem.msg} {problem.hint}")
    with connection.cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        row = cursor.fetchone()
    if row is None:
        raise Trouble("The extension vector is not in this database. Run `python3 manage.py prepare`.")
    return f"pgvector {row[0]}"


def migrations() -> str:
    if missing := missing_migrations():
        raise Trouble(f"{missing} migrations are missing. Run `python3 manage.py prepare`.")
    return "all applied"


def worker() -> str:
    from memories.models import Heartbeat

    beat = Heartbeat.objects.filter(name="queue").first()
    if beat is None:
        raise Trouble("The queue has never run here. Start it with `python3 manage.py up`.")
    age = timezone.now() - beat.at
    if age > timedelta(seconds=HEARTBEAT_SECONDS):
        raise Trouble(
            f"The queue was last seen {beat.at:%Y-%m-%d %H:%M} UTC. Start it, or read what it logs."
        )
    return f"seen {age.total_seconds():.0f} s ago"


def schedules() -> str:
    from django_q.models import Schedule

    from maintenance.schedules import SCHEDULES

    wanted, found = set(SCHEDULES), set(Schedule.objects.values_list("name", flat=True))
    if wanted - found:
        raise Trouble(
            f"Missing: {', '.join(sorted(wanted - found))}. Run `python3 manage.py sync_schedules`."
        )
    return f"{len(wanted)} in place"


def embedding() -> str:
    from embeddings.config import load
    from embeddings.state import try_out

    trial = try_out(load())
    if not trial["ok"]:
        raise Trouble(
            f"{trial['error']} See docs/embeddings.md; until then memories are found by words only."
        )
    return f"{trial['model']} gives {trial['dimensions']} dimensions in {trial['latencyMs']:.0f} ms"


def disk() -> str:
    free = shutil.disk_usage(settings.DATA_DIR).free
    shown = f"{free / 1e9:.1f} GB free in {settings.DATA_DIR}"
    if free < FREE_BYTES:
        raise Trouble(f"{shown}. PostgreSQL stops when it is full; make room.")
    return shown


def clock() -> str:
    """The lease of a sweep is written by one clock and judged by another."""
    before = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        there = cursor.fetchone()[0]
    drift = abs(there - (before + (timezone.now() - before) / 2)).total_seconds()
    if drift > CLOCK_SECONDS:
        raise Trouble(f"This machine and the database differ by {drift:.1f} s. Let both follow NTP.")
    return f"{drift:.3f} s from the database's"


CHECKS: dict[str, Callable[[], str]] = {
    "extension": extension,
    "migrations": migrations,
    "worker": worker,
    "schedules": schedules,
    "embedding": embedding,
    "disk": disk,
    "clock": clock,
}
