"""The pages and the administration in a real browser: no script errors, no accessibility finding."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import LazySettings
from django.db import connections
from django.utils import timezone
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from pytest_django.live_server_helper import LiveServer

from elowen.help import articles
from embeddings.actions.connecting import add_connection, change_connection
from embeddings.models import Connection
from memories.actions.editing import add_memory, change_memory, delete_memory
from memories.config import RETENTION as RETENTION_SECTION
from memories.config import load_document, retention_policy, save
from memories.models import Account, Memory
from memories.policy import DEFAULT_POLICY
from tests.factories import PASSWORD, AccountFactory, MemoryFactory
from tests.fakes.server import FakeServer, Received, Reply, json_reply

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

    ones = [f"/memories/{memory.pk}?days=90" for memory in memories]
    helps = ["/help", "/help?q=leaving soon", "/help?q=qwertz", *(f"/help/{slug}" for slug in articles())]
    for address in ("/memories", "/memories?status=archived", *ones, "/forecast", "/forecast?days=7", *helps):
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


def test_a_member_sees_what_leaves_and_keeps_it(page: Page, said: list[str], memories: list[Memory]) -> None:
    sign_in(page)
    fading = memories[1]

    page.get_by_role("link", name="Leaving soon").click()
    page.get_by_label(f"Keep memory {fading.pk}").check()
    page.get_by_role("button", name="Keep the ticked ones").click()
    page.get_by_text("Kept: 1.").wait_for()
    page.goto(f"/memories/{fading.pk}")

    assert page.get_by_role("img", name="Vitality over time").is_visible()
    assert page.locator("figcaption").inner_text().startswith("Vitality 50 of 100 now")
    page.get_by_text("The same as a table").click()
    assert page.get_by_role("table", name="Vitality by date").is_visible()
    fading.refresh_from_db()
    assert fading.last_used_at is not None
    assert said == []


def test_a_member_looks_something_up(page: Page, said: list[str], ada: Account) -> None:
    sign_in(page)
    page.get_by_role("link", name="Help").click()

    page.get_by_role("searchbox").fill("how is vitality computed")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Vitality").first.click()

    assert "#vitality" in page.url
    assert page.get_by_role("heading", name="Vitality", exact=True).is_visible()
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


RETENTION = "/settings/retention"


def words_upon_each_other(page: Page) -> list[str]:
    """The pairs of words in the drawing that is shown which lie upon each other on the screen."""
    found: list[str] = page.evaluate(
        """() => {
            const shown = [...document.querySelectorAll(".chart text")].filter(e => e.getClientRects().length)
            const boxes = shown.map(e => [e.textContent, e.getBoundingClientRect()])
            const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
                && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4
            return boxes.flatMap(([name, a], i) => boxes.slice(i + 1).filter(([, b]) => meet(a, b))
                .map(([other]) => `${name} and ${other}`))
        }"""
    )
    return found


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_the_retention_page_can_be_used_by_everybody(
    page: Page, said: list[str], ada: Account, scheme: str, size: dict[str, int]
) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size(size)  # type: ignore[arg-type]
    sign_in(page)

    page.goto(RETENTION)
    found, meeting = findings(page), words_upon_each_other(page)
    drawings = page.get_by_role("img", name="How memories fade").count()
    too_wide = is_too_wide(page)
    page.get_by_label("Level 5").fill("none")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Nothing was saved.").wait_for()

    assert found + findings(page) == []
    assert meeting == []
    assert drawings == 1
    assert not too_wide
    assert not is_too_wide(page)
    assert said == []


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_a_conflict_can_be_read_by_everybody_and_settled(
    page: Page, ada: Account, scheme: str, size: dict[str, int]
) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size(size)  # type: ignore[arg-type]
    sign_in(page)
    page.goto(RETENTION)
    save(by=ada, changes={RETENTION_SECTION: {"vitalityFloor": 20}}, revision=load_document()[1])

    page.get_by_label("Level 5").fill("42")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Somebody changed the settings").wait_for()
    found, too_wide, stored = findings(page), is_too_wide(page), retention_policy()
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.").wait_for()

    assert found == []
    assert not too_wide
    assert (stored.floor, stored.half_life(5)) == (20, 21)
    assert (retention_policy().floor, retention_policy().half_life(5)) == (10, 42)


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_the_embedding_settings_can_be_used_by_everybody(
    page: Page, said: list[str], ada: Account, scheme: str, size: dict[str, int]
) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size(size)  # type: ignore[arg-type]
    made = add_connection(by=ada, provider="openai", key="sk-1", label="Work")
    change_connection(connection_id=made.pk, by=ada, changes={"paused": True})
    sign_in(page)

    found = list[str]()
    for path in ("", "/connections/new", f"/connections/{made.pk}"):
        page.goto(f"/settings/embeddings{path}")
        found += findings(page)
        assert not is_too_wide(page), path
    page.goto("/settings/embeddings")
    hidden = page.get_by_label("Address").is_visible()
    page.get_by_label("Where it runs").select_option("endpoint")
    page.get_by_label("Address").fill("ftp://host")
    page.get_by_label("Its name").fill("m")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Nothing was saved.").wait_for()

    assert found + findings(page) == []
    assert hidden is False
    assert not is_too_wide(page)
    assert [line for line in said if "400" not in line] == []  # the refusal itself


def test_an_administrator_signs_in_at_openrouter(
    page: Page, said: list[str], ada: Account, settings: LazySettings
) -> None:
    def openrouter(request: Received) -> Reply:
        if request.path.startswith("/auth?"):
            back = parse_qs(urlsplit(request.path).query)["callback_url"][0]
            return Reply(302, headers={"Location": f"{back}?code=abc"})
        return json_reply({"key": "sk-or-v1-given"})

    with FakeServer(openrouter) as server:
        settings.OPENROUTER_URL = server.base
        sign_in(page)
        page.goto("/settings/embeddings")
        page.get_by_role("button", name="Sign in at OpenRouter").click()
        page.get_by_text("OpenRouter is connected.").wait_for()

    assert Connection.objects.get().key == "sk-or-v1-given"
    assert said == []


def test_the_curves_follow_the_typing_and_saving_keeps_it(page: Page, said: list[str], ada: Account) -> None:
    sign_in(page)
    page.get_by_role("link", name="Retention").click()
    row = page.get_by_role("row", name="Ordinary fact")
    page.evaluate("window.loadedOnce = true")
    curve = page.locator(".chart svg:visible polyline.curve--5")
    before = curve.get_attribute("points")

    page.get_by_label("Level 5").fill("42")
    row.get_by_text("98 days").wait_for()  # 42 days · log2(50 / 10) = 97.5
    after = curve.get_attribute("points")
    page.get_by_label("Level 5").fill("4x")
    page.get_by_text("Not a value yet: Level 5.").wait_for()
    kept = row.get_by_text("98 days").count()
    page.get_by_label("Let faded memories go").uncheck()
    row.get_by_text("never").wait_for()
    page.get_by_label("Let faded memories go").check()
    row.get_by_text("98 days").wait_for()

    assert before != after
    assert kept == 1
    assert page.evaluate("window.loadedOnce")
    assert retention_policy() == DEFAULT_POLICY

    page.get_by_label("Level 5").fill("42")
    page.keyboard.press("Enter")
    page.get_by_text("Saved.").wait_for()

    assert page.get_by_label("Level 5").input_value() == "42"
    assert retention_policy().half_life(5) == 42
    assert said == []


def test_without_scripts_a_preview_draws_and_saving_saves(
    browser: Browser, live_server: LiveServer, ada: Account
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    page.set_default_timeout(15_000)
    sign_in(page)
    page.goto(RETENTION)

    page.get_by_label("Level 5").fill("42")
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("not saved yet").wait_for()
    previewed, stored = page.get_by_role("row", name="Ordinary fact").inner_text(), retention_policy()
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.").wait_for()

    assert "98 days" in previewed
    assert stored == DEFAULT_POLICY
    assert retention_policy().half_life(5) == 42
