from django.core.management.base import BaseCommand
from django_q.tasks import async_task

from maintenance.actions import ask_for_sweep
from maintenance.schedules import sync_schedules


class Command(BaseCommand):
    help = "Make the periodic jobs what the code says, and start the first round now."

    def handle(self, *args: object, **options: object) -> None:
        sync_schedules()
        # The scheduler first looks after half a minute; nobody should wait for that.
        async_task("embeddings.tasks.reconcile")
        async_task("embeddings.tasks.drain_queue")
        ask_for_sweep()
        self.stdout.write("Schedules are in place.")
