import os
import sys

from elowen.management.standalone import StandAloneCommand


class Command(StandAloneCommand):
    help = "Run the tests on a throw-away database; what follows goes to pytest."

    def run_from_argv(self, argv: list[str]) -> None:
        # tests/pg_plugin.py brings the database, for this and for a bare `pytest`.
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *argv[2:]])  # noqa: S606 - our own interpreter
