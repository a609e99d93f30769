"""The embedded PostgreSQL with real servers, killed and left behind in every way that was seen."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest

from elowen.launch import database
from elowen.postgres import (
    Cluster,
    own_cluster,
    published_address,
    remove_cluster,
    shared_buffers,
    throw_away_cluster,
)
from elowen.postgres_host import PostgresError, find_account, socket_folder
from elowen.processes import LINUX, is_running, poll, works_in

ROOT = Path(__file__).resolve().parents[2]
RunPython = Callable[[str], subprocess.Popen[str]]
only_linux = pytest.mark.skipif(not LINUX, reason="needs /proc and PDEATHSIG")


@pytest.fixture(scope="module")
def made() -> Iterator[Cluster]:
    """One initialised cluster for the whole module; each test leaves it stopped."""
    cluster = throw_away_cluster()
    cluster.start()
    with psycopg.connect(cluster.url()) as connection:
        connection.execute("CREATE TABLE kept (word text)")
        connection.execute("INSERT INTO kept VALUES ('still here')")
    cluster.stop()
    yield cluster
    remove_cluster(cluster)


@pytest.fixture
def cluster(made: Cluster) -> Iterator[Cluster]:
    again = Cluster(made.home, throw_away=True)
    yield again
    again.stop()


def words(cluster: Cluster) -> list[str]:
    with psycopg.connect(cluster.url()) as connection:
        return [word for (word,) in connection.execute("SELECT word FROM kept")]


@pytest.fixture
def run_python() -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Start another Python on some code; what still runs at the end of the test is killed."""
    with ExitStack() as stack:

        def run(code: str) -> subprocess.Popen[str]:
            command = [sys.executable, "-c", f"import time; from pathlib import Path\n{code}"]
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield run


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    assert poll(condition, seconds), "waited in vain"


def test_the_server_is_private_and_speaks_utc_and_utf8(cluster: Cluster) -> None:
    cluster.start()

    with psycopg.connect(cluster.url()) as connection:
        shown = connection.execute(
            "SELECT current_setting('listen_addresses'), current_setting('TimeZone'), current_setting('jit'),"
            " (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), datcollversion IS NULL,"
            " pg_encoding_to_char(encoding), datlocale FROM pg_database WHERE datname = current_database()"
        ).fetchone()
    assert shown is not None
    assert (*shown[:4], *shown[5:]) == ("", "UTC", "off", True, "UTF8", "C.UTF-8")
    assert stat.S_IMODE((cluster.home / "password").stat().st_mode) == 0o600
    assert stat.S_IMODE(cluster.home.stat().st_mode) == 0o700
    assert stat.S_IMODE(socket_folder(cluster.home).stat().st_mode) == 0o700


def test_a_wrong_password_is_refused(cluster: Cluster) -> None:
    cluster.start()
    password = (cluster.home / "password").read_text()

    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(cluster.url().replace(password, "guess"))


def test_rows_are_kept_from_one_start_to_the_next(cluster: Cluster) -> None:
    cluster.start()
    cluster.stop()
    cluster.start()

    assert words(cluster) == ["still here"]


def test_statements_stay_out_of_the_log(cluster: Cluster) -> None:
    cluster.start()

    with psycopg.connect(cluster.url()) as connection, pytest.raises(psycopg.Error):
        connection.execute("SELECT 'my diary' FROM nowhere")

    assert "my diary" not in cluster.log.read_text()


@only_linux
def test_a_killed_server_recovers_at_the_next_start(cluster: Cluster) -> None:
    cluster.start()
    with closing(psycopg.connect(cluster.url())) as connection:  # a backend that may outlive its server
        connection.execute("INSERT INTO kept VALUES ('never committed')")
        os.kill(cluster.pid, signal.SIGKILL)
        wait_for(lambda: not cluster.is_alive())

        cluster.start()

    assert words(cluster) == ["still here"]


def test_a_pid_file_that_names_a_stranger_is_no_obstacle(cluster: Cluster, run_python: RunPython) -> None:
    stranger = run_python("time.sleep(60)")
    leave_pid_file(cluster, stranger.pid)

    cluster.start()

    assert words(cluster) == ["still here"]
    assert stranger.poll() is None


def test_a_zombie_is_not_taken_for_a_server(cluster: Cluster, run_python: RunPython) -> None:
    zombie = run_python("pass")
    wait_for(lambda: not is_running(zombie.pid))  # dead, and not reaped by us
    leave_pid_file(cluster, zombie.pid)

    cluster.start()

    assert words(cluster) == ["still here"]


def leave_pid_file(cluster: Cluster, pid: int) -> None:
    """What a server leaves that was killed, with the pid of somebody else."""
    lines = [
        str(pid),
        str(cluster.data),
        "1700000000",
        "5432",
        str(socket_folder(cluster.home)),
        "",
        "",
        "ready",
    ]
    (cluster.data / "postmaster.pid").write_text("\n".join(lines) + "\n")
    (socket_folder(cluster.home) / ".s.PGSQL.5432.lock").write_text("\n".join(lines[:5]) + "\n")


@only_linux
def test_a_killed_parent_takes_its_server_along(cluster: Cluster, run_python: RunPython) -> None:
    parent = run_python(
        f"from elowen.postgres import Cluster; c = Cluster(Path({str(cluster.home)!r}), throw_away=True)\n"
        "c.start(); print(c.pid, flush=True); time.sleep(60)"
    )
    assert parent.stdout is not None
    server = int(parent.stdout.readline())
    assert works_in(server, cluster.data)

    parent.kill()
    parent.wait()

    wait_for(lambda: not works_in(server, cluster.data), 10)
    cluster.start()
    assert words(cluster) == ["still here"]


@only_linux
def test_a_server_without_a_parent_is_stopped_by_the_next_start(cluster: Cluster) -> None:
    cluster.start()
    forgotten, process = cluster.pid, cluster.process
    again = Cluster(cluster.home, throw_away=True)

    again.start()

    assert not works_in(forgotten, cluster.data)
    assert words(again) == ["still here"]
    again.stop()
    assert process is not None
    assert process.wait() == 0


def test_a_folder_of_another_major_version_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "postgres"
    (home / "data").mkdir(parents=True)
    (home / "data" / "PG_VERSION").write_text("17\n")

    with pytest.raises(PostgresError, match=r"made by PostgreSQL 17.*pg_dump"):
        Cluster(home).start()


@only_linux
def test_a_killed_initdb_leaves_nothing_half_made(tmp_path: Path, run_python: RunPython) -> None:
    home = tmp_path / "postgres"
    parent = run_python(f"from elowen.postgres import Cluster; Cluster(Path({str(home)!r})).initialise()")
    half = tmp_path / "postgres.new" / "data"
    wait_for((half / "global").exists)
    parent.kill()
    parent.wait()
    assert not home.exists()

    cluster = Cluster(home, throw_away=True)
    cluster.start()

    assert not half.exists()
    with psycopg.connect(cluster.url()) as connection:
        assert connection.execute("SELECT current_database()").fetchone() == ("elowen",)
    cluster.stop()


def test_odd_and_long_paths_work(made: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / 'with space, comma and "quote"' / ("long" * 25)
    home = shutil.copytree(made.home, folder / "postgres", ignore=lambda d, names: {"socket"} & set(names))
    give_like(made.home, home)
    cluster = Cluster(home, throw_away=True)
    assert len(str(home)) > 100

    cluster.start()

    assert words(cluster) == ["still here"]
    cluster.stop()
    assert not socket_folder(home).is_relative_to(home)
    shutil.rmtree(socket_folder(home))


def test_a_socket_folder_of_somebody_else_is_refused(cluster: Cluster) -> None:
    folder = socket_folder(cluster.home)
    folder.chmod(0o777)
    try:
        with pytest.raises(PostgresError, match="open to others"):
            cluster.start()
    finally:
        folder.chmod(0o700)


def test_the_server_is_never_root_and_no_folder_is_opened_for_reading(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    cluster = Cluster(closed / "postgres", throw_away=True)

    cluster.start()

    is_root = os.geteuid() == 0
    owner = find_account().pw_uid if is_root else os.geteuid()
    assert owner != 0
    assert (cluster.data / "postmaster.pid").stat().st_uid == owner
    assert stat.S_IMODE(closed.stat().st_mode) == (0o701 if is_root else 0o700)
    cluster.stop()


def test_one_process_runs_the_server_and_the_others_find_it(tmp_path: Path, made: Cluster) -> None:
    give_like(
        made.home, shutil.copytree(made.home, tmp_path / "postgres", ignore=shutil.ignore_patterns("socket"))
    )

    with own_cluster(tmp_path) as first, database(tmp_path) as url, own_cluster(tmp_path) as second:
        assert first is not None
        assert second is None
        assert url == first.url()
        assert stat.S_IMODE(published_address(tmp_path).stat().st_mode) == 0o600
        assert words(first) == ["still here"]

    assert not published_address(tmp_path).exists()
    assert not first.is_alive()


def test_shared_buffers_stay_within_their_bounds() -> None:
    assert 256 <= int(shared_buffers().removesuffix("MB")) <= 1024


def give_like(source: Path, copy: Path) -> None:
    """Copying changes the owner, where we are root."""
    owner = source.stat()
    for path in (copy, *copy.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)


def test_a_start_that_fails_tells_the_end_of_the_log(cluster: Cluster) -> None:
    config = cluster.data / "postgresql.auto.conf"
    before = config.read_text()
    config.write_text("no_such_setting = 1\n")
    try:
        start = time.monotonic()
        with pytest.raises(PostgresError, match="no_such_setting"):
            cluster.start()
        assert time.monotonic() - start < 30
    finally:
        config.write_text(before)
