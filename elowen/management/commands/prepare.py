import json
from typing import Any

from django.core.management import call_command, get_commands
from django.core.management.base import BaseCommand, CommandError, CommandParser

from elowen import preparation
from elowen.lib.errors import ElowenError


class Command(BaseCommand):
    help = "Migrate, collect static files, set the schedules, make the first administrator. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="tell the first administrator as JSON")
        parser.add_argument("--no-static", action="store_true", help="leave the static files alone")

    def handle(self, *args: Any, **options: Any) -> None:
        with preparation.one_at_a_time():
            call_command("migrate", interactive=False, verbosity=0, skip_checks=False)
            if not options["no_static"]:
                preparation.collect_static()
            if "sync_schedules" in get_commands():
                call_command("sync_schedules", stdout=self.stderr)
            self.make_administrator(as_json=options["json"])

    def make_administrator(self, *, as_json: bool) -> None:
        """Last, and told at once: what is printed here cannot be had again."""
        try:
            first = preparation.first_administrator()
        except ElowenError as error:
            raise CommandError(f"The first administrator cannot be made: {error}") from error
        if first and as_json:
            self.stdout.write(json.dumps(first))
        elif first:
            self.stdout.write("\n".join(f"{name}: {value}" for name, value in first.items()))
