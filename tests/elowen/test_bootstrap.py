"""How manage.py comes to its packages, tried with every Python of this machine that can run it."""

import os
import shutil
import subprocess
import sys
from glob import glob
from pathlib import Path

import pytest

from elowen import bootstrap

ROOT = Path(__file__).resolve().parents[2]
LOCK, DEV_LOCK = str(ROOT / "requirements.lock"), str(ROOT / "requirements-dev.lock")


def pythons() -> dict[str, str]:
    """One Python of each version, without any packages; always the one under this venv."""
    base = os.path.realpath(sys.executable)
    files = [
        base,
        *glob("/usr/bin/python3.*[0-9]"),
        *glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python")),
    ]
    found: dict[str, str] = {}
    for file in files:
        version = tuple(bare_version(file))
        if version >= (3, 6):
            found.setdefault("{}.{}".format(*version), file)
    return found


def bare_version(python: str) -> list[int]:
    shown = subprocess.run(
        [python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True
    )
    return [int(part) for part in shown.stdout.split()]


PYTHONS = pythons()
BASE = next(iter(PYTHONS.values()))
any_python = pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what starts Elowen, in a folder that has a space in its name."""
    folder = tmp_path / "a project"
    (folder / "elowen").mkdir(parents=True)
    for name in ("manage.py", "elowen/bootstrap.py", "requirements.lock", "requirements-dev.lock"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "elowen" / "__init__.py").touch()
    return folder


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def run(python: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", bootstrap.GUARD)}
    return subprocess.run([python, *arguments], capture_output=True, text=True, env=kept | environment)


def stamp(project: Path, lock: str) -> None:
    (project / ".venv" / bootstrap.STAMP).write_text(bootstrap.digest(str(project / lock)))


# --- Which lock, which versions ---


@pytest.mark.parametrize(
    ("version", "fit"),
    [((3, 11), False), ((3, 12), True), ((3, 13), True), ((3, 14), True), ((3, 15), False), ((2, 7), False)],
)
def test_versions_that_fit(version: tuple[int, int], fit: bool) -> None:
    assert bootstrap.is_fit(version) is fit


@pytest.mark.parametrize(
    ("arguments", "lock"),
    [
        (["manage.py"], LOCK),
        (["manage.py", "up"], LOCK),
        (["manage.py", "test", "-x"], DEV_LOCK),
        (["manage.py", "check_code"], DEV_LOCK),
    ],
)
def test_each_command_has_its_lock(arguments: list[str], lock: str) -> None:
    assert bootstrap.lock_for(arguments) == lock


def test_the_lock_is_read_without_what_a_marker_may_exclude() -> None:
    text = (
        "django==6.1.3 \\\n    --hash=sha256:00\n"
        "colorama==0.4.6 ; sys_platform == 'win32' \\\n    --hash=sha256:11\n"
        "zope.interface==7.0\n"
    )

    assert bootstrap.required(text) == [("django", "6.1.3"), ("zope.interface", "7.0")]


def test_every_locked_package_has_a_version_and_a_hash() -> None:
    for lock in (LOCK, DEV_LOCK):
        blocks = [block for block in Path(lock).read_text().split("\n\n") if block.strip()]
        lines = [line for block in blocks for line in block.splitlines()]
        heads = [line for line in lines if line[:1].isalnum()]
        assert len(heads) > 30
        assert all("==" in head and head.endswith("\\") for head in heads)
        assert not [line for line in lines if "://" in line]  # no host of a registry


def test_the_development_lock_holds_the_runtime_lock() -> None:
    runtime, development = (set(bootstrap.required(Path(lock).read_text())) for lock in (LOCK, DEV_LOCK))

    assert runtime < development


def test_these_packages_are_the_locked_ones(tmp_path: Path) -> None:
    changed = tmp_path / "requirements.lock"
    changed.write_text("django==1.0 \\\n    --hash=sha256:00\n")
    missing = tmp_path / "missing.lock"
    missing.write_text("no-such-package==1.0\n")

    assert bootstrap.has_packages(DEV_LOCK)
    assert not bootstrap.has_packages(str(changed))
    assert not bootstrap.has_packages(str(missing))


@pytest.mark.parametrize(
    ("stamped", "lock", "good"),
    [
        ("requirements-dev.lock", "requirements-dev.lock", True),
        ("requirements-dev.lock", "requirements.lock", True),
        ("requirements.lock", "requirements.lock", True),
        ("requirements.lock", "requirements-dev.lock", False),
    ],
)
def test_the_development_stamp_serves_both(project: Path, stamped: str, lock: str, good: bool) -> None:
    (project / ".venv").mkdir()
    stamp(project, stamped)

    assert bootstrap.has_stamp(str(project / ".venv"), str(project / lock)) is good


def test_a_changed_lock_makes_the_stamp_worthless(project: Path) -> None:
    (project / ".venv").mkdir()
    stamp(project, "requirements-dev.lock")
    with (project / "requirements-dev.lock").open("a") as lock:
        lock.write("more==1.0\n")

    assert not bootstrap.has_stamp(str(project / ".venv"), str(project / "requirements-dev.lock"))


# --- Finding a Python, started from any ---


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH whose first Python is a shim that fails, the second one too old, the third one fit."""
    script(tmp_path / "shims" / "python3.13", "exit 127")
    script(tmp_path / "old" / "python3.13", "printf '3 11 cpython 0\\n/old/python\\n'")
    script(tmp_path / "good" / "python3.13", f'exec "{sys.executable}" "$@"')
    return os.pathsep.join([*(str(tmp_path / name) for name in ("shims", "old", "good")), "/usr/bin", "/bin"])


@any_python
def test_running_a_candidate_is_what_counts(python: str, path: str, tmp_path: Path) -> None:
    code = "from elowen import bootstrap; print(bootstrap.find_python())"

    done = run(
        python, "-c", code, PYTHONPATH=str(ROOT), PATH=path, HOME=str(tmp_path), PYENV_ROOT=str(tmp_path)
    )

    found = done.stdout.strip()
    assert found == (bootstrap.probe(python) or sys.executable), done.stderr


def test_a_python_that_is_no_python_is_passed_over(tmp_path: Path) -> None:
    assert bootstrap.probe(str(tmp_path)) is None
    assert bootstrap.probe(str(tmp_path / "missing")) is None
    assert bootstrap.probe("/bin/echo") is None


# --- Going on in the packages' Python ---


@any_python
def test_any_python_goes_on_in_the_finished_venv(python: str, project: Path) -> None:
    script(project / ".venv" / "bin" / "python", f'echo "$@"; echo "again=${bootstrap.GUARD}"')
    stamp(project, "requirements-dev.lock")

    done = run(python, "-S", str(project / "manage.py"), "test", "-k", "a b")

    assert done.stdout.splitlines() == [f"{project / 'manage.py'} test -k a b", "again=1"], done.stderr


def test_a_venv_made_by_hand_is_asked_itself(project: Path) -> None:
    (project / ".venv" / "bin").mkdir(parents=True)
    python = project / ".venv" / "bin" / "python"
    script(python, f'exec "{sys.executable}" "$@"')

    assert bootstrap.is_good_venv(str(python), DEV_LOCK)
    script(python, "exit 1")
    assert not bootstrap.is_good_venv(str(python), DEV_LOCK)


def test_a_venv_that_never_becomes_good_ends_in_a_sentence(project: Path) -> None:
    done = run(BASE, "-S", str(project / "manage.py"), "up", **{bootstrap.GUARD: "1"})

    assert done.returncode == 1
    assert "still not as" in done.stderr
    assert "Traceback" not in done.stderr


def test_two_first_starts_wait_for_each_other(project: Path) -> None:
    script(project / ".venv" / "bin" / "python", "echo went on")
    stamp(project, "requirements-dev.lock")
    command = [BASE, "-S", str(project / "manage.py"), "up"]
    with bootstrap.folder_lock(str(project)):
        second = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert second.stderr is not None
        waiting = second.stderr.readline()

    output, _ = second.communicate(timeout=30)

    assert "waiting for it" in waiting
    assert output == "went on\n"
