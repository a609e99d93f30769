"""Children that do not outlive their parent, and locks that the kernel drops when their holder dies."""

import ctypes
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import TextIO

LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# Loaded here: nothing may be imported between fork and exec.
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Child:
    """A process in a session of its own, with whatever it starts itself."""

    name: str
    command: list[str]
    environment: dict[str, str]
    folder: Path
    stdout: int | None = None
    process: Popen[bytes] | None = field(init=False, default=None)

    def start(self) -> None:
        self.end()
        self.process = Popen(  # noqa: S603 - our own commands
            self.command,
            env=self.environment,
            cwd=self.folder,
            stdin=DEVNULL,
            stdout=self.stdout,
            start_new_session=True,  # Ctrl-C reaches the parent alone, which ends its children in order
            preexec_fn=dying_with_parent(signal.SIGTERM),
        )

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def output(self) -> bytes | None:
        """What a finished process wrote to the pipe; None when it failed."""
        if self.process is None or self.process.returncode or self.process.stdout is None:
            return None
        with self.process.stdout as pipe:
            return pipe.read()

    def ask_to_stop(self) -> None:
        if self.is_alive():
            send(self.pid, signal.SIGTERM)

    def end(self) -> None:
        """Kill what is left of the whole session: a dead main process leaves its workers behind."""
        if self.process:
            send(self.pid, signal.SIGKILL, group=True)
            self.process.wait()


def dying_with_parent(death_signal: signal.Signals) -> Callable[[], None] | None:
    """Return a `preexec_fn` after which the child gets the signal when its parent ends, however it ends.

    To the kernel the parent is the thread that starts the child, so start it from the main one. Only Linux
    can do this; elsewhere the next start ends what was left.
    """
    if not LINUX:
        return None
    parent = os.getpid()

    def ask_kernel() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return ask_kernel


def adopt_orphans() -> None:
    """Become the parent of the orphans among all descendants, so that `bury_orphans` can reap them."""
    if LINUX:
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def bury_orphans(own: Collection[int]) -> None:
    """Reap the dead that were adopted; children in `own` are left to whoever started them."""
    with suppress(ChildProcessError):
        while LINUX and (dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)):
            if dead.si_pid in own:
                return
            os.waitpid(dead.si_pid, 0)


def end_marked(marker: str, seconds: float = 10) -> None:
    """End every process whose environment holds `marker` (NAME=value): what a killed parent left here."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = [pid for pid in pids() if pid != os.getpid() and is_marked(pid, marker)]
        for pid in left:
            send(pid, number)
        if poll(lambda: not any(is_running(pid) for pid in left), seconds):  # noqa: B023 - called at once
            return


def is_marked(pid: int, marker: str) -> bool:
    try:
        return marker.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") and is_running(pid)
    except OSError:
        return False


def pids() -> Iterator[int]:
    """Every process of this machine; none where there is no /proc."""
    return (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))


def is_running(pid: int) -> bool:
    """A zombie does not run: it only waits for a parent that may never ask."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return state_of(pid) != "Z"


def state_of(pid: int) -> str:
    """The letter that /proc tells, or nothing; the name before it may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def works_in(pid: int, folder: Path) -> bool:
    """Does this process have the folder as its current one? A server of PostgreSQL has its data folder."""
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == folder and is_running(pid)
    except OSError:
        return False


def send(pid: int, number: signal.Signals, *, group: bool = False) -> None:
    """Send a signal; to nobody when the process has gone meanwhile."""
    with suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(pid, number)


def poll(condition: Callable[[], bool], seconds: float) -> bool:
    """Ask again and again until the condition holds; False when the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def take_lock(path: Path) -> TextIO | None:
    """Return the open file that holds the lock until it is closed, or None when another process has it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    new.replace(path)
