"""The pages and the administration in a real browser: no script errors, no accessibility finding."""

import shutil
from collections.abc import Iterator
from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connections
from django.utils import timezone
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from pytest_django.live_server_helper import LiveServer

from memories.actions.editing import add_memory, change_memory, delete_memory
from memories.models import Account, Memory
from tests.factories import PASSWORD, AccountFactory, MemoryFactory

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-first-run",
]
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1200, "height": 900}
LOOKS = [("light", DESK), ("dark", DESK), ("light", PHONE), ("dark", PHONE)]

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed"),
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    # Playwright runs a loop in this thread, in which Django would refuse its database.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield chromium
        chromium.close()
        # While the loop runs, Django keeps connections of its own, which nobody else would close.
        connections.close_all()


@pytest.fixture
def said(browser: Browser) -> list[str]:
    """What the browser's console says during the test."""
    return []


@pytest.fixture
def page(browser: Browser, live_server: LiveServer, said: list[str]) -> Page:
    page = browser.new_context(base_url=live_server.url, viewport=DESK).new_page()  # type: ignore[arg-type]
    page.set_default_timeout(15_000)
    page.on("console", lambda message: said.append(_line(message)))
    page.on("pageerror", lambda error: said.append(str(error)))
    return page


@pytest.fixture
def ada(transactional_db: None) -> Account:
    account: Account = AccountFactory.create(username="ada", is_staff=True, is_superuser=True)
    return account


@pytest.fixture
def memories(ada: Account) -> list[Memory]:
    """Ada's memories: one with a history, one that fades, one in the trash."""
    tea = add_memory(by=ada, body="Ada drinks tea at four o'clock, without sugar.", importance=7)
    change_memory(
        memory_id=tea.pk, by=ada, changes={"body": "Ada drinks tea at five o'clock, without sugar."}
    )
    old = timezone.now() - timedelta(days=20)
    fading = MemoryFactory.create(
        owner=ada, body="The printer is out of paper. " * 9, importance=2, created_at=old
    )
    gone = add_memory(by=ada, body="The old office is in Bath.")
    delete_memory(memory_id=gone.pk, by=ada)
    return [tea, fading, gone]


def _line(message: ConsoleMessage) -> str:
    return f"{message.type}: {message.text}"


def sign_in(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Memories").wait_for()


def findings(page: Page) -> list[str]:
    violations = Axe().run(page).response["violations"]
    return [
        f"{v['id']}: {v['nodes'][0]['html'][:120]}"
        for v in violations
        if v["impact"] in ("serious", "critical")
    ]


def is_too_wide(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_pages_can_be_used_by_everybody(
    page: Page, said: list[str], memories: list[Memory], scheme: str, size: dict[str, int]
) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size(size)  # type: ignore[arg-type]
    page.goto("/sign-in")
    found = findings(page)
    sign_in(page)

    for address in ("/memories", "/memories?status=archived", f"/memories/{memories[0].pk}"):
        page.goto(address)
        found += findings(page)
        assert not is_too_wide(page), address

    assert found == []
    assert said == []


def test_a_member_reads_the_list_and_one_memory(page: Page, said: list[str], memories: list[Memory]) -> None:
    sign_in(page)

    page.get_by_role("link", name="Ada drinks tea").click()

    assert page.get_by_role("heading", name=f"Memory {memories[0].pk}").is_visible()
    assert page.locator("del").inner_text() == "four"
    assert page.locator("ins").inner_text() == "five"
    assert said == []


def test_the_keyboard_reaches_the_content_first(page: Page, memories: list[Memory]) -> None:
    sign_in(page)

    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_an_operator_restores_from_the_list(page: Page, said: list[str], memories: list[Memory]) -> None:
    sign_in(page)
    page.get_by_role("link", name="Admin").click()
    found = findings(page)

    page.goto("/admin/memories/memory/?status__exact=deleted")
    found += findings(page)
    page.locator("#action-toggle").check()
    page.locator("select[name=action]").select_option("restore")
    page.get_by_label("Reason").fill("needed after all")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("Restored: 1.").wait_for()

    page.goto(f"/admin/memories/memory/{memories[2].pk}/change/")
    found += findings(page)
    memories[2].refresh_from_db()
    assert memories[2].status == Memory.Status.ACTIVE
    assert found == []
    assert said == []
