"""Jobs that one process at a time may do, decided by one conditional statement each.

The database's clock counts: processes may disagree about the time. A lease ends with its time or with its
holder's session, whichever is first, so that nobody waits for what was killed. Behind a pooler the session
may be another client's by then, which costs no more than that wait; where it ends early, the fence tells.
"""

from dataclasses import dataclass
from typing import Any

from django.db import connection

SESSION = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
# Of another user's session only the number can be seen.
HOLDER_IS_GONE = """
    NOT EXISTS (
        SELECT FROM pg_stat_activity WHERE pid = memories_lease.session_pid
        AND (backend_start = memories_lease.session_began) IS NOT FALSE
    )
"""
TAKE = f"""
    INSERT INTO memories_lease (name, holder, until, fence, wanted, session_pid, session_began)
    SELECT %(name)s, %(holder)s, clock_timestamp() + make_interval(secs => %(seconds)s), 1, false, mine.*
    FROM ({SESSION}) AS mine
    ON CONFLICT (name) DO UPDATE
    SET holder = excluded.holder, until = excluded.until, fence = memories_lease.fence + 1,
        session_pid = excluded.session_pid, session_began = excluded.session_began
    WHERE memories_lease.until <= clock_timestamp() OR {HOLDER_IS_GONE}
    RETURNING fence
"""  # noqa: S608 - constants
RENEW = f"""
    UPDATE memories_lease SET until = clock_timestamp() + make_interval(secs => %(seconds)s),
        (session_pid, session_began) = ({SESSION})
    WHERE name = %(name)s AND fence = %(number)s AND until > clock_timestamp()
    RETURNING 1
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class Fence:
    """What a holder shows. A later holder has a higher number, so an old one is recognised."""

    name: str
    number: int


def take(name: str, *, seconds: float, holder: str) -> Fence | None:
    """Return a fence if nobody holds the lease now, else None. It ends by itself after so many seconds."""
    number = _returned(TAKE, {"name": name, "holder": holder[:60], "seconds": seconds})
    return None if number is None else Fence(name, number)


def renew(fence: Fence, *, seconds: float) -> bool:
    """Hold on for so many seconds from now. False: the lease is lost, and so is the right to go on."""
    renewed = _returned(RENEW, {"name": fence.name, "number": fence.number, "seconds": seconds})
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
