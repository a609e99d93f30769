"""Over REST: a memory's vitality in time, and keeping it."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from pytest_django import DjangoAssertNumQueries

from memories.actions.editing import archive_memory, delete_memory
from memories.actions.usage import mark_used
from memories.config import RETENTION, load_document, save_section
from memories.history import MAX_USES, history_of
from memories.models import Account, Memory, MemoryEvent, MemoryUse
from tests.conftest import Api
from tests.factories import MemoryFactory
from tests.problems import problem

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _noon() -> object:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def memory(ada: Account) -> Memory:
    made: Memory = MemoryFactory.create(owner=ada, created_at=NOW - 21 * DAY)
    return made


def test_the_history_is_told_in_full(api: Api, ada: Account, memory: Memory) -> None:
    mark_used(reader=ada, ids=[memory.pk], now=NOW - 7 * DAY)

    document = api(ada).get(f"/api/memory/{memory.pk}/vitality-history?days=14").json()

    assert set(document) == {"points", "forecast", "recalls", "floor", "evictAt", "historyFrom", "now"}
    assert document["recalls"] == ["2026-04-24T12:00:00Z"]
    assert document["historyFrom"] == "2026-04-10T12:00:00Z"
    assert document["points"][0]["at"] == "2026-04-17T12:00:00Z"
    assert document["points"][-1]["at"] == document["now"] == "2026-05-01T12:00:00Z"
    assert len(document["points"]) == 49
    assert len(document["forecast"]) == 16
    assert document["forecast"][-1]["at"] == document["evictAt"]
    row = api(ada).get(f"/api/memory/{memory.pk}").json()
    assert document["points"][-1]["vitality"] == pytest.approx(row["vitality"], abs=1e-4)
    assert document["evictAt"] == row["evictable_at"]


@pytest.mark.parametrize("query", ["days=0", "days=366", "days=1.5", "days=", "days=1&days=2"])
def test_a_bad_window_is_refused(api: Api, ada: Account, memory: Memory, query: str) -> None:
    problem(api(ada).get(f"/api/memory/{memory.pk}/vitality-history?{query}"), 400, "days")


def test_a_memory_in_the_trash_has_a_history_and_no_date(api: Api, ada: Account, memory: Memory) -> None:
    delete_memory(memory_id=memory.pk, by=ada)

    document = api(ada).get(f"/api/memory/{memory.pk}/vitality-history").json()

    assert document["evictAt"] is None
    assert document["points"][-1]["vitality"] == 25


def test_unusable_settings_are_said(api: Api, ada: Account, memory: Memory) -> None:
    broken = {"halfLifeByImportance": {"5": 0}}
    save_section(name=RETENTION, document=broken, revision=load_document()[1], by=ada)

    answer = problem(api(ada).get(f"/api/memory/{memory.pk}/vitality-history"), 503)

    assert "save them again" in answer["detail"]


def test_the_uses_of_a_very_busy_memory_are_bounded_and_the_rest_still_right(
    ada: Account, memory: Memory, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    times = [NOW - place * timedelta(minutes=5) for place in range(MAX_USES + 10)]
    MemoryUse.objects.bulk_create(MemoryUse(memory=memory, account=ada, used_at=at) for at in times)
    memory.use_count, memory.last_used_at = len(times), NOW
    memory.save()

    with django_assert_num_queries(3):
        found = history_of(memory, days=365)

    assert len(found.recalls) == MAX_USES
    assert found.history_from == times[MAX_USES - 1]
    count = len(times) - MAX_USES + 1
    assert found.points[0].vitality == pytest.approx(100 * (0.5 + 0.5 * count / (count + 5)))


def test_keeping_counts_as_contact_and_leaves_the_row_as_it_was_edited(
    api: Api, ada: Account, memory: Memory
) -> None:
    before = api(ada).get(f"/api/memory/{memory.pk}")

    answer = api(ada).post(f"/api/memory/{memory.pk}/keep", {}, format="json")

    row = answer.json()
    assert (answer.status_code, row["vitality"], row["use_count"]) == (200, 50, 0)
    assert row["last_used_at"] == "2026-05-01T12:00:00Z"
    assert row["updated_at"] == before.json()["updated_at"]
    assert answer["ETag"] == before["ETag"]
    event = MemoryEvent.objects.get()
    assert (event.action, event.actor, event.reason) == (
        "update",
        f"user:{ada.pk}",
        "Kept: counts as contact.",
    )
    assert not MemoryUse.objects.exists()


def test_a_clock_set_back_takes_no_contact_away(api: Api, ada: Account, memory: Memory) -> None:
    Memory.objects.update(last_used_at=NOW + DAY)

    row = api(ada).post(f"/api/memory/{memory.pk}/keep", {}, format="json").json()

    assert row["last_used_at"] == "2026-05-02T12:00:00Z"


def test_an_archived_memory_is_kept_and_one_in_the_trash_has_to_be_restored(
    api: Api, ada: Account, memory: Memory
) -> None:
    archive_memory(memory_id=memory.pk, by=ada)
    archived = api(ada).post(f"/api/memory/{memory.pk}/keep", {}, format="json")
    delete_memory(memory_id=memory.pk, by=ada)

    problem(api(ada).post(f"/api/memory/{memory.pk}/keep", {}, format="json"), 404)

    assert archived.status_code == 200
    restored = api(ada).post(f"/api/memory/{memory.pk}/restore", {"keep": True}, format="json")
    assert restored.json()["vitality"] == 50


@pytest.mark.parametrize("body", [{"days": 3}, [], "x"])
def test_keep_takes_nothing(api: Api, ada: Account, memory: Memory, body: object) -> None:
    problem(api(ada).post(f"/api/memory/{memory.pk}/keep", body, format="json"), 400)

    assert not MemoryEvent.objects.exists()
