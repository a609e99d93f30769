import sys
from typing import Any

from elowen.code_checks import failures
from elowen.management.standalone import StandAloneCommand


class Command(StandAloneCommand):
    help = "Check style, types, import directions, migrations and settings; everything runs, then it tells."

    def handle(self, *args: Any, **options: Any) -> None:
        failed = failures()
        if failed:
            sys.exit(f"Failed: {', '.join(failed)}")
