"""What `up` looks at again and again: is it alive, does it get anything done."""

import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TextIO

import psycopg

from elowen.postgres_host import PostgresError
from elowen.processes import Child

HEALTHY_SECONDS, LONGEST_PAUSE_SECONDS = 60, 30
STUCK_SECONDS, STUCK_CHECK_SECONDS = 180, 60
LAST_PROGRESS_IS_OLD = """
    SELECT greatest((SELECT max(at) FROM memories_heartbeat WHERE name = 'queue'),
                    (SELECT max(stopped) FROM django_q_task)) < now() - make_interval(secs => %s)
"""


class Service(Protocol):
    def start(self) -> None: ...
    def is_alive(self) -> bool: ...


class Watch(Protocol):
    def tend(self, now: float) -> None: ...


@dataclass
class Revival:
    """Starts a service again when it died: at once, then after 1, 2, 4 … seconds while it keeps dying."""

    name: str
    service: Service
    deaths: int = 0
    start_at: float | None = None
    started_at: float = field(default_factory=time.monotonic)

    def tend(self, now: float) -> None:
        if self.service.is_alive():
            if now - self.started_at > HEALTHY_SECONDS:
                self.deaths = 0
        elif self.start_at is None:
            pause = min(2.0 ** (self.deaths - 1), LONGEST_PAUSE_SECONDS) if self.deaths else 0.0
            self.deaths, self.start_at = self.deaths + 1, now + pause
            say(f"The {self.name} died; it starts again in {pause:.0f} s.")
        elif now >= self.start_at:
            self._start()

    def _start(self) -> None:
        try:
            self.service.start()
        except (PostgresError, OSError) as error:
            say(str(error))
        self.start_at, self.started_at = None, time.monotonic()


@dataclass
class Progress:
    """Ends a queue that lives but gets nothing done, so that it starts afresh.

    A queue worker killed while it waited for work takes a lock along that the others then wait for, for
    ever. The heartbeat is a task like any other, so an idle queue has progress too.
    """

    queue: Child
    url: str
    check_at: float = field(default_factory=lambda: time.monotonic() + STUCK_SECONDS + STUCK_CHECK_SECONDS)

    def tend(self, now: float) -> None:
        if now < self.check_at:
            return
        self.check_at = now + STUCK_CHECK_SECONDS
        if self.queue.is_alive() and is_stuck(self.url, STUCK_SECONDS):
            say(f"The queue has done nothing for {STUCK_SECONDS} s.")
            self.queue.end()
            self.check_at = now + STUCK_SECONDS + STUCK_CHECK_SECONDS


def is_stuck(url: str, seconds: float) -> bool:
    """Is the last sign of progress older than this? A database that cannot tell is another's business."""
    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            row = connection.execute(LAST_PROGRESS_IS_OLD, [seconds]).fetchone()
    except psycopg.Error:
        return False
    return bool(row and row[0])


def say(text: str, stream: TextIO | None = None) -> None:
    """Write a line at once, to stderr unless another stream is given."""
    to = stream or sys.stderr
    with suppress(OSError):  # the terminal or the pipe may be gone
        to.write(f"{text}\n")
        to.flush()
