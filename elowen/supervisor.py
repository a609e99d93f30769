"""`up`: PostgreSQL, the web and the queue as children of one parent that starts, watches and ends them."""

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from subprocess import PIPE

from elowen.lib.env import env_int, env_list, env_str
from elowen.postgres import Cluster, own_cluster
from elowen.processes import Child, adopt_orphans, bury_orphans, end_marked, poll, take_lock
from elowen.watching import Progress, Revival, Watch, say

ROOT = Path(__file__).resolve().parent.parent
READY_SECONDS, STOP_SECONDS = 180, 30
EMBEDDED_CONNECTIONS = 80  # of the 100; the rest is for the queue, commands and psql


class UpError(Exception):
    """Elowen cannot start; the message says what to do."""


class StopAsked(Exception):
    """A signal asked the supervisor to end everything."""


@dataclass
class Supervisor:
    data: Path
    host: str
    port: int
    only: str = ""  # "web" or "queue"; both when empty
    stop_requests: int = 0
    watches: list[Watch] = field(default_factory=list)
    children: list[Child] = field(default_factory=list)
    cluster: Cluster | None = None

    @property
    def role(self) -> str:
        return {"": "up", "web": f"up-web-{self.port}", "queue": "up-queue"}[self.only]

    @property
    def marker(self) -> str:
        return f"{self.data}:{self.role}"

    def run(self) -> None:
        """Serve until a signal asks to stop; nothing runs any more when this returns or raises."""
        path = self.data / f"{self.role}.lock"
        lock = take_lock(path)
        if lock is None:
            raise UpError(f"Elowen is already running on {self.data} (pid {path.read_text()}).")
        with lock, suppress(StopAsked):
            self._listen()
            end_marked(f"ELOWEN_RUN={self.marker}")
            with self._database() as url:
                try:
                    self._serve(url)
                finally:
                    self._stop()

    def _serve(self, url: str) -> None:
        environment = os.environ | {
            "DATABASE_URL": url,
            "ELOWEN_DATA": str(self.data),
            "ELOWEN_RUN": self.marker,
            "PYTHONUNBUFFERED": "1",
        }
        if self.only != "queue":
            refuse_taken_port(self.host, self.port)
        say("Preparing the database and the pages …")
        first = self._prepare(environment)
        if self.only != "queue":
            self._start_child(web(self.host, self.port, environment))
        if self.only != "web":
            queue = self._start_child(Child("queue", manage("qcluster"), environment, ROOT))
            self.watches.append(Progress(queue, url))
        try:
            is_ready = self.only == "queue" or self._wait(self._answers, READY_SECONDS)
        finally:
            announce_first(first)
        self._announce(key=first.get("key"), is_ready=is_ready)
        self._wait(lambda: False, float("inf"))

    # --- Stages ---

    @contextmanager
    def _database(self) -> Iterator[str]:
        if url := env_str("DATABASE_URL"):
            yield url
            return
        if self.only:
            raise UpError("--only web and --only queue need a database of their own: set DATABASE_URL.")
        with own_cluster(self.data) as cluster:
            if cluster is None:
                pid = (self.data / "postgres.lock").read_text()
                raise UpError(f"Another command (pid {pid}) is using this database; end it and start again.")
            self.cluster = cluster
            self.watches.append(Revival("database", cluster))
            yield cluster.url()

    def _prepare(self, environment: dict[str, str]) -> dict[str, str]:
        """Migrate and so on in a process of its own; return the first administrator, if it made one."""
        options = ["--json"] + (["--no-static"] if self.only == "queue" else [])
        child = Child("preparation", manage("prepare", *options), environment, ROOT, stdout=PIPE)
        self.children = [child]
        child.start()
        self._wait(lambda: not child.is_alive(), float("inf"))
        self.children = []
        report = child.output()
        if report is None:
            raise UpError("The preparation failed; its message is above.")
        found: dict[str, str] = json.loads(report or b"{}")
        return found

    def _start_child(self, child: Child) -> Child:
        child.start()
        self.children.append(child)
        self.watches.append(Revival(child.name, child))
        return child

    def _stop(self) -> None:
        say("Stopping …")
        for child in self.children:
            child.ask_to_stop()
        asked = self.stop_requests
        poll(lambda: self.stop_requests > asked or not any(c.is_alive() for c in self.children), STOP_SECONDS)
        for child in self.children:
            child.end()
        bury_orphans(self._own_pids())

    # --- Waiting ---

    def _listen(self) -> None:
        adopt_orphans()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # `nohup` ignores it
                signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: object) -> None:
        self.stop_requests += 1

    def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Tend the services until the condition holds; False when the time is over.

        Raises:
            StopAsked: a signal came.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.stop_requests:
                raise StopAsked
            for watch in self.watches:
                watch.tend(time.monotonic())
            bury_orphans(self._own_pids())
            if condition():
                return True
            time.sleep(0.1)
        return False

    def _own_pids(self) -> set[int]:
        return {child.pid for child in self.children} | ({self.cluster.pid} if self.cluster else set())

    def _answers(self) -> bool:
        """Does /readyz say yes? The name in the request has to be one that this service goes by."""
        allowed = env_list("ELOWEN_ALLOWED_HOSTS")
        name = allowed[0].lstrip(".") if allowed and allowed[0] != "*" else "localhost"
        connection = HTTPConnection(reachable(self.host), self.port, timeout=5)
        with suppress(OSError, HTTPException):
            connection.request("GET", "/readyz", headers={"Host": name, "X-Forwarded-Proto": "https"})
            return connection.getresponse().status == 200
        return False

    def _announce(self, *, key: str | None, is_ready: bool) -> None:
        if not is_ready:
            say(f"Not ready after {READY_SECONDS} s; `python3 manage.py doctor` says why. Still trying.")
        if self.only == "queue":
            say("The queue runs.")
            return
        host = reachable(self.host)
        address = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        say(
            f"\nElowen runs at {address} (Ctrl-C stops it)\n"
            f"  Interface described at {address}/api/docs\n"
            "  Try it:\n"
            f"    curl {address}/api/memory -H 'Authorization: Bearer {key or 'YOUR_KEY'}' \\\n"
            """      -H 'Content-Type: application/json' -d '{"body": "I take my coffee black."}'\n""",
            sys.stdout,
        )


def announce_first(first: dict[str, str]) -> None:
    """Show the first administrator's secrets, which exist nowhere else in this form."""
    if first:
        key = first.get("key", "the one in ELOWEN_BOOTSTRAP_KEY")
        say(
            "\nFirst administrator, shown this once:\n"
            f"  name      {first['username']}\n  password  {first['password']}\n  API key   {key}",
            sys.stdout,
        )


def manage(*arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "manage.py"), *arguments]


def web(host: str, port: int, environment: dict[str, str]) -> Child:
    workers = env_int("ELOWEN_WEB_WORKERS", 2, low=1, high=64)
    threads = env_int("ELOWEN_WEB_THREADS", 4, low=1, high=64)
    if not env_str("DATABASE_URL") and workers * threads > EMBEDDED_CONNECTIONS:
        raise UpError(f"ELOWEN_WEB_WORKERS times ELOWEN_WEB_THREADS must not pass {EMBEDDED_CONNECTIONS}.")
    command = [
        sys.executable, "-m", "granian", "elowen.wsgi:application", "--interface", "wsgi", "--no-ws",
        "--host", host, "--port", str(port), "--workers", str(workers), "--blocking-threads", str(threads),
        # Counts connections, idle ones too: a number near the threads lets quiet clients shut others out.
        "--backpressure", "512",
        "--respawn-failed-workers", "--workers-kill-timeout", str(STOP_SECONDS), "--log-level", "warning",
    ]  # fmt: skip
    # One connection a thread; only here, since a queue that forks would share the pool.
    return Child("web", command, {"ELOWEN_DB_POOL": str(threads)} | environment, ROOT)


def reachable(host: str) -> str:
    """An address that this machine can connect to, where `host` may mean all of them."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - read, not bound


def refuse_taken_port(host: str, port: int) -> None:
    """Two services can share a port without an error, and would then share its visitors at random."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise UpError(
            f"{host} port {port} cannot be used: {error.strerror}. --host and --port, or ELOWEN_HOST and "
            "ELOWEN_PORT, choose another address."
        ) from error
