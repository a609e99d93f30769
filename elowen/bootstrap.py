"""Gives manage.py a Python that has Elowen's packages, built on the first run.

Standard library only, and the syntax of Python 3.6: this runs on whatever `python3` happens to be.
docs/adr/0001-one-command-bootstrap.md tells why it is so.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from typing import Dict, Iterator, List, Optional, Tuple

OLDEST, TOO_NEW = (3, 12), (3, 15)
NAMES = ("python3.13", "python3.14", "python3.12", "python3", "python")  # best known first
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
STAMP = "elowen-lock"  # in a venv: the hash of the lock that was installed there
DEV_COMMANDS = ("test", "check_code")
GUARD = "ELOWEN_BOOTSTRAPPED"
# They would send the next Python to the libraries of another one.
MISLEADING = ("PYTHONHOME", "__PYVENV_LAUNCHER__")
# ssl, because a Python built without it cannot install anything; ensurepip, because Debian splits it off.
PROBE = (
    "import sys, sysconfig, venv, ensurepip, ssl, ctypes;"
    "free_threaded = bool(sysconfig.get_config_var('Py_GIL_DISABLED'));"
    "print(sys.version_info[0], sys.version_info[1], sys.implementation.name, int(free_threaded));"
    "print(sys.executable)"
)


class BootstrapError(Exception):
    """No Python with the packages can be had; the message says what to do."""


def ensure_packages(arguments: List[str]) -> None:
    """Return when this Python has the packages; else continue the command in one that has, for good."""
    lock = lock_for(arguments)
    again = os.environ.pop(GUARD, "")
    if is_fit(sys.version_info[:2]) and has_packages(lock):
        return
    if again:
        raise SystemExit("The packages in {} are still not as {} wants them. Delete it.".format(VENV, lock))
    try:
        python = python_with_packages(lock)
    except BootstrapError as error:
        raise SystemExit(str(error)) from None
    environment = clean_environment()
    environment[GUARD] = "1"
    sys.stderr.flush()
    os.execve(python, [python, *arguments], environment)


def lock_for(arguments: List[str]) -> str:
    """The file that lists what the command needs, with hashes; the development one holds the other too."""
    is_dev = len(arguments) > 1 and arguments[1] in DEV_COMMANDS
    return os.path.join(ROOT, "requirements-dev.lock" if is_dev else "requirements.lock")


def python_with_packages(lock: str) -> str:
    python = os.path.join(VENV, "bin", "python")
    with folder_lock(ROOT):  # two first runs at once: the second waits and finds everything done
        if not is_good_venv(python, lock):
            build_venv(python, lock)
    return python


# --- Is it there? ---


def is_fit(version: Tuple[int, ...]) -> bool:
    return OLDEST <= tuple(version) < TOO_NEW


def is_good_venv(python: str, lock: str) -> bool:
    if not os.path.exists(python):
        return False
    if has_stamp(os.path.dirname(os.path.dirname(python)), lock):
        return True
    # Made by hand, or the lock has changed: ask the venv's own Python.
    script = "import sys; sys.path.insert(0, sys.argv[1]); from elowen import bootstrap as b;"
    script += "sys.exit(not (b.is_fit(sys.version_info[:2]) and b.has_packages(sys.argv[2])))"
    return succeeds([python, "-c", script, ROOT, lock])


def has_packages(lock: str) -> bool:
    """Are the locked versions installed in this very Python? The answer is kept as a stamp in our venv."""
    if has_stamp(sys.prefix, lock):
        return True
    from importlib import metadata  # Python 3.8; older ones are not fit and never come here

    try:
        good = all(metadata.version(name) == version for name, version in required(read(lock)))
    except metadata.PackageNotFoundError:
        return False
    if good and os.path.realpath(sys.prefix) == os.path.realpath(VENV):
        write_stamp(lock)
    return good


def required(text: str) -> List[Tuple[str, str]]:
    """Names and versions in a lock, without those that a marker may exclude here."""
    return re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)[ \t]*\\?$", text, re.MULTILINE)


def has_stamp(prefix: str, lock: str) -> bool:
    """What serves development serves everything, so that stamp is good for the runtime lock too."""
    stamp = read(os.path.join(prefix, STAMP)).strip()
    dev = os.path.join(os.path.dirname(lock), "requirements-dev.lock")
    return bool(stamp) and stamp in (digest(lock), digest(dev))


def write_stamp(lock: str) -> None:
    with open(os.path.join(VENV, STAMP), "w") as file:
        file.write(digest(lock))


def digest(path: str) -> str:
    return hashlib.sha256(read(path).encode()).hexdigest()


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


# --- Build it ---


def build_venv(python: str, lock: str) -> None:
    os.umask(0o022)  # where we are root, PostgreSQL runs as somebody else and has to read its programs
    if not (probe(python) and (succeeds([python, "-m", "pip", "--version"]) or add_pip(python))):
        make_venv()
    if os.path.exists(os.path.join(VENV, STAMP)):
        os.remove(os.path.join(VENV, STAMP))
    count = len(required(read(lock)))
    say("Installing {} packages into .venv, once; this takes up to a minute ...".format(count))
    options = "--quiet --no-input --disable-pip-version-check --require-hashes --no-deps --only-binary :all:"
    run(
        [python, "-m", "pip", "install", *options.split(), "-r", lock],
        "The packages could not be installed; the lines above say why. Start again when that is solved.",
    )
    write_stamp(lock)


def make_venv() -> None:
    base = find_python() or download_python()
    say("Making .venv with {} ...".format(base))
    shutil.rmtree(VENV, ignore_errors=True)
    run([base, "-m", "venv", VENV], "The folder .venv could not be made.")


def add_pip(python: str) -> bool:
    """A venv made by uv has no pip."""
    return succeeds([python, "-m", "ensurepip", "--upgrade", "--default-pip"])


def find_python() -> Optional[str]:
    """Return the first fit Python. Running it is the test: a pyenv shim exists and may still fail."""
    for candidate in [sys.executable, *candidates()]:
        found = probe(candidate)
        if found:
            return found
    return None


def candidates() -> List[str]:
    """Files that may be a Python: those on the path, then the folders where installers put them."""
    home = os.path.expanduser("~")
    pyenv = os.environ.get("PYENV_ROOT") or os.path.join(home, ".pyenv")
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    folders += ["/usr/local/bin", "/usr/bin", "/opt/homebrew/bin", os.path.join(home, ".local", "bin")]
    for versions in (os.path.join(pyenv, "versions"), os.path.join(data, "uv", "python")):
        folders += [os.path.join(versions, name, "bin") for name in sorted(list_folder(versions))[::-1]]
    files = [os.path.join(folder, name) for name in NAMES for folder in folders if folder]
    return [file for file in dict.fromkeys(files) if os.access(file, os.X_OK)]


def list_folder(path: str) -> List[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def probe(python: str) -> Optional[str]:
    """Return the path of the Python behind this command when it is fit to carry the packages."""
    try:
        done = subprocess.run(
            [python, "-c", PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=clean_environment(),
            universal_newlines=True,
            timeout=30,
        )
        first, path = done.stdout.splitlines()[:2]
        major, minor, implementation, free_threaded = first.split()
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    fit = is_fit((int(major), int(minor))) and implementation == "cpython" and free_threaded == "0"
    return path if fit else None


def download_python() -> str:
    """Let uv fetch a Python, where the network allows it."""
    say("No Python 3.12 to 3.14 here; trying to download one with uv ...")
    folder = tempfile.mkdtemp(prefix="elowen-uv-")
    try:
        run([sys.executable, "-m", "venv", folder], no_python())
        python = os.path.join(folder, "bin", "python")
        run([python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "uv"], no_python())
        run([python, "-m", "uv", "python", "install", "3.13"], no_python())
        found = find_python()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if found is None:
        raise BootstrapError(no_python())
    return found


def no_python() -> str:
    return (
        "Elowen needs Python 3.12, 3.13 or 3.14 with venv (this is {}.{}), found none and could not download "
        "one. Install it (Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python@3.13) "
        "and start again.".format(*sys.version_info[:2])
    )


# --- Small things ---


@contextmanager
def folder_lock(folder: str) -> Iterator[None]:
    """Hold the folder's lock; the kernel drops it when this process ends."""
    try:
        import fcntl
    except ImportError:
        raise BootstrapError("Elowen does not run on Windows itself; use WSL2.") from None
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("Another start is preparing the packages; waiting for it ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def clean_environment() -> Dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in MISLEADING}
    environment["PIP_USER"] = "0"  # some people set it for themselves, and then no venv can be filled
    return environment


def run(command: List[str], otherwise: str) -> None:
    """Run in silence; when it fails show what it said last, and raise."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=clean_environment(),
        universal_newlines=True,
        errors="replace",
    )
    if done.returncode:
        say("\n".join(done.stdout.splitlines()[-12:]))
        raise BootstrapError(otherwise)


def succeeds(command: List[str]) -> bool:
    try:
        quiet = subprocess.DEVNULL
        return not subprocess.run(command, stdout=quiet, stderr=quiet, env=clean_environment()).returncode
    except OSError:
        return False


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
