"""What has to be true before anything serves. Each step may be repeated, and by several starts at once."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.db import connection, transaction

from elowen.lib.env import env_secret, env_str
from elowen.lib.errors import Invalid

LOCK = 0x656C6F77656E  # any number, the same for everyone
GOOD_KEY = "elw_$(openssl rand -hex 4)_$(openssl rand -hex 24)"


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Wait until no other start prepares this database.

    The lock lives in a transaction on a connection of its own: it survives what the steps do to theirs,
    and holds behind PgBouncer, which hands session locks to strangers.
    """
    own = connection.copy()
    try:
        own.set_autocommit(False)
        with own.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        yield
    finally:
        own.close()


def collect_static() -> None:
    """Collect and compress, which takes seconds, only when a source has changed since the last time."""
    if settings.WHITENOISE_USE_FINDERS:  # served from where they are
        return
    stamp, digest = Path(settings.STATIC_ROOT) / "elowen-sources", static_digest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    stamp.unlink(missing_ok=True)
    call_command("collectstatic", interactive=False, verbosity=0)
    stamp.write_text(digest)


def static_digest() -> str:
    lines = [settings.VERSION]
    for finder in get_finders():
        for name, storage in finder.list([]):
            facts = Path(storage.path(name)).stat()
            lines.append(f"{name} {facts.st_size} {facts.st_mtime_ns}")
    return sha256("\n".join(sorted(lines)).encode()).hexdigest()


@transaction.atomic
def first_administrator() -> dict[str, str]:
    """Make the administrator and its key where there is none; return its secrets, or nothing.

    Raises:
        Invalid: ELOWEN_BOOTSTRAP_KEY or ELOWEN_ADMIN will not do.
    """
    from memories.actions.accounts import create_administrator
    from memories.actions.keys import issue_key
    from memories.models import Account

    if Account.objects.filter(is_superuser=True).exists():
        return {}
    password, given = secrets.token_urlsafe(12), env_secret("ELOWEN_BOOTSTRAP_KEY")
    account = create_administrator(username=env_str("ELOWEN_ADMIN") or "admin", password=password)
    try:
        issued = issue_key(account=account, name="first key", secret=given)
    except Invalid as error:
        raise Invalid(f"ELOWEN_BOOTSTRAP_KEY is refused. {error} A good one: {GOOD_KEY}") from error
    found = {"username": account.username, "password": password}
    return found if given else found | {"key": issued.secret}
