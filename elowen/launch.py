"""Gives each command its environment, before Django reads the settings: a secret key and a database."""

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from elowen.lib.env import BadEnvironment, env_str
from elowen.postgres import own_cluster, published_address
from elowen.postgres_host import PostgresError
from elowen.processes import poll, write_private
from elowen.supervisor import UpError

# They bring what they need, and have to work when the rest of the project cannot even be imported.
STAND_ALONE = {"up", "test", "check_code"}
WITHOUT_DATABASE = {"help", "version", "--help", "-h", "--version", "makemessages", "compilemessages"}


def data_folder() -> Path:
    return Path(env_str("ELOWEN_DATA") or "var").resolve()


def run(arguments: list[str]) -> None:
    command = arguments[1] if len(arguments) > 1 else "help"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "elowen.settings")
    try:
        if command in STAND_ALONE:
            import_module(f"elowen.management.commands.{command}").Command().run_from_argv(arguments)
        else:
            with environment_of(command):
                from django.core.management import execute_from_command_line

                execute_from_command_line(arguments)
    except (BadEnvironment, PostgresError, UpError) as error:
        sys.exit(str(error))


@contextmanager
def environment_of(command: str) -> Iterator[None]:
    if command in WITHOUT_DATABASE:
        os.environ.setdefault("ELOWEN_SECRET_KEY", secrets.token_urlsafe(48))
        os.environ.setdefault("DATABASE_URL", "postgresql:///unused")
        yield
        return
    os.environ.pop(
        "ELOWEN_DB_POOL", None
    )  # for the web alone: `qcluster` forks and would share the connections
    give_secret_key(data_folder())
    if env_str("DATABASE_URL"):
        yield
        return
    with database(data_folder()) as url:
        os.environ["DATABASE_URL"] = url
        yield


def give_secret_key(folder: Path) -> None:
    """Point the settings at the key in the data folder, made on the first start, unless they have another."""
    if env_str("ELOWEN_SECRET_KEY") or env_str("ELOWEN_SECRET_KEY_FILE"):
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "secret-key"
    if not path.exists():
        write_private(path, secrets.token_urlsafe(48))
    os.environ["ELOWEN_SECRET_KEY_FILE"] = str(path)


@contextmanager
def database(folder: Path) -> Iterator[str]:
    """Yield the address of the data folder's server: the running one, else one for as long as this lasts."""
    with own_cluster(folder) as cluster:
        if cluster is None and not poll(published_address(folder).exists, seconds=60):
            raise PostgresError("The database has been starting for a minute already; try again later.")
        yield cluster.url() if cluster else published_address(folder).read_text()
