"""What Django's system checks ask of the settings and of the database, with what to do about it."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections

OLDEST_POSTGRESQL, OLDEST_PGVECTOR = 15, (0, 7)


@register()
def queue_timing(**kwargs: Any) -> list[CheckMessage]:
    """A task that comes back while it still runs would run twice."""
    queue: dict[str, Any] = settings.Q_CLUSTER
    longest = queue["timeout"] * (1 + queue["queue_limit"] / queue["workers"]) + 30
    if queue["retry"] > longest:
        return []
    return [Error(f"The queue's retry has to be more than {longest:.0f} seconds.", id="elowen.E001")]


@register(Tags.database)
def database_is_able(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Is the server new enough, and can it have vectors?"""
    found: list[CheckMessage] = []
    for alias in databases or []:
        with connections[alias].cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('server_version_num')::int / 10000,"
                " (SELECT coalesce(installed_version, default_version) FROM pg_available_extensions"
                " WHERE name = 'vector')"
            )
            found += judge_database(*cursor.fetchone())
    return found


def judge_database(major: int, pgvector: str | None) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if major < OLDEST_POSTGRESQL:
        hint = f"Use version {OLDEST_POSTGRESQL} or newer, or unset DATABASE_URL to use the embedded one."
        found.append(Error(f"The database is PostgreSQL {major}.", hint=hint, id="elowen.E002"))
    if pgvector is None or version(pgvector) < OLDEST_PGVECTOR:
        have = f"has pgvector {pgvector}" if pgvector else "has no pgvector"
        hint = "Install pgvector 0.7 or newer on the database server, then ALTER EXTENSION vector UPDATE."
        found.append(Error(f"The database {have}.", hint=hint, id="elowen.E003"))
    return found


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])
