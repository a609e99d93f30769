"""E6 to E8, E11: which connection serves whom, what a refusal means, and who pays."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from django.views.debug import ExceptionReporter
from django_q.models import OrmQ

from elowen.lib.errors import Invalid, NotFound, Refused
from elowen.lib.sealing import SealBroken, seal, unseal
from elowen.providers.errors import ContentRefused, InvalidAnswer, KeyRefused, ProviderFailed, RateLimited
from embeddings import tasks
from embeddings.actions.connecting import add_connection, change_connection, remove_connection
from embeddings.config import SECTION, EmbeddingConfig
from embeddings.connections import Identity, NoConnection, OnHold, dispatch
from embeddings.embedding import Purpose, Run, embed, embed_query
from embeddings.models import (
    Connection,
    ConnectionEvent,
    EmbeddingSpace,
    EmbeddingUsage,
    FailureSequence,
    MemoryEmbedding,
    PendingMemory,
)
from embeddings.queue import drain
from memories.actions.editing import add_memory
from memories.models import Account, ConfigSection
from tests.conftest import Api
from tests.embeddings.conftest import Use
from tests.embeddings.queues import indexed, make_due, remember, waiting
from tests.factories import AccountFactory
from tests.fakes.server import (
    FakeServer,
    Received,
    Reply,
    Script,
    gives,
    gives_vectors,
    refuses,
    resets,
)
from tests.problems import problem
from tests.threads import in_thread

pytestmark = pytest.mark.django_db

KEYS = [f"sk-{word}-{'x' * 20}" for word in ("first", "second", "third", "fourth", "fifth")]
type Connect = Callable[..., Connection]


@pytest.fixture
def admin(db: None) -> Account:
    account: Account = AccountFactory.create(username="olga", is_staff=True)
    return account


@pytest.fixture
def connect(admin: Account, server: FakeServer) -> Connect:
    """Connect an account at the scripted server, and have it serve from now on."""

    def make(place: int = 0, **fields: Any) -> Connection:
        config = EmbeddingConfig("compatible", "m", server.base)
        ConfigSection.objects.update_or_create(name=SECTION, defaults={"document": config.to_document()})
        given: dict[str, Any] = {
            "key": KEYS[place],
            "base_url": server.base,
            "label": f"number {place}",
            "place": place,
        }
        return add_connection(by=admin, provider="compatible", **(given | fields))

    return make


def by_key(scripts: Mapping[str, Script]) -> Script:
    """Answer each key in its own way, and every other with vectors."""

    def script(request: Received) -> Reply:
        key = request.headers["authorization"].removeprefix("Bearer ")
        return scripts.get(key, gives_vectors())(request)

    return script


def asked(server: FakeServer) -> list[int]:
    """Return the connections that were asked, by the place of their keys."""
    keys = [request.headers["authorization"].removeprefix("Bearer ") for request in server.requests]
    return [KEYS.index(key) for key in keys]


# --- Secrets ---


def test_a_key_is_sealed_at_rest_and_opens_for_the_request_alone(
    ada: Account, connect: Connect, server: FakeServer
) -> None:
    made = connect()
    embed_query("tea", account_id=ada.pk)

    with connection.cursor() as cursor:
        cursor.execute("SELECT row_to_json(c)::text FROM embeddings_connection c")
        stored = cursor.fetchone()[0]
    assert KEYS[0] not in stored
    assert KEYS[0].encode().hex() not in stored
    assert KEYS[0] not in repr(made)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEYS[0]}"


def test_what_is_sealed_opens_with_an_earlier_secret_key_and_with_no_other(settings: LazySettings) -> None:
    sealed, before = seal("hush"), settings.SECRET_KEY

    settings.SECRET_KEY = "another secret key"
    with pytest.raises(SealBroken):
        unseal(sealed)
    settings.SECRET_KEY_FALLBACKS = [before]

    assert unseal(sealed) == "hush"
    assert seal("hush") != sealed


def test_a_key_shows_up_nowhere(
    api: Api,
    ada: Account,
    admin: Account,
    connect: Connect,
    server: FakeServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.always(quotes_the_key)
    made = connect()
    with caplog.at_level(logging.DEBUG):
        with pytest.raises(KeyRefused) as raised:
            embed_query("tea", account_id=ada.pk)
        change_connection(connection_id=made.pk, by=admin, changes={"paused": True}, key=KEYS[1])
        replies = [
            api(admin).get("/api/memory/embedding"),
            api(admin).post("/api/memory/embedding/test", {}, format="json"),
        ]

    events = str(list(ConnectionEvent.objects.values()))
    everything = caplog.text + events + str(raised.value) + "".join(r.content.decode() for r in replies)
    assert not any(key in everything for key in KEYS)


def quotes_the_key(request: Received) -> Reply:
    return refuses(401, {"error": {"message": request.headers["authorization"]}})(request)


@pytest.mark.parametrize(
    "script", [quotes_the_key, resets(), gives("not what was asked for"), lambda request: Reply(200, b"{")]
)
@pytest.mark.parametrize("is_connected", [True, False])
def test_a_key_is_in_no_report_of_an_error_with_all_its_variables(
    script: Script,
    is_connected: bool,
    ada: Account,
    connect: Connect,
    server: FakeServer,
    use: Use,
    settings: LazySettings,
) -> None:
    settings.EMBEDDING_KEY = KEYS[1]
    connect() if is_connected else use(server)
    server.always(script)

    with pytest.raises(ProviderFailed) as raised:
        embed_query("tea", account_id=ada.pk)

    report = ExceptionReporter(None, raised.type, raised.value, raised.tb).get_traceback_html()
    assert "post_json" in report
    assert server.requests[0].headers["authorization"] in {f"Bearer {key}" for key in KEYS}
    assert not any(key in report for key in KEYS[:2])


@pytest.mark.parametrize("key", ["", "  ", "two words", "line\nbreak", "ключ", "x" * 4_001])
def test_what_cannot_be_sent_is_no_key(admin: Account, key: str) -> None:
    with pytest.raises(Invalid) as raised:
        add_connection(by=admin, provider="openai", key=key)

    assert raised.value.field == "key"
    assert not Connection.objects.exists()


# --- Who serves ---


def test_the_first_in_turn_serves(ada: Account, connect: Connect, server: FakeServer) -> None:
    connect(1)
    connect(0)

    embed_query("tea", account_id=ada.pk)

    assert asked(server) == [0]


@pytest.mark.parametrize(
    ("fields", "serves"),
    [
        ({}, True),
        ({"paused": True}, False),
        ({"for_everyone": False}, False),
        ({"for_everyone": False, "granted_to": "ben"}, False),
        ({"for_everyone": False, "granted_to": "ada"}, True),
        ({"base_url": "https://elsewhere.example"}, False),  # its vectors would be of another space
    ],
)
def test_a_connection_serves_whom_it_is_granted_to_and_not_while_paused(
    ada: Account, ben: Account, connect: Connect, server: FakeServer, fields: dict[str, Any], serves: bool
) -> None:
    people = {"ada": ada, "ben": ben}
    granted = [people[fields["granted_to"]]] if "granted_to" in fields else []
    connect(**(fields | {"granted_to": granted}))

    if serves:
        embed_query("tea", account_id=ada.pk)
    else:
        with pytest.raises(NoConnection):
            embed_query("tea", account_id=ada.pk)

    assert asked(server) == ([0] if serves else [])


def test_nobody_is_not_served_and_the_instance_only_by_what_is_for_everyone(
    connect: Connect, server: FakeServer, ada: Account
) -> None:
    connect(for_everyone=False, granted_to=[ada])
    run = Run.start()

    with pytest.raises(Refused):
        dispatch(run.config, None, lambda served: None)
    with pytest.raises(NoConnection):
        embed(run, ["tea"], identity=Identity(None), purpose=Purpose.TRIAL)
    connect(1)
    embed(run, ["tea"], identity=Identity(None), purpose=Purpose.TRIAL)

    assert asked(server) == [1]
    assert EmbeddingUsage.objects.get().account_id is None


@pytest.mark.django_db(transaction=True)
def test_each_request_of_a_run_is_authorized_anew(
    ada: Account, ben: Account, admin: Account, connect: Connect, server: FakeServer
) -> None:
    made = connect()
    remember(ada, "one")
    remember(ben, "two")

    def pause_and_answer(request: Received) -> Reply:
        in_thread(lambda: change_connection(connection_id=made.pk, by=admin, changes={"paused": True})).join()
        return gives_vectors()(request)

    server.then(pause_and_answer)
    drain()

    assert len(server.requests) == 1
    assert MemoryEmbedding.objects.count() == 1


def test_one_account_without_a_connection_does_not_hold_up_another(
    ada: Account, ben: Account, admin: Account, connect: Connect, server: FakeServer
) -> None:
    made = connect(for_everyone=False, granted_to=[ada])
    (hers,), (his,) = remember(ada, "hers"), remember(ben, "his")

    drain()
    first = indexed()
    change_connection(connection_id=made.pk, by=admin, changes={}, granted_to=[ada, ben])
    make_due()
    drain()

    assert first == {hers.pk}
    assert indexed() == {hers.pk, his.pk}
    assert not waiting()
    assert [request.texts for request in server.requests] == [["hers"], ["his"]]


# --- The series ---


@pytest.mark.parametrize("status", [401, 402, 403, 429])
def test_what_is_the_connections_own_fault_goes_to_the_next(
    ada: Account, connect: Connect, server: FakeServer, status: int
) -> None:
    server.always(by_key({KEYS[0]: refuses(status)}))
    refused, _ = connect(0), connect(1)

    found = embed_query("tea", account_id=ada.pk)

    refused.refresh_from_db()
    assert asked(server) == [0, 1]
    assert found.vector.shape == (8,)
    assert refused.last_failure in ("key_refused", "rate_limited")
    assert refused.limited_until is not None
    assert EmbeddingUsage.objects.get().connection_id != refused.pk


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (refuses(400), ContentRefused),
        (refuses(500), ProviderFailed),
        (refuses(503, headers={"Retry-After": "1"}), ProviderFailed),
        (resets(), ProviderFailed),
        (gives(b"<html>"), InvalidAnswer),
        (gives_vectors(change=lambda rows: rows[:-1]), InvalidAnswer),
    ],
)
def test_what_may_have_been_paid_for_ends_the_series(
    ada: Account, connect: Connect, server: FakeServer, script: Script, kind: type[ProviderFailed]
) -> None:
    server.always(script)
    first, _ = connect(0), connect(1)

    with pytest.raises(kind):
        embed_query("tea", account_id=ada.pk)

    first.refresh_from_db()
    assert asked(server) == [0]
    assert first.limited_until is None


def test_a_series_is_four_requests_at_most(ada: Account, connect: Connect, server: FakeServer) -> None:
    server.always(refuses(429))
    for place in range(5):
        connect(place)

    with pytest.raises(RateLimited):
        embed_query("tea", account_id=ada.pk)

    assert asked(server) == [0, 1, 2, 3]


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_stated_time_is_waited_for_and_then_over(
    ada: Account, connect: Connect, server: FakeServer, form: str
) -> None:
    now = timezone.now().replace(microsecond=0)
    stated = "120" if form == "seconds" else format_datetime(now + timedelta(seconds=120), usegmt=True)
    server.then(refuses(429, headers={"Retry-After": stated}))
    made = connect()

    with time_machine.travel(now, tick=False) as clock:
        with pytest.raises(RateLimited):
            embed_query("tea", account_id=ada.pk)
        made.refresh_from_db()
        clock.shift(119)
        with pytest.raises(NoConnection):
            embed_query("tea", account_id=ada.pk)
        clock.shift(1)
        embed_query("tea", account_id=ada.pk)

    assert made.limited_until == now + timedelta(seconds=120)
    assert asked(server) == [0, 0]
    made.refresh_from_db()
    assert made.last_failure == ""
    assert made.limited_until is None


def test_a_short_statement_does_not_shorten_a_long_one(
    ada: Account, admin: Account, connect: Connect, server: FakeServer
) -> None:
    long = timezone.now() + timedelta(hours=5)
    made = connect()

    with pytest.raises(RateLimited):
        dispatch(Run.start().config, Identity(ada.pk), refused_meanwhile(long))

    made.refresh_from_db()
    assert made.limited_until == long


def refused_meanwhile(until: Any) -> Callable[[Any], None]:
    def send(served: Any) -> None:
        Connection.objects.update(limited_until=until)
        raise RateLimited(retry_after_s=1.0)

    return send


@pytest.mark.parametrize("script", [gives_vectors(), refuses(429), refuses(503)])
def test_a_server_of_ones_own_gets_one_request_whatever_it_answers(
    ada: Account, server: FakeServer, use: Use, script: Script
) -> None:
    use(server)
    server.always(script)

    with suppress(ProviderFailed):
        embed_query("tea", account_id=ada.pk)

    assert len(server.requests) == 1


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_settings_shorten_the_series(
    ada: Account, connect: Connect, server: FakeServer, retries: int
) -> None:
    server.always(refuses(429))
    for place in range(5):
        connect(place)
    stored = ConfigSection.objects.get(name=SECTION)
    stored.document |= {"maxRetries": retries}
    stored.save()

    with pytest.raises(RateLimited):
        embed_query("tea", account_id=ada.pk)

    assert len(server.requests) == 1 + retries


# --- Not before a stated time ---


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_server_of_ones_own_is_left_alone_until_it_says(
    ada: Account, server: FakeServer, use: Use, status: int, form: str
) -> None:
    now = timezone.now().replace(microsecond=0)
    stated = "120" if form == "seconds" else format_datetime(now + timedelta(seconds=120), usegmt=True)
    use(server)
    server.then(refuses(status, headers={"Retry-After": stated}))

    with time_machine.travel(now, tick=False) as clock:
        with pytest.raises(ProviderFailed):
            embed_query("tea", account_id=ada.pk)
        clock.shift(119)
        with pytest.raises(OnHold):
            embed_query("tea", account_id=ada.pk)
        assert len(server.requests) == 1
        clock.shift(1)
        embed_query("tea", account_id=ada.pk)

    assert len(server.requests) == 2


@pytest.mark.django_db(transaction=True)
def test_a_drain_gives_back_what_has_to_wait_and_counts_no_failure(
    ada: Account, ben: Account, server: FakeServer, use: Use
) -> None:
    use(server)
    server.then(refuses(429, headers={"Retry-After": "120"}))
    hers, his = remember(ada, "hers")[0], remember(ben, "his")[0]
    before = timezone.now()

    drain()
    drain()

    assert len(server.requests) == 1
    assert waiting() == {hers.pk: 0, his.pk: 0}
    due = PendingMemory.objects.values_list("next_at", flat=True)
    assert all(115 < (at - before).total_seconds() < 130 for at in due)
    EmbeddingSpace.objects.update(held_until=timezone.now())
    make_due()
    drain()
    assert indexed() == {hers.pk, his.pk}


@pytest.mark.django_db(transaction=True)
def test_a_limited_connection_holds_up_only_whom_it_serves(
    ada: Account, ben: Account, connect: Connect, server: FakeServer
) -> None:
    connect(0, for_everyone=False, granted_to=[ada])
    connect(1, for_everyone=False, granted_to=[ben])
    server.always(by_key({KEYS[0]: refuses(429, headers={"Retry-After": "120"})}))
    hers = remember(ada, *(f"hers {number}" for number in range(60)))
    his = remember(ben, "his")

    drain()

    assert asked(server).count(0) == 1
    assert indexed() == {memory.pk for memory in his}
    assert sorted(waiting().values()) == [0] * len(hers)


@pytest.mark.django_db(transaction=True)
def test_requests_fail_for_each_account_on_its_own(
    ada: Account, ben: Account, connect: Connect, server: FakeServer
) -> None:
    connect(0, for_everyone=False, granted_to=[ada])
    connect(1, for_everyone=False, granted_to=[ben])
    server.always(by_key({KEYS[0]: refuses(503)}))
    remember(ada, "hers")
    remember(ben, "his")

    drain()

    failures = FailureSequence.objects.values_list("operation", "account_id", "count")
    assert list(failures) == [("transport", ada.pk, 1)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", ["added", "resumed", "new key", "granted"])
def test_whoever_waits_is_tried_as_soon_as_a_connection_may_serve(
    ada: Account, admin: Account, connect: Connect, server: FakeServer, change: str
) -> None:
    made = connect(paused=True)
    remember(ada, "one")
    drain()
    waits = PendingMemory.objects.get().next_at
    assert waits > timezone.now()
    OrmQ.objects.all().delete()

    if change == "added":
        connect(1)
    elif change == "granted":
        change_connection(
            connection_id=made.pk,
            by=admin,
            changes={"for_everyone": False, "paused": False},
            granted_to=[ada],
        )
    else:
        key = KEYS[2] if change == "new key" else None
        change_connection(connection_id=made.pk, by=admin, changes={"paused": False}, key=key)
    for row in OrmQ.objects.all():
        assert row.func() == "embeddings.tasks.retry_now"
    tasks.retry_now()
    drain()

    assert not waiting()


# --- Usage ---


def test_every_paid_request_is_recorded_with_who_and_what(
    ada: Account, connect: Connect, server: FakeServer
) -> None:
    made = connect()
    remember(ada, "one", "two")
    drain()
    embed_query("tea", account_id=ada.pk)

    rows = EmbeddingUsage.objects.order_by("pk").values_list(
        "account_id", "provider", "connection_id", "model", "tokens", "purpose"
    )
    assert list(rows) == [
        (ada.pk, "compatible", made.pk, "m", 7, "index"),
        (ada.pk, "compatible", made.pk, "m", 7, "query"),
    ]


def test_what_was_paid_is_recorded_though_the_answer_is_useless(
    ada: Account, connect: Connect, server: FakeServer
) -> None:
    connect()
    server.always(gives_vectors(change=lambda rows: [row | {"embedding": [float("nan")]} for row in rows]))

    with pytest.raises(InvalidAnswer):
        embed_query("tea", account_id=ada.pk)

    assert EmbeddingUsage.objects.count() == 1


def test_a_server_of_ones_own_is_filed_under_no_provider_and_the_bundled_model_nowhere(
    ada: Account, server: FakeServer, use: Use
) -> None:
    embed_query("with the bundled model", account_id=ada.pk)
    assert not EmbeddingUsage.objects.exists()
    use(server)
    embed_query("tea", account_id=ada.pk)

    usage = EmbeddingUsage.objects.get()
    assert (usage.account_id, usage.provider, usage.connection_id) == (ada.pk, "", None)


# --- Writes ---


def test_only_administrators_connect(ada: Account, connect: Connect) -> None:
    made = connect()

    with pytest.raises(Refused):
        add_connection(by=ada, provider="openai", key="k")
    with pytest.raises(Refused):
        change_connection(connection_id=made.pk, by=ada, changes={"paused": True})
    with pytest.raises(Refused):
        remove_connection(connection_id=made.pk, by=ada)
    assert Connection.objects.get().paused is False


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"provider": "nobody"}, "provider"),
        ({"provider": "compatible"}, "base_url"),
        ({"base_url": "ftp://x"}, "base_url"),
        ({"base_url": "https://name:word@x"}, "base_url"),
        ({"label": ""}, "label"),
        ({"label": "x" * 61}, "label"),
        ({"sealed_key": b"x"}, "sealed_key"),
    ],
)
def test_a_connection_that_cannot_be_is_refused_by_name(
    admin: Account, fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as raised:
        add_connection(by=admin, **({"provider": "openai", "key": "k"} | fields))

    assert raised.value.field == field
    assert not ConnectionEvent.objects.exists()


def test_every_change_leaves_an_event_without_the_key(admin: Account, connect: Connect) -> None:
    made = connect()
    change_connection(connection_id=made.pk, by=admin, changes={"label": "renamed"})
    change_connection(connection_id=made.pk, by=admin, changes={"label": "renamed"})  # changes nothing
    change_connection(connection_id=made.pk, by=admin, changes={}, key=KEYS[1])
    remove_connection(connection_id=made.pk, by=admin)

    events = list(ConnectionEvent.objects.order_by("pk"))
    assert [event.action for event in events] == ["add", "change", "change", "remove"]
    assert {event.actor for event in events} == {f"user:{admin.pk}"}
    assert events[1].after is not None
    assert events[1].after["label"] == "renamed"
    assert events[2].after is not None
    assert events[2].after["key"] == "replaced"
    with pytest.raises(NotFound):
        remove_connection(connection_id=made.pk, by=admin)


def test_the_trail_of_connections_cannot_be_changed(connect: Connect) -> None:
    connect()

    events = ConnectionEvent.objects.all()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        events.update(actor="x")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        events.delete()


def test_a_new_key_is_tried_at_once(
    ada: Account, admin: Account, connect: Connect, server: FakeServer
) -> None:
    server.always(by_key({KEYS[0]: refuses(401)}))
    made = connect()
    with pytest.raises(KeyRefused):
        embed_query("tea", account_id=ada.pk)

    change_connection(connection_id=made.pk, by=admin, changes={}, key=KEYS[1])
    embed_query("tea", account_id=ada.pk)

    assert asked(server) == [0, 1]


# --- Over REST ---


def test_a_provider_is_chosen_only_with_an_account_connected(
    api: Api, admin: Account, server: FakeServer
) -> None:
    wanted = {"providerId": "compatible", "model": "m", "baseUrl": server.base}
    client = api(admin)

    problem(client.put("/api/memory/embedding", wanted, format="json"), 400, "providerId")
    add_connection(by=admin, provider="compatible", key="k", base_url=server.base)
    saved = client.put("/api/memory/embedding", wanted, format="json")

    assert saved.status_code == 200
    assert saved.json()["providerId"] == "compatible"


def test_a_trial_says_what_it_found(api: Api, admin: Account, connect: Connect, server: FakeServer) -> None:
    connect()
    server.then(gives_vectors(), refuses(401))

    good, bad = (api(admin).post("/api/memory/embedding/test", {}, format="json").json() for _ in range(2))

    assert (good["ok"], good["provider"], good["dimensions"]) == (True, "compatible", 8)
    assert bad["ok"] is False
    assert "401" in bad["error"]
    assert EmbeddingUsage.objects.get().purpose == "trial"


def test_recall_goes_on_by_words_while_every_connection_is_refused(
    api: Api, ada: Account, connect: Connect, server: FakeServer
) -> None:
    connect()
    server.always(refuses(401))
    add_memory(by=ada, body="Tea is drunk at five.")

    answers = [
        api(ada).post("/api/memory/retrieve", {"query": "When is tea drunk?"}, format="json")
        for _ in range(3)
    ]

    assert {answer.status_code for answer in answers} == {200}
    assert {answer["X-Elowen-Recall"] for answer in answers} == {"recency"}
    assert "Tea is drunk at five." in answers[2].content.decode()
    assert len(server.requests) == 1  # a refused key is left alone for a while
