"""The page on which administrators choose the model, watch the index and connect accounts at providers."""

import base64
import logging
import re
from datetime import timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from embeddings.actions.connecting import add_connection
from embeddings.actions.reindexing import reconcile
from embeddings.actions.storing import change_config
from embeddings.config import EmbeddingConfig, load
from embeddings.models import Connection, ConnectionEvent, Reindex
from embeddings.queue import drain
from memories.config import load_document
from memories.models import Account, ConfigEvent, ConfigSection
from tests.embeddings.conftest import Use
from tests.embeddings.queues import remember
from tests.factories import AccountFactory
from tests.fakes.server import FakeServer, Received, Reply, gives, json_reply, refuses

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "/settings/embeddings"
NEW, OPENROUTER = f"{PAGE}/connections/new", f"{PAGE}/openrouter"
KEY = f"sk-secret-{'y' * 20}"


@pytest.fixture
def root() -> Account:
    account: Account = AccountFactory.create(username="olga", is_staff=True)
    return account


@pytest.fixture
def page(client: Client, root: Account) -> Client:
    """A browser in which an administrator is signed in."""
    client.force_login(root)
    return client


def model(server: FakeServer, **changes: Any) -> dict[str, Any]:
    """What the browser sends when the page is opened now and filled in for this server."""
    form = {"providerId": "endpoint", "model": "m", "baseUrl": server.base, "dimensions": "", "maxRetries": 3}
    return form | {"revision": load_document()[1]} | changes


def connection(**changes: Any) -> dict[str, Any]:
    form = {"provider": "openai", "label": "", "key": KEY, "base_url": "", "place": 0, "for_everyone": "on"}
    return form | {"granted_to": ""} | changes


def text(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.content.decode()))


def connected(root: Account, **fields: Any) -> Connection:
    return add_connection(by=root, **({"provider": "openai", "key": KEY} | fields))


# --- Who may ---


def paths(root: Account) -> list[tuple[str, str]]:
    one = f"{PAGE}/connections/{connected(root).pk}"
    gets = [PAGE, f"{PAGE}/index", NEW, one, f"{OPENROUTER}/x"]
    posts = [PAGE, f"{PAGE}/reindex", NEW, one, f"{one}/act", OPENROUTER]
    return [*(("get", path) for path in gets), *(("post", path) for path in posts)]


def test_strangers_sign_in_and_members_are_refused(client: Client, root: Account, ada: Account) -> None:
    calls = paths(root)
    before = list(Connection.objects.values()), load_document()

    for method, path in calls:
        answer = getattr(client, method)(path)
        assert (answer.status_code, answer["Location"]) == (302, f"/sign-in?next={PAGE}"), path
    client.force_login(ada)
    for method, path in calls:
        assert getattr(client, method)(path, connection(remove="1")).status_code == 403, path

    assert (list(Connection.objects.values()), load_document()) == before
    assert f'href="{PAGE}"' not in client.get("/memories").content.decode()


def test_forms_without_their_token_are_refused(root: Account) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(root)

    answers = [client.post(path, connection()) for method, path in paths(root) if method == "post"]

    assert {answer.status_code for answer in answers} == {403}


# --- The model ---


def test_saving_puts_the_model_in_force_and_leaves_an_event(page: Client, server: FakeServer) -> None:
    answer = page.post(PAGE, model(server, dimensions=8), follow=True)

    assert "Saved." in text(answer)
    assert load() == EmbeddingConfig("endpoint", "m", server.base, 8)
    assert ConfigEvent.objects.get().section == "embedding"
    assert server.requests == []


def test_the_bundled_model_takes_nothing_from_the_fields_it_hides(page: Client, server: FakeServer) -> None:
    page.post(PAGE, model(server))
    page.post(PAGE, model(server, providerId="local", dimensions="x"))

    assert load() == EmbeddingConfig()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"providerId": "elsewhere"}, "Select a valid choice"),
        ({"model": ""}, "Name the model"),
        ({"baseUrl": "ftp://host"}, "http:// or https://"),
        ({"dimensions": 0}, "greater than or equal to 1"),
        ({"dimensions": "x"}, "whole number"),
        ({"maxRetries": 4}, "less than or equal to 3"),
        ({"providerId": "openai", "baseUrl": ""}, "Connect an account first"),
    ],
)
def test_what_cannot_be_used_is_said_beside_the_field_and_not_saved(
    page: Client, server: FakeServer, changes: dict[str, Any], complaint: str
) -> None:
    answer = page.post(PAGE, model(server, **changes))

    assert answer.status_code == 400
    assert complaint in text(answer)
    assert load() == EmbeddingConfig()


def test_somebody_elses_change_is_shown_and_not_overwritten(
    page: Client, root: Account, server: FakeServer
) -> None:
    mine = model(server, model="mine")
    change_config(config=EmbeddingConfig("endpoint", "theirs", server.base), by=root)

    answer = page.post(PAGE, mine)

    assert answer.status_code == 409
    assert "In force now: theirs." in text(answer)
    assert 'value="mine"' in answer.content.decode()
    assert load().model == "theirs"
    page.post(PAGE, model(server, model="mine"))
    assert load().model == "mine"


def test_a_trial_tells_how_it_went_and_saves_nothing(page: Client, server: FakeServer) -> None:
    works = page.post(PAGE, model(server, **{"try": "1"}))
    server.always(refuses(500))
    fails = page.post(PAGE, model(server, **{"try": "1"}))

    assert "It works: 8 dimensions from m" in text(works)
    assert "It does not work." in text(fails)
    assert load() == EmbeddingConfig()


def test_stored_settings_that_cannot_be_used_can_be_replaced_here(
    page: Client, server: FakeServer, use: Use
) -> None:
    use(server)
    ConfigSection.objects.filter(name="embedding").update(document={"providerId": "gone"})

    shown = page.get(PAGE)
    page.post(PAGE, model(server))

    assert "save them again" in text(shown)
    assert load().model == "m"


# --- The index ---


def test_progress_is_drawn_stopped_and_resumed(
    page: Client, root: Account, server: FakeServer, use: Use
) -> None:
    use(server, model="a")
    remember(root, *"abcd")
    drain()
    use(server, model="b")
    reconcile(anew=True)

    running = page.get(f"{PAGE}/index", headers={"HX-Request": "true"})
    stopped = page.post(f"{PAGE}/reindex", {"stop": "1"}, follow=True)
    again = page.post(f"{PAGE}/reindex", {"stop": "1"}, follow=True)
    resumed = page.post(f"{PAGE}/reindex", {}, follow=True)

    assert "0 of 4 memories indexed anew" in text(running)
    assert 'hx-trigger="every 3s"' in running.content.decode()
    assert "0 of 4 memories indexed anew, stopped" in text(stopped)
    assert "No reindexing is running." in text(again)
    assert "Asked for." in text(resumed)
    assert Reindex.objects.get().stopped_by == f"user:{root.pk}"


def test_the_fragment_alone_is_no_page(page: Client) -> None:
    assert page.get(f"{PAGE}/index")["Location"] == PAGE


# --- Connections ---


def test_an_account_is_connected_changed_paused_and_removed(
    page: Client, root: Account, ada: Account
) -> None:
    page.post(NEW, connection(for_everyone="", granted_to="ada"))
    made = Connection.objects.get()
    one = f"{PAGE}/connections/{made.pk}"
    granted = [account.username for account in made.granted_to.all()]
    page.post(one, connection(key="", label="renamed", place=4, granted_to=""))
    page.post(f"{one}/act", {"pause": "1"})
    changed = Connection.objects.get()
    paused = page.get(PAGE)
    page.post(f"{one}/act", {"resume": "1"})
    resumed = Connection.objects.get()
    page.post(f"{one}/act", {"remove": "1"})

    assert (made.label, made.for_everyone, granted) == ("OpenAI", False, ["ada"])
    assert (changed.label, changed.place, changed.paused, changed.for_everyone) == ("renamed", 4, True, True)
    assert (changed.key, resumed.paused) == (KEY, False)
    assert "paused" in text(paused)
    assert not Connection.objects.exists()
    assert list(ConnectionEvent.objects.order_by("pk").values_list("action", flat=True)) == [
        "add", "change", "change", "change", "remove",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"key": ""},
        {"key": "two words"},
        {"provider": "elsewhere"},
        {"provider": "compatible"},  # which has no address of its own
        {"base_url": "ftp://host"},
        {"label": "x" * 61},
        {"place": -1},
        {"place": 40_000},
        {"granted_to": "nobody"},
        {"label": "\x00"},
    ],
)
def test_what_cannot_be_connected_is_refused_and_nothing_is_stored(
    page: Client, changes: dict[str, Any]
) -> None:
    answer = page.post(NEW, connection(**changes))

    assert answer.status_code == 400
    assert "Nothing was saved." in text(answer)
    assert not Connection.objects.exists()


def test_what_is_not_there_is_not_found(page: Client) -> None:
    assert page.get(f"{PAGE}/connections/99").status_code == 404
    assert page.post(f"{PAGE}/connections/99/act", {"remove": "1"}).status_code == 404


def test_how_a_connection_is_stands_beside_it(page: Client, root: Account) -> None:
    later = timezone.now() + timedelta(hours=1)
    one = connected(root)
    conditions = {}
    states: dict[str, dict[str, Any]] = {
        "ready": {},
        "limit reached": {"limited_until": later, "last_failure": "rate_limited"},
        "key refused": {"limited_until": later, "last_failure": "key_refused"},
        "asked again next time": {"limited_until": None, "last_failure": "rate_limited"},
    }
    for name, fields in states.items():
        Connection.objects.filter(pk=one.pk).update(**fields)
        conditions[name] = text(page.get(PAGE))

    assert all(name in shown for name, shown in conditions.items())


def test_a_key_is_on_no_page_in_no_log_and_in_no_audit(
    page: Client, root: Account, server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever is shown after it was given: pages, refusals, trials, the administration, tracebacks."""
    root.is_superuser = True
    root.save()
    server.always(
        lambda request: refuses(401, {"error": {"message": request.headers.get("authorization", "")}})(
            request
        )
    )
    with caplog.at_level(logging.DEBUG):
        answers = [
            page.post(NEW, connection(provider="compatible", base_url=server.base), follow=True),
            page.post(NEW, connection(label="x" * 61)),  # the form comes back
            page.post(PAGE, model(server, providerId="compatible"), follow=True),
            page.post(PAGE, model(server, providerId="compatible", **{"try": "1"})),
        ]
        one = Connection.objects.get()
        answers += [
            page.get(f"{PAGE}/connections/{one.pk}"),
            page.post(f"{PAGE}/connections/{one.pk}/act", {"try": "1"}, follow=True),
            page.get("/admin/embeddings/connection/"),
            page.get(f"/admin/embeddings/connection/{one.pk}/change/"),
            page.get(f"/admin/embeddings/connection/{one.pk}/history/"),
            page.get("/admin/embeddings/connectionevent/"),
            *(
                page.get(f"/admin/embeddings/connectionevent/{event.pk}/change/")
                for event in ConnectionEvent.objects.all()
            ),
            page.get("/admin/embeddings/embeddingusage/"),
            page.get("/admin/embeddings/failuresequence/"),
        ]

    assert len(server.requests) == 2
    shown = "".join(answer.content.decode() for answer in answers)
    assert {answer.status_code for answer in answers} == {200, 400}
    assert KEY not in shown + caplog.text + str(list(ConnectionEvent.objects.values()))


# --- Signing in at OpenRouter ---


@pytest.fixture
def openrouter(server: FakeServer, settings: LazySettings) -> FakeServer:
    settings.OPENROUTER_URL = server.base
    return server


def begin(page: Client) -> tuple[str, dict[str, str]]:
    """Return the path to come back to, and what OpenRouter is told."""
    answer = page.post(OPENROUTER)
    query = {name: values[0] for name, values in parse_qs(urlsplit(answer["Location"]).query).items()}
    return urlsplit(query["callback_url"]).path, query


def test_signing_in_gives_a_connection_whose_key_nobody_saw(page: Client, openrouter: FakeServer) -> None:
    back, told = begin(page)

    def exchanges(request: Received) -> Reply:
        digest = sha256(request.json["code_verifier"].encode()).digest()
        fits = base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == told["code_challenge"]
        return json_reply({"key": KEY, "user_id": "u"}) if fits else json_reply({}, status=403)

    openrouter.always(exchanges)
    answer = page.get(back, {"code": "abc"}, follow=True)

    made = Connection.objects.get()
    (request,) = openrouter.requests
    assert told["code_challenge_method"] == "S256"
    assert (request.path, request.json["code"]) == ("/api/v1/auth/keys", "abc")
    assert "authorization" not in request.headers
    assert (made.provider, made.kind, made.key) == ("openrouter", Connection.Kind.OPENROUTER, KEY)
    assert "OpenRouter is connected." in text(answer)
    assert KEY not in answer.content.decode()
    assert page.get(back, {"code": "abc"}).status_code == 404  # an attempt works once


def test_who_was_not_sent_from_this_session_gets_nothing(
    page: Client, openrouter: FakeServer, root: Account
) -> None:
    back, _ = begin(page)
    other = Client()
    other.force_login(root)

    answers = [other.get(back, {"code": "abc"}), page.get(f"{OPENROUTER}/guessed", {"code": "abc"})]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert openrouter.requests == []
    assert page.get(back, {"code": "abc"}).status_code == 404  # a wrong guess ends the attempt


@pytest.mark.parametrize(
    "script", [refuses(403), gives({}), gives({"key": 7}), gives({"key": "a b"}), gives(b"<")]
)
@pytest.mark.parametrize("code", ["abc", "", "x" * 501])
def test_without_a_key_nothing_is_connected(
    page: Client, openrouter: FakeServer, script: Any, code: str
) -> None:
    openrouter.always(script)
    back, _ = begin(page)

    answer = page.get(back, {"code": code}, follow=True)

    assert "OpenRouter was not connected" in text(answer)
    assert not Connection.objects.exists()
    assert len(openrouter.requests) == (code == "abc")


def test_only_this_page_may_lead_to_openrouter(page: Client, openrouter: FakeServer) -> None:
    csp = {path: page.get(path)["Content-Security-Policy"] for path in (PAGE, "/settings/retention", NEW)}

    assert f"form-action 'self' {openrouter.base}" in csp[PAGE]
    assert openrouter.base not in csp["/settings/retention"] + csp[NEW]
