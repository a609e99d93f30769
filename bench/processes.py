"""Real processes beside a benchmark, on its database: the worker, the web server, an embedding server."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elowen.supervisor import web

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 60.0
STOP_S = 20


@contextmanager
def worker() -> Iterator[None]:
    """Run the background worker as a service does."""
    with running([sys.executable, str(ROOT / "manage.py"), "qcluster"]):
        yield


@contextmanager
def web_server() -> Iterator[str]:
    """Run the web server as a service does, and yield its address."""
    port = free_port()
    child = web("127.0.0.1", port, {})
    with running(list(child.command), child.environment):
        wait_for(port)
        yield f"http://127.0.0.1:{port}"


@contextmanager
def embedding_server(model: str) -> Iterator[str]:
    """Serve a bundled model as OpenAI does, in a process of its own, and yield its base address."""
    port = free_port()
    with running([sys.executable, "-m", "bench.embedding_server", model, str(port)]):
        wait_for(port)
        yield f"http://127.0.0.1:{port}"


@contextmanager
def running(command: list[str], environment: dict[str, str] | None = None) -> Iterator[None]:
    process = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | (environment or {}), stdout=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("A server did not come up.")
