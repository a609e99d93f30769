"""A throw-away database with Elowen's tables, for one benchmark."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from elowen import postgres


@contextmanager
def own_database() -> Iterator[None]:
    """Start PostgreSQL, set Django up on it and migrate; everything is gone afterwards."""
    cluster = postgres.throw_away_cluster()
    with tempfile.TemporaryDirectory(prefix="elowen-bench-") as folder:
        try:
            cluster.start()
            os.environ |= {
                "DATABASE_URL": cluster.url(),
                "ELOWEN_SECRET_KEY": "only for a benchmark, never for a service",
                "ELOWEN_DATA": folder,
                "ELOWEN_PLAIN_STATIC": "1",
                "ELOWEN_LOG_LEVEL": "ERROR",
                "DJANGO_SETTINGS_MODULE": "elowen.settings",
            }
            _set_up()
            yield
        finally:
            _close()
            postgres.remove_cluster(cluster)


def _set_up() -> None:
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def _close() -> None:
    from django.apps import apps
    from django.db import connections

    if apps.ready:
        connections.close_all()
