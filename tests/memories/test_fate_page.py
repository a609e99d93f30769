"""P3: what the page of a memory says of its fate, and what can be done about it there."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.test import Client

from memories.actions.usage import mark_used
from memories.config import RETENTION, load_document, save_section
from memories.models import Account, Memory, MemoryEvent
from tests.factories import MemoryFactory

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _noon() -> object:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def page(client: Client, ada: Account) -> Client:
    client.force_login(ada)
    return client


@pytest.fixture
def memory(ada: Account) -> Memory:
    made: Memory = MemoryFactory.create(owner=ada, created_at=NOW - 21 * DAY)
    return made


def text(client: Client, memory: Memory, query: str = "") -> str:
    answer = client.get(f"/memories/{memory.pk}{query}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def told(client: Client, memory: Memory, what: str, **data: str) -> str:
    answer = client.post(f"/memories/{memory.pk}/{what}", data, follow=True)
    assert answer.redirect_chain == [(f"/memories/{memory.pk}", 302)]
    (message,) = answer.context["messages"]
    return str(message)


def test_the_chart_is_drawn_and_told_in_words_and_as_a_table(
    page: Client, ada: Account, memory: Memory
) -> None:
    mark_used(reader=ada, ids=[memory.pk], now=NOW - 7 * DAY)

    content = text(page, memory)

    assert "<svg" in content
    assert "Vitality 46 of 100 now, recalled 1 time in 30 days, may go on 17 June 2026." in content
    assert "<table" in content
    assert page.get(f"/memories/{memory.pk}").context["chart"].dots


@pytest.mark.parametrize(
    ("query", "days"), [("", 30), ("?days=90", 90), ("?days=365", 365), ("?days=8", 30), ("?days=x", 30)]
)
def test_the_window_is_one_of_a_few(page: Client, memory: Memory, query: str, days: int) -> None:
    assert f"in {days} days" in text(page, memory, query)


def test_keeping_makes_it_fade_anew(page: Client, memory: Memory) -> None:
    assert told(page, memory, "keep") == "Kept. It fades anew from this moment on."

    assert "Vitality 50 of 100 now" in text(page, memory)
    assert MemoryEvent.objects.get().reason == "Kept: counts as contact."


def test_restoring_keeps_unless_the_box_is_cleared(page: Client, memory: Memory) -> None:
    Memory.objects.update(status=Memory.Status.DELETED)
    offered = text(page, memory)

    plainly = told(page, memory, "restore")
    memory.refresh_from_db()
    last_used_at = memory.last_used_at
    Memory.objects.update(status=Memory.Status.DELETED)
    kept = told(page, memory, "restore", keep="1")
    memory.refresh_from_db()

    assert 'name="keep" value="1" checked' in offered
    assert plainly == "Restored. The next sweep may take it again."
    assert last_used_at is None
    assert kept == "Restored and kept."
    assert (memory.status, memory.last_used_at) == ("active", NOW)


@pytest.mark.parametrize("what", ["keep", "restore"])
def test_strangers_and_links_change_nothing(client: Client, memory: Memory, cleo: Account, what: str) -> None:
    address = f"/memories/{memory.pk}/{what}"
    assert client.post(address).headers["Location"] == f"/sign-in?next={address}"
    client.force_login(cleo)

    assert client.post(address).status_code == 404
    assert client.get(address).status_code == 405
    assert not MemoryEvent.objects.exists()


def test_a_memory_in_the_trash_cannot_be_kept_but_restored(page: Client, memory: Memory) -> None:
    Memory.objects.update(status=Memory.Status.DELETED)

    assert page.post(f"/memories/{memory.pk}/keep").status_code == 404
    assert "not to go by itself" in text(page, memory)


def test_without_usable_settings_the_page_still_opens(page: Client, ada: Account, memory: Memory) -> None:
    broken = {"halfLifeByImportance": {"5": 0}}
    save_section(name=RETENTION, document=broken, revision=load_document()[1], by=ada)

    content = text(page, memory)

    assert "the retention settings have to be saved again" in content
    assert '<svg viewBox="0 0 640' not in content


def test_a_memory_of_this_moment_and_one_without_a_past_are_drawn(page: Client, ada: Account) -> None:
    fresh = MemoryFactory.create(owner=ada, created_at=NOW)
    lost = MemoryFactory.create(owner=ada, created_at=NOW - 300 * DAY, use_count=3)

    assert "Vitality 50 of 100 now" in text(page, fresh)
    assert "recalled 0 times" in text(page, lost)
