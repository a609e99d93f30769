"""What `up` does about services that die and about a queue that only pretends to live."""

import os
import sys
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone
from django_q.models import Task

from elowen.postgres_host import PostgresError
from elowen.processes import Child
from elowen.watching import STUCK_SECONDS, Progress, Revival, is_stuck
from memories.models import Heartbeat


@dataclass
class Mortal:
    """A service that dies when it is told to, and may refuse to start."""

    alive: bool = True
    broken: bool = False
    started: list[float] = field(default_factory=list)
    now: float = 0.0

    def start(self) -> None:
        self.started.append(self.now)
        if self.broken:
            raise PostgresError("The disk is full.")
        self.alive = True

    def is_alive(self) -> bool:
        return self.alive


def live(service: Mortal, watch: Revival, until: int) -> None:
    for tenth in range(until * 10):
        service.now = tenth / 10
        watch.tend(service.now)


def test_a_dead_service_starts_again_at_once() -> None:
    service = Mortal(alive=False)

    live(service, Revival("web", service, started_at=0), until=1)

    assert service.started == [0.1]
    assert service.alive


def test_one_that_cannot_start_is_tried_with_growing_pauses(capsys: pytest.CaptureFixture[str]) -> None:
    service = Mortal(alive=False, broken=True)

    live(service, Revival("database", service, started_at=0), until=110)

    pauses = [
        round(later - earlier) for earlier, later in zip(service.started, service.started[1:], strict=False)
    ]
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert "The disk is full." in capsys.readouterr().err


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("beat_age", "task_age", "stuck"),
    [
        (10, 10, False),
        (500, 10, False),
        (10, 500, False),
        (500, 500, True),
        (500, None, True),
        (None, None, False),
    ],
)
def test_stuck_is_a_queue_that_ended_nothing(beat_age: int | None, task_age: int | None, stuck: bool) -> None:
    now = timezone.now()
    if beat_age is not None:
        Heartbeat.objects.update_or_create(name="queue", defaults={"at": now - timedelta(seconds=beat_age)})
    if task_age is not None:
        stopped = now - timedelta(seconds=task_age)
        Task.objects.create(id="1", name="one", func="x", started=stopped, stopped=stopped, success=True)

    assert is_stuck(url_of_the_test_database(), 180) is stuck


def test_a_database_that_does_not_answer_says_nothing_about_the_queue() -> None:
    assert is_stuck("postgresql://nobody@127.0.0.1:1/none", 180) is False


@pytest.mark.django_db(transaction=True)
def test_a_stuck_queue_is_ended_and_then_left_in_peace(tmp_path: Path) -> None:
    Heartbeat.objects.update_or_create(name="queue", defaults={"at": timezone.now() - timedelta(hours=1)})
    queue = Child("queue", [sys.executable, "-c", "import time; time.sleep(60)"], dict(os.environ), tmp_path)
    queue.start()
    progress = Progress(queue, url_of_the_test_database(), check_at=100.0)

    progress.tend(99.0)
    assert queue.is_alive()
    progress.tend(100.0)

    assert not queue.is_alive()
    assert progress.check_at > 100 + STUCK_SECONDS


def url_of_the_test_database() -> str:
    """The address of Django's test database, which has another name than the one in DATABASE_URL."""
    settings = connection.settings_dict
    return os.environ["DATABASE_URL"].replace("/elowen?", f"/{settings['NAME']}?")
