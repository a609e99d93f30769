from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import OrmQ, Schedule

from maintenance.schedules import SCHEDULES, sync_schedules
from maintenance.tasks import expire
from memories.models import Account, IdempotentReply, MemoryUse
from tests.factories import MemoryFactory

pytestmark = pytest.mark.django_db


def test_syncing_twice_leaves_one_schedule_per_job() -> None:
    sync_schedules()
    sync_schedules()

    assert sorted(Schedule.objects.values_list("name", flat=True)) == sorted(SCHEDULES)


def test_syncing_corrects_changed_doubled_and_foreign_schedules() -> None:
    sync_schedules()
    Schedule.objects.filter(name="index pending memories").update(func="os.getcwd", minutes=99)
    Schedule.objects.create(name="find unindexed memories", func="os.getcwd")
    Schedule.objects.create(name="left over", func="os.getcwd")

    sync_schedules()

    found = {row.name: (row.func, row.minutes) for row in Schedule.objects.all()}
    assert Schedule.objects.count() == len(SCHEDULES)
    assert found == {name: (job.task, job.minutes) for name, job in SCHEDULES.items()}


def test_every_scheduled_task_exists() -> None:
    assert all(callable(import_string(job.task)) for job in SCHEDULES.values())


def test_the_command_also_queues_a_first_round() -> None:
    call_command("sync_schedules")

    assert sorted(task.func() for task in OrmQ.objects.all()) == [
        "embeddings.tasks.drain_queue",
        "embeddings.tasks.reconcile",
        "maintenance.tasks.sweep",
    ]


def test_expire_deletes_what_is_past_its_time_and_nothing_else(ada: Account) -> None:
    memory, now = MemoryFactory.create(owner=ada), timezone.now()
    for age in (timedelta(days=90, minutes=1), timedelta(days=89)):
        MemoryUse.objects.create(memory=memory, account=ada, used_at=now - age)
    for key, age in (("old", timedelta(hours=25)), ("new", timedelta(hours=23))):
        IdempotentReply.objects.create(account=ada, key=key, request_hash=b"", created_at=now - age)

    expire()

    assert MemoryUse.objects.count() == 1
    assert list(IdempotentReply.objects.values_list("key", flat=True)) == ["new"]
