"""Faults that the database itself commits, at a known moment."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def at_each_eviction(then: str, *, when: str = "new.automatic") -> Iterator[None]:
    """While this lasts, run PL/pgSQL whenever a memory is evicted; `seen` counts, `new` is the event."""
    with connection.cursor() as cursor:
        cursor.execute(f"""
            CREATE SEQUENCE evictions_seen;
            CREATE FUNCTION at_eviction() RETURNS trigger LANGUAGE plpgsql AS $$
            DECLARE seen bigint := nextval('evictions_seen');
            BEGIN {then}; RETURN new; END $$;
            CREATE TRIGGER at_eviction AFTER INSERT ON memories_memoryevent
            FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION at_eviction();
        """)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION at_eviction CASCADE; DROP SEQUENCE evictions_seen")


def evictions_seen() -> int:
    """Return how many were begun; visible before they are committed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM evictions_seen")
        return int(cursor.fetchone()[0])
