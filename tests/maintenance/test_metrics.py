from datetime import timedelta

import pytest
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from rest_framework.test import APIClient

from maintenance.models import SweepRun
from maintenance.retention import sweep
from memories.models import Account
from tests.conftest import Api
from tests.factories import MemoryFactory
from tests.problems import problem

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def metrics(client: APIClient) -> dict[tuple[str, str], float]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    return {
        (sample.name, "".join(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_the_last_sweep_is_told_to_an_administrators_reading_key(api: Api, ada: Account) -> None:
    Account.objects.update(is_staff=True)
    for _ in range(7):
        MemoryFactory.create(owner=ada, importance=3, created_at=NOW - timedelta(days=21))
    sweep(now=NOW)
    sweep(now=NOW, dry_run=True)
    SweepRun.objects.create(started_at=NOW, policy={}, state=SweepRun.State.FAILED)

    found = metrics(api(ada, scopes=("read",)))

    assert found["elowen_sweep_started_seconds", ""] == pytest.approx(NOW.timestamp())
    assert found["elowen_sweep_memories", "scanned"] == 7
    assert found["elowen_sweep_memories", "evicted"] == 5
    assert found["elowen_sweep_memories", "limited"] == 2
    assert (found["elowen_sweeps", "done"], found["elowen_sweeps", "failed"]) == (1, 1)


def test_before_the_first_sweep_there_is_none_to_tell(api: Api, ada: Account) -> None:
    Account.objects.update(is_staff=True)

    found = metrics(api(ada))

    assert found["elowen_sweeps", "done"] == 0
    assert not any(name.startswith("elowen_sweep_") for name, _ in found)


def test_nobody_else_reads_the_metrics(api: Api, ada: Account) -> None:
    problem(api(ada).get("/metrics"), 403)
    problem(APIClient().get("/metrics"), 401)
