import sys
from typing import Any

from django.core.management.base import BaseCommand

from elowen.doctor import examine


class Command(BaseCommand):
    help = "Look at everything this installation needs, and say what to do where something is wrong."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        findings = examine()
        for finding in findings:
            style = self.style.SUCCESS if finding.is_good else self.style.ERROR
            self.stdout.write(
                f"{style('ok     ' if finding.is_good else 'TROUBLE')}  {finding.name}: {finding.text}"
            )
        if not all(finding.is_good for finding in findings):
            sys.exit(1)
