from typing import Any

from django.core.management.base import BaseCommand


class StandAloneCommand(BaseCommand):
    """A command that runs before, and without, the settings and the apps."""

    requires_system_checks = []

    def run_from_argv(self, argv: list[str]) -> None:
        options: dict[str, Any] = vars(self.create_parser(argv[0], argv[1]).parse_args(argv[2:]))
        self.handle(**options)
