"""Ends what a killed parent left in a data folder of PostgreSQL."""

import signal
import subprocess
from pathlib import Path

from elowen.postgres_host import PostgresError
from elowen.processes import LINUX, is_running, pids, poll, send, works_in

STOP_SECONDS = 60


def stop_left_over(data: Path) -> None:
    """End what still runs in this data folder and forget its pid file; the caller holds the cluster's lock.

    PostgreSQL takes a zombie for a living server and refuses to start, so the file has to go. It may only go
    when no process touches the data any more: the file is also what keeps two servers apart.
    """
    lock = data / "postmaster.pid"
    try:
        pid = int(lock.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        pid = 0
    if not LINUX:
        return _stop_without_proc(lock, pid)
    for number, patience in ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, 10), (signal.SIGKILL, 10)):
        if works_in(pid, data):
            send(pid, number)
        # Backends notice the death of their server by themselves, in milliseconds.
        if poll(lambda: not _servers(data), patience if works_in(pid, data) else 5):
            break
        for orphan in _servers(data):
            send(orphan, signal.SIGQUIT if number == signal.SIGINT else signal.SIGKILL)
    if _servers(data):
        raise PostgresError(f"Processes {_servers(data)} still use {data}; end them and start again.")
    lock.unlink(missing_ok=True)


def _servers(data: Path) -> list[int]:
    return [pid for pid in pids() if works_in(pid, data)]


def _stop_without_proc(lock: Path, pid: int) -> None:
    """Without /proc: stop the recorded server if it is one; PostgreSQL itself checks the file."""
    if pid and is_running(pid):
        shown = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True)  # noqa: S603, S607
        if "postgres" in shown.stdout and str(lock.parent) in shown.stdout:
            send(pid, signal.SIGINT)
            poll(lambda: not is_running(pid), STOP_SECONDS)
