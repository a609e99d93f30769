"""Gives pytest a throw-away PostgreSQL and the environment of a test, before the settings are read."""

import os
import tempfile
from collections.abc import Generator

import pytest

from elowen import postgres

CI = os.environ.get("CI", "").lower() == "true"


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """Before pytest-django reads the settings; workers of xdist inherit all of it and start nothing."""
    os.environ["ELOWEN_SECRET_KEY"] = "only for tests, never for a service"
    os.environ["ELOWEN_PLAIN_STATIC"] = "1"
    for name in ("ELOWEN_SECRET_KEY_FILE", "ELOWEN_QUEUE_INLINE"):
        os.environ.pop(name, None)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="elowen-test-data-", ignore_cleanup_errors=True)
        early_config.add_cleanup(folder.cleanup)
        os.environ["ELOWEN_DATA"] = folder.name
    if not os.environ.get("DATABASE_URL"):
        cluster = postgres.throw_away_cluster()
        early_config.add_cleanup(lambda: postgres.remove_cluster(cluster))
        cluster.start()
        os.environ["DATABASE_URL"] = cluster.url()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A laptop may lack a browser, CI may not: there, what was skipped has failed."""
    report = yield
    if CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report
