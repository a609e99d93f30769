"""`prepare`: safe to repeat and to run twice at once; and the checks and the doctor around it."""

import io
import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.staticfiles.finders import get_finder
from django.core.checks import CheckMessage
from django.core.management import call_command
from django.db import connection, connections
from django.utils import timezone
from pytest_django import Settings

from elowen import doctor, preparation
from elowen.checks import judge_database, queue_timing
from elowen.lib.errors import Invalid
from embeddings.actions.storing import change_config
from embeddings.config import EmbeddingConfig
from memories.models import Account, Heartbeat
from tests.factories import AccountFactory
from tests.fakes.server import FakeServer, refuses

GOOD = "elw_Ab3dEf7h_7Jk2mQ9xVw4nRt6yBz8cLd5gHs3fPa1eUoKiNvTr0"


@pytest.fixture(autouse=True)
def no_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ELOWEN_ADMIN", "ELOWEN_BOOTSTRAP_KEY", "ELOWEN_BOOTSTRAP_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)


# --- The first administrator ---


@pytest.mark.django_db
def test_the_first_administrator_is_made_once() -> None:
    first = preparation.first_administrator()

    account = Account.objects.get(username=first["username"])
    assert account.is_superuser
    assert account.check_password(first["password"])
    assert first["username"] == "admin"
    assert first["key"].startswith("elw_")
    assert preparation.first_administrator() == {}


@pytest.mark.django_db
def test_the_given_name_and_key_are_used_and_the_key_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELOWEN_ADMIN", "ada")
    monkeypatch.setenv("ELOWEN_BOOTSTRAP_KEY", GOOD)

    first = preparation.first_administrator()

    assert first["username"] == "ada"
    assert GOOD not in first.values()


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["secret", "elw_aaaaaaaa_" + "a" * 43, "elw_short_" + "x" * 43])
def test_a_weak_key_makes_no_administrator(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("ELOWEN_BOOTSTRAP_KEY", key)

    with pytest.raises(Invalid, match="ELOWEN_BOOTSTRAP_KEY is refused"):
        preparation.first_administrator()

    assert not Account.objects.exists()


# --- One at a time ---


@pytest.mark.django_db(transaction=True)
def test_a_second_preparation_waits_for_the_first() -> None:
    entered = threading.Event()

    def second() -> None:
        with preparation.one_at_a_time():
            entered.set()
        connections.close_all()

    other = threading.Thread(target=second)
    with preparation.one_at_a_time():
        other.start()
        assert not entered.wait(0.5)
    other.join(10)

    assert entered.is_set()


# --- Static files ---


@pytest.fixture
def static_root(settings: Settings, tmp_path: Path) -> Iterator[Path]:
    source = tmp_path / "source"
    source.mkdir()
    (source / "page.css").write_text("body { color: black }")
    settings.STATICFILES_DIRS = [source]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.STATIC_ROOT = tmp_path / "static"
    settings.WHITENOISE_USE_FINDERS = False
    get_finder.cache_clear()  # type: ignore[attr-defined]
    yield settings.STATIC_ROOT
    get_finder.cache_clear()  # type: ignore[attr-defined]


def test_static_files_are_collected_again_only_when_one_has_changed(static_root: Path) -> None:
    preparation.collect_static()
    collected = static_root / "page.css"
    assert collected.exists()
    collected.unlink()

    preparation.collect_static()
    assert not collected.exists()

    source = static_root.parent / "source" / "page.css"
    source.write_text("body { color: navy }")
    os.utime(source, (1, 1))
    preparation.collect_static()
    assert collected.read_text() == "body { color: navy }"


# --- Checks ---


def ids(messages: list[CheckMessage]) -> list[str | None]:
    return [message.id for message in messages]


@pytest.mark.parametrize(
    ("major", "pgvector", "found"),
    [
        (18, "0.8.5", []),
        (15, "0.7.0", []),
        (14, "0.8.0", ["elowen.E002"]),
        (16, "0.6.2", ["elowen.E003"]),
        (16, None, ["elowen.E003"]),
        (13, None, ["elowen.E002", "elowen.E003"]),
        (18, "0.10.1", []),
    ],
)
def test_a_database_has_to_be_new_enough(major: int, pgvector: str | None, found: list[str]) -> None:
    messages = judge_database(major, pgvector)

    assert ids(messages) == found
    assert all(message.hint for message in messages)


def test_a_task_may_not_come_back_while_it_runs(settings: Settings) -> None:
    assert ids(queue_timing()) == []

    settings.Q_CLUSTER = settings.Q_CLUSTER | {"timeout": 200}

    assert ids(queue_timing()) == ["elowen.E001"]


# --- The doctor ---


def examined() -> dict[str, doctor.Finding]:
    return {finding.name: finding for finding in doctor.examine()}


@pytest.mark.django_db
def test_a_healthy_installation_has_no_trouble() -> None:
    call_command("sync_schedules", stdout=io.StringIO())
    Heartbeat.objects.update_or_create(name="queue", defaults={"at": timezone.now()})

    assert [finding for finding in examined().values() if not finding.is_good] == []


@pytest.mark.django_db
def test_a_queue_that_is_silent_and_schedules_that_are_missing_are_told() -> None:
    late = timezone.now() - timedelta(seconds=doctor.HEARTBEAT_SECONDS + 5)
    Heartbeat.objects.update_or_create(name="queue", defaults={"at": late})

    found = examined()

    assert "last seen" in found["worker"].text
    assert "sync_schedules" in found["schedules"].text
    assert not found["worker"].is_good
    with pytest.raises(SystemExit) as end:
        call_command("doctor", stdout=io.StringIO())
    assert end.value.code == 1


@pytest.mark.django_db
def test_a_missing_migration_is_told() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")

    assert examined()["migrations"].text.startswith("1 migrations are missing. Run")


@pytest.mark.django_db
def test_an_embedding_server_that_does_not_answer_is_told() -> None:
    account = AccountFactory.create()
    with FakeServer(refuses(503)) as server:
        change_config(config=EmbeddingConfig("endpoint", "m", server.base), by=account)

        found = examined()["embedding"]

    assert not found.is_good
    assert "found by words only" in found.text


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "FREE_BYTES", 10**18)

    with pytest.raises(doctor.Trouble, match="make room"):
        doctor.disk()


@pytest.mark.django_db
def test_a_clock_that_is_off_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CLOCK_SECONDS", -1)

    with pytest.raises(doctor.Trouble, match="NTP"):
        doctor.clock()
