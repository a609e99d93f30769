from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from maintenance import retention


class Command(BaseCommand):
    help = "Let the memories go that have faded, here and now, and say how many. They can be restored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="count what would go, and change nothing")
        parser.add_argument("--accounts", action="store_true", help="list the counts of each account as well")

    def handle(self, *args: object, **options: Any) -> None:
        run = retention.sweep(now=timezone.now(), dry_run=options["dry_run"], asked_by="the command line")
        if run is None:
            raise CommandError("A sweep is under way; the administration shows how far it is.")
        self.stdout.write(f"Sweep {retention.summary(run)}")
        if options["accounts"]:
            for row in run.accounts.order_by("account_id").iterator():
                account = "nobody" if row.account_id is None else f"account {row.account_id}"
                self.stdout.write(
                    f"  {account}: eligible {row.eligible}, evicted {row.evicted}, limited {row.limited}, "
                    f"spared {row.spared}, failed {row.failed}"
                )
