"""The embedded PostgreSQL: binaries from a wheel, a cluster in the data folder, a direct child of its user.

The wheel's own Python wrapper is never imported: as root it opens every parent folder to all users, and
its servers can outlive their users (docs/adr/0002-embedded-postgresql.md).
"""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psycopg

from elowen.postgres_host import (
    MAJOR,
    PostgresError,
    account_options,
    binary,
    give_to_account,
    make_socket_folder,
    open_way,
    run_binary,
    socket_folder,
)
from elowen.postgres_leftovers import STOP_SECONDS, stop_left_over
from elowen.processes import dying_with_parent, poll, send, take_lock, write_private

NAME = "elowen"  # of the role and of the database
START_SECONDS = 300  # crash recovery may have to replay 4 GB
MB = 1024 * 1024

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "timezone": "UTC",  # else Django sends a SET on each new connection
    "work_mem": "16MB",
    "max_wal_size": "4GB",
    "max_pred_locks_per_transaction": "1024",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    # Statements and failing rows hold what people wrote; Elowen itself sees each error.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
}
THROW_AWAY = dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes", "autovacuum"), "off")


@dataclass
class Cluster:
    """One PostgreSQL server. `home` holds data/, password and, where its path is short enough, socket/."""

    home: Path
    throw_away: bool = False  # nothing in it needs to survive a crash
    log: Path = field(init=False)
    process: subprocess.Popen[bytes] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.home = self.home.resolve()
        self.log = self.home.with_name(f"{self.home.name}.log")

    @property
    def data(self) -> Path:
        return self.home / "data"

    def url(self, database: str = NAME) -> str:
        password = (self.home / "password").read_text().strip()
        return f"postgresql://{NAME}:{password}@/{database}?host={quote(str(socket_folder(self.home)))}"

    def initialise(self) -> None:
        """Make the cluster unless it is there; a kill half-way leaves a folder that the next try removes."""
        if self.home.exists():
            open_way(self.home)
            return self._refuse_other_version()
        new = self.home.with_name(f"{self.home.name}.new")
        # An initdb that outlived its parent writes on until it notices that its folder is gone.
        poll(lambda: _is_removed(new), START_SECONDS)
        new.mkdir(mode=0o700, parents=True)
        (new / "password").touch(mode=0o600)
        (new / "password").write_text(secrets.token_urlsafe(32))
        give_to_account(new, new / "password")
        run_binary(
            "initdb", f"--pgdata={new / 'data'}", f"--username={NAME}", f"--pwfile={new / 'password'}",
            "--auth=scram-sha-256", "--encoding=UTF8", "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8", "--locale=C", *(["--no-sync"] if self.throw_away else []),
        )  # fmt: skip
        new.rename(self.home)

    def start(self) -> None:
        """Start the server and wait until it answers; the caller holds the lock of this cluster.

        Raises:
            PostgresError: it cannot start, or not within START_SECONDS.
        """
        self.initialise()
        stop_left_over(self.data)
        sockets = socket_folder(self.home)
        make_socket_folder(sockets)
        (sockets / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
        self._spawn(sockets)
        if not poll(lambda: self._is_ready() or not self.is_alive(), START_SECONDS) or not self.is_alive():
            self.stop()
            raise PostgresError(f"PostgreSQL did not start. {self.log} ends with:\n{last_lines(self.log)}")
        self._create_database()

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Disconnect everyone and shut down in order; after `seconds` at once, with a recovery next time."""
        if self.process is None:
            return
        for number, patience in ((signal.SIGINT, seconds), (signal.SIGQUIT, 10), (signal.SIGKILL, 10)):
            if self.is_alive():
                send(self.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
                break
        self.process = None

    def _refuse_other_version(self) -> None:
        found = (self.data / "PG_VERSION").read_text().strip() if self.data.exists() else "an unknown version"
        if found != MAJOR:
            raise PostgresError(
                f"{self.data} was made by PostgreSQL {found}, and this Elowen brings {MAJOR}. Start the "
                "Elowen that made it, save everything with pg_dump, move the folder away and restore the "
                'dump here: "Another PostgreSQL version" in docs/operations.md has the commands.'
            )

    def _spawn(self, sockets: Path) -> None:
        # Quoted, since the setting is a list and a folder's name may hold a comma.
        quoted = '"{}"'.format(str(sockets).replace('"', '""'))
        settings = SETTINGS | {"shared_buffers": shared_buffers(), "unix_socket_directories": quoted}
        if self.throw_away:
            settings |= THROW_AWAY | {"shared_buffers": "128MB"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        if self.log.exists() and self.log.stat().st_size > 8 * MB:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own binary
                [binary("postgres"), "-D", str(self.data), *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                start_new_session=True,  # Ctrl-C is for the parent alone
                preexec_fn=dying_with_parent(signal.SIGINT),  # runs after the change of user
                **account_options(),
            )  # fmt: skip

    def _is_ready(self) -> bool:
        """A stale file says ready too, so the first line has to name our own child."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _create_database(self) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [NAME]).fetchone():
                connection.execute(f"CREATE DATABASE {NAME}")


@contextmanager
def own_cluster(folder: Path) -> Iterator[Cluster | None]:
    """Run the data folder's server and publish its address; None when another process runs it already."""
    lock = take_lock(folder / "postgres.lock")
    if lock is None:
        yield None
        return
    cluster, address = Cluster(folder / "postgres"), published_address(folder)
    with lock:
        address.unlink(missing_ok=True)
        try:
            cluster.start()
            write_private(address, cluster.url())
            yield cluster
        finally:
            address.unlink(missing_ok=True)
            cluster.stop()


def published_address(folder: Path) -> Path:
    """The file, for its owner's eyes only, that tells other commands where the running server is."""
    return folder / "database-url"


def shared_buffers() -> str:
    """A quarter of the memory that this machine or container has, 256 MB to 1 GB."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return f"{min(max(memory // 4 // MB, 256), 1024)}MB"


def _is_removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def last_lines(path: Path, count: int = 15) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-count:]) if path.exists() else ""


# --- Clusters for tests ---


def throw_away_cluster() -> Cluster:
    """Return a cluster in a new temporary folder, not started; `remove_cluster` ends it."""
    return Cluster(Path(tempfile.mkdtemp(prefix="elowen-test-")) / "postgres", throw_away=True)


def remove_cluster(cluster: Cluster) -> None:
    cluster.stop()
    shutil.rmtree(cluster.home.parent, ignore_errors=True)
