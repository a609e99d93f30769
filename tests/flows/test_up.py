"""`manage.py up` as people run it: the real thing in a folder of its own, used, killed and ended."""

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, LiteralString
from urllib.error import URLError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import Request, urlopen

import psycopg
import pytest

from elowen.postgres import published_address
from elowen.processes import LINUX, is_marked, is_running, pids, poll, send, works_in

ROOT = Path(__file__).resolve().parents[2]
MANAGE = [sys.executable, str(ROOT / "manage.py")]
INDEXED = """
    SELECT count(*) FROM embeddings_memoryembedding JOIN memories_memory m ON m.id = memory_id
    WHERE m.body = %s
"""
AGED = "UPDATE memories_memory SET created_at = now() - interval '400 days' WHERE body = %s RETURNING id"
STATUS = "SELECT status FROM memories_memory WHERE body = %s"
NOT_THERE = (URLError, ConnectionError, TimeoutError)  # the web or the database may just be coming back
only_linux = pytest.mark.skipif(not LINUX, reason="the processes of an up are found through /proc")


class Up:
    """An `up` in a folder of its own, and what people and operators do with it."""

    def __init__(self, data: Path, **environment: str) -> None:
        self.data, self.port = data, free_port()
        self.key = f"elw_{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ELOWEN_")}
        kept.pop("DATABASE_URL", None)
        self.environment = kept | {"ELOWEN_DATA": str(data), "ELOWEN_BOOTSTRAP_KEY": self.key} | environment
        self.output = data.with_name(f"{data.name}.output")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> "Up":
        command = [*MANAGE, "up", "--port", str(self.port), *options]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                command, env=self.environment, stdout=output, stderr=output, start_new_session=True
            )
        return self

    def start_and_wait(self) -> None:
        self.start()
        self.wait(lambda: "Elowen runs at" in self.text() or not self.is_alive(), "start", 60)
        assert self.is_alive(), self.text()

    def ends(self, number: signal.Signals | None = None) -> int:
        """Send the signal, if any, and return the exit code."""
        assert self.process is not None
        if number:
            send(self.pid, number)
        return self.process.wait(60)

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def text(self) -> str:
        return self.output.read_text()

    def wait(self, condition: Callable[[], object], what: str, seconds: float = 40) -> None:
        assert poll(lambda: bool(condition()), seconds), f"{what} did not come about:\n{self.text()}"

    # --- As a client ---

    def call(self, path: str, body: dict[str, Any]) -> Any:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), headers)
        with urlopen(request, timeout=10) as answer:  # noqa: S310 - our own address
            return json.load(answer)

    def stores(self, text: str) -> bool:
        with suppress(*NOT_THERE):
            self.call("/api/memory", {"body": text})
            return True
        return False

    def recalls(self, text: str) -> bool:
        with suppress(*NOT_THERE):
            return text in json.dumps(self.call("/api/memory/retrieve", {"query": text}))
        return False

    def works(self, text: str) -> None:
        """Web, database and queue do what they are for."""
        self.wait(lambda: self.stores(text), f"storing {text!r}")
        self.wait(lambda: self.recalls(text), f"recalling {text!r}")
        # Recall finds a text by its words too; its vector is the queue's work.
        self.wait(lambda: self.ask(INDEXED, text), f"indexing {text!r}")

    # --- As an operator ---

    def command(self, *arguments: str) -> None:
        done = subprocess.run([*MANAGE, *arguments], env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def ask(self, query: LiteralString, *values: str) -> Any:
        url = self.environment.get("DATABASE_URL") or published_address(self.data).read_text()
        with psycopg.connect(url) as connection:
            row = connection.execute(query, values).fetchone()
        assert row is not None
        return row[0]

    def marked(self) -> list[int]:
        """What the supervisor started, and what that started, but for the database."""
        return [pid for pid in pids() if is_marked(pid, f"ELOWEN_RUN={self.data}:up")]

    def servers(self) -> list[int]:
        """The processes of the database that have the data folder open."""
        return [pid for pid in pids() if works_in(pid, self.data / "postgres" / "data")]

    def find(self, role: str) -> list[int]:
        """The processes of this role: the main ones are heads of a session, "'s" asks for their children."""
        main, _, below = role.partition("'s ")
        word = {"web": "granian", "queue": "qcluster", "database": "postgres"}[main]
        candidates = [*self.marked(), *self.servers()]
        mains = [pid for pid in candidates if session_of(pid) == pid and parent_of(pid) == self.pid]
        found = [pid for pid in mains if word in command_of(pid)]
        return [pid for pid in candidates if parent_of(pid) in found] if below else found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def session_of(pid: int) -> int:
    with suppress(ProcessLookupError):
        return os.getsid(pid)
    return -1


def parent_of(pid: int) -> int:
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return -1


def command_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    return ""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(tmp_path_factory.mktemp("up") / "data")
    yield up
    if up.is_alive():
        up.ends(signal.SIGTERM)


@pytest.fixture
def database_url() -> Iterator[str]:
    """An empty database on the server of the tests."""
    server = os.environ["DATABASE_URL"]
    parts = urlsplit(server)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE elowen_apart")
        yield urlunsplit(parts._replace(path="/elowen_apart"))
        connection.execute("DROP DATABASE elowen_apart WITH (FORCE)")


@pytest.fixture
def running(up: Up) -> Up:
    """One for all tests, since a first start takes seconds; started again where a test has ended it."""
    if not up.is_alive():
        up.start_and_wait()
    return up


def test_the_first_start_tells_once_what_one_needs(running: Up) -> None:
    text = running.text()

    assert re.search(r"name +admin\n +password +\S{12,}\n +API key +the one in ELOWEN_BOOTSTRAP_KEY", text)
    assert f"http://127.0.0.1:{running.port}/api/docs" in text
    assert "curl" in text
    assert running.key not in text


def test_what_was_stored_comes_back(running: Up) -> None:
    running.works("I take my coffee black.")


def test_a_second_start_is_refused(running: Up) -> None:
    second = Up(running.data.with_name("second"), ELOWEN_DATA=str(running.data)).start()

    assert second.ends() == 1
    assert f"already running on {running.data} (pid {running.pid})" in second.text()
    assert "Traceback" not in second.text()


def test_another_folder_may_not_share_the_port(running: Up, tmp_path: Path) -> None:
    other = Up(tmp_path / "other")
    other.port = running.port

    assert other.start().ends() == 1
    assert f"port {running.port} cannot be used" in other.text()


def test_other_commands_use_the_running_database(running: Up) -> None:
    running.command("migrate", "--check")


@only_linux
@pytest.mark.parametrize("role", ["web's worker", "web", "queue's guard", "queue", "database"])
def test_what_is_killed_comes_back_by_itself(running: Up, role: str) -> None:
    running.wait(lambda: running.find(role), f"a {role}")
    victim = running.find(role)[0]

    os.kill(victim, signal.SIGKILL)

    running.wait(lambda: (now := running.find(role)) and victim not in now, f"another {role}")
    running.works(f"The {role} was killed and came back.")


@only_linux
def test_a_killed_parent_takes_everything_along_and_nothing_is_lost(running: Up) -> None:
    running.works("The parent will be killed.")
    assert running.ends(signal.SIGKILL) == -signal.SIGKILL

    running.wait(lambda: not running.marked() and not running.servers(), "the end of every process")
    running.start_and_wait()

    assert "First administrator" not in running.text()
    assert running.recalls("The parent will be killed.")
    running.works("The parent was killed.")


@only_linux
def test_a_start_ends_what_outlived_a_killed_parent(running: Up) -> None:
    running.works("Everything will be killed.")
    mains = [*running.find("web"), *running.find("queue"), *running.find("database")]
    left = [pid for pid in running.marked() if pid not in mains]
    for pid in [running.pid, *mains]:
        os.kill(pid, signal.SIGKILL)
    running.ends()
    assert any(is_running(pid) for pid in left)

    running.start_and_wait()

    assert not any(is_running(pid) for pid in left)
    assert running.recalls("Everything will be killed.")
    running.works("Everything was killed.")


@only_linux
def test_ctrl_c_ends_everything_in_order(up: Up) -> None:
    if up.is_alive():
        up.ends(signal.SIGTERM)
    up.start_and_wait()

    assert up.ends(signal.SIGINT) == 0

    assert not up.marked()
    assert not up.servers()
    assert not published_address(up.data).exists()
    assert not (up.data / "postgres" / "data" / "postmaster.pid").exists()
    assert "Traceback" not in up.text()


def test_what_has_faded_goes_at_the_next_start_and_comes_back(running: Up) -> None:
    body = "Nobody has needed this for ages."
    running.works(body)
    memory_id = running.ask(AGED, body)
    running.ends(signal.SIGTERM)

    running.start_and_wait()

    running.wait(lambda: running.ask(STATUS, body) == "deleted", "the sweep at the start")
    assert not running.recalls(body)
    row = running.call(f"/api/memory/{memory_id}/restore", {"keep": True})
    assert (row["status"], row["vitality"]) == ("active", pytest.approx(50, abs=0.1))
    running.wait(lambda: running.recalls(body), "recalling it again")


@only_linux
def test_a_second_signal_does_not_wait_for_a_long_task(running: Up) -> None:
    running.command("shell", "-c", "from django_q.tasks import async_task; async_task('time.sleep', 300)")
    taken = "SELECT lock > now() FROM django_q_ormq ORDER BY id DESC LIMIT 1"
    running.wait(lambda: running.ask(taken), "work on the task")

    send(running.pid, signal.SIGTERM)
    running.wait(lambda: "Stopping" in running.text(), "the first signal")
    assert not poll(lambda: not running.is_alive(), 2), running.text()
    start = time.monotonic()
    code = running.ends(signal.SIGTERM)

    assert code == 0
    assert time.monotonic() - start < 10
    assert not running.marked()
    assert not running.servers()


def test_a_weak_key_is_refused_with_a_sentence(tmp_path: Path) -> None:
    up = Up(
        tmp_path / "weak", ELOWEN_BOOTSTRAP_KEY="elw_aaaaaaaa_" + "a" * 43, ELOWEN_PLAIN_STATIC="1"
    ).start()

    assert up.ends() == 1
    assert "ELOWEN_BOOTSTRAP_KEY is refused" in up.text()
    assert "openssl rand" in up.text()
    assert "Traceback" not in up.text()


def test_web_and_queue_run_apart_on_a_database_of_ones_own(database_url: str, tmp_path: Path) -> None:
    """Both prepare the same empty database at once; one of them makes the administrator."""
    shared = {"DATABASE_URL": database_url, "ELOWEN_SECRET_KEY": secrets.token_urlsafe(48)}
    web = Up(tmp_path / "web", ELOWEN_PLAIN_STATIC="1", **shared)
    queue = Up(tmp_path / "queue", ELOWEN_BOOTSTRAP_KEY=web.key, **shared)
    try:
        queue.start("--only", "queue")
        web.start("--only", "web")

        web.works("Web and queue live apart.")

        told = [up for up in (web, queue) if "First administrator" in up.text()]
        assert len(told) == 1
        assert not (web.data / "postgres").exists()
    finally:
        assert [queue.ends(signal.SIGTERM), web.ends(signal.SIGTERM)] == [0, 0]


def test_roles_apart_need_a_database_of_ones_own(tmp_path: Path) -> None:
    up = Up(tmp_path / "apart").start("--only", "web")

    assert up.ends() == 1
    assert "set DATABASE_URL" in up.text()
