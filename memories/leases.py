"""Jobs that one process at a time may do, decided by one conditional statement each.

The database's clock counts: processes may disagree about the time.
"""

from dataclasses import dataclass
from typing import Any

from django.db import connection


@dataclass(frozen=True)
class Fence:
    """What a holder shows. A later holder has a higher number, so an old one is recognised."""

    name: str
    number: int


def take(name: str, *, seconds: float, holder: str) -> Fence | None:
    """Return a fence if nobody holds the lease now, else None. It ends by itself after so many seconds."""
    number = _returned(
        """
        INSERT INTO memories_lease (name, holder, until, fence, wanted)
        VALUES (%(name)s, %(holder)s, clock_timestamp() + make_interval(secs => %(seconds)s), 1, false)
        ON CONFLICT (name) DO UPDATE
        SET holder = excluded.holder, until = excluded.until, fence = memories_lease.fence + 1
        WHERE memories_lease.until <= clock_timestamp()
        RETURNING fence
        """,
        {"name": name, "holder": holder[:60], "seconds": seconds},
    )
    return None if number is None else Fence(name, number)


def renew(fence: Fence, *, seconds: float) -> bool:
    """Hold on for so many seconds from now. False: the lease is lost, and so is the right to go on."""
    renewed = _returned(
        """
        UPDATE memories_lease SET until = clock_timestamp() + make_interval(secs => %(seconds)s)
        WHERE name = %(name)s AND fence = %(number)s AND until > clock_timestamp()
        RETURNING 1
        """,
        {"name": fence.name, "number": fence.number, "seconds": seconds},
    )
    return renewed is not None


def release(fence: Fence) -> None:
    """Let the next one in at once. A lease that was lost meanwhile is left to its holder."""
    _returned(
        """
        UPDATE memories_lease SET until = clock_timestamp(), holder = ''
        WHERE name = %(name)s AND fence = %(number)s RETURNING 1
        """,
        {"name": fence.name, "number": fence.number},
    )


def want(name: str) -> bool:
    """Note that the job is wanted. False: somebody has asked already and the job has not begun since."""
    noted = _returned(
        """
        INSERT INTO memories_lease (name, holder, until, fence, wanted)
        SELECT %(name)s, '', clock_timestamp(), 0, true
        WHERE NOT EXISTS (SELECT FROM memories_lease WHERE name = %(name)s AND wanted)
        ON CONFLICT (name) DO UPDATE SET wanted = true WHERE NOT memories_lease.wanted
        RETURNING 1
        """,
        {"name": name},
    )
    return noted is not None


def begin(name: str) -> None:
    """Note that the job begins, before it looks for work: whatever comes from now on asks again."""
    _returned(
        "UPDATE memories_lease SET wanted = false WHERE name = %(name)s AND wanted RETURNING 1",
        {"name": name},
    )


def _returned(statement: str, values: dict[str, Any]) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row = cursor.fetchone()
    return row and row[0]
