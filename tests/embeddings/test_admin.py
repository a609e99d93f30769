"""Operators connect accounts of providers; a key goes in and never comes out again."""

from typing import Any

import pytest
from django.test import Client

from embeddings.actions.connecting import add_connection
from embeddings.config import SECTION, EmbeddingConfig
from embeddings.models import Connection, ConnectionEvent, EmbeddingUsage
from memories.models import Account, ConfigSection
from tests.fakes.server import FakeServer, refuses

pytestmark = pytest.mark.django_db

PAGE = "/admin/embeddings/connection/"
KEY = "sk-never-to-be-seen-again"
FORM: dict[str, Any] = {
    "provider": "openai",
    "label": "ours",
    "key": KEY,
    "base_url": "",
    "place": "0",
    "for_everyone": "on",
    "granted_to": [],
}


@pytest.fixture
def made(admin_user: Account, server: FakeServer) -> Connection:
    config = EmbeddingConfig("compatible", "m", server.base)
    ConfigSection.objects.update_or_create(name=SECTION, defaults={"document": config.to_document()})
    return add_connection(by=admin_user, provider="compatible", key=KEY, base_url=server.base, label="lab")


def told(console: Client, address: str, data: dict[str, Any]) -> list[str]:
    answer = console.post(address, data, follow=True)
    assert answer.status_code == 200
    return [str(message) for message in answer.context["messages"]]


def act(console: Client, action: str, *rows: Connection) -> list[str]:
    return told(console, PAGE, {"action": action, "_selected_action": [row.pk for row in rows]})


def test_a_connection_is_made_with_its_grants_and_its_key_never_shown(
    admin_client: Client, ada: Account
) -> None:
    told(admin_client, f"{PAGE}add/", FORM | {"for_everyone": "", "granted_to": [ada.pk]})

    made = Connection.objects.get()
    page = admin_client.get(f"{PAGE}{made.pk}/change/").content.decode()
    assert (made.label, made.key, list(made.granted_to.all())) == ("ours", KEY, [ada])
    assert KEY not in page
    assert "sealed" not in page


def test_an_empty_key_keeps_the_one_there_is(
    admin_client: Client, made: Connection, server: FakeServer
) -> None:
    changes = FORM | {"key": "", "label": "renamed", "base_url": server.base}
    told(admin_client, f"{PAGE}{made.pk}/change/", changes)

    made.refresh_from_db()
    assert (made.label, made.key, made.provider) == ("renamed", KEY, "compatible")

    told(admin_client, f"{PAGE}{made.pk}/change/", changes | {"key": "sk-another"})
    made.refresh_from_db()
    assert made.key == "sk-another"


def test_a_new_connection_needs_a_key_and_a_bad_address_is_told(admin_client: Client) -> None:
    answer = admin_client.post(f"{PAGE}add/", FORM | {"key": ""})
    said = told(admin_client, f"{PAGE}add/", FORM | {"base_url": "ftp://x"})

    assert "key" in answer.context["adminform"].form.errors
    assert "http" in said[0]
    assert not Connection.objects.exists()


def test_connections_are_paused_resumed_and_removed(admin_client: Client, made: Connection) -> None:
    assert act(admin_client, "pause", made) == ["Paused: 1."]
    made.refresh_from_db()
    assert made.paused
    assert act(admin_client, "resume", made) == ["Resumed: 1."]
    admin_client.post(f"{PAGE}{made.pk}/delete/", {"post": "yes"})

    assert not Connection.objects.exists()
    actions = ConnectionEvent.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["add", "change", "change", "remove"]


def test_a_connection_is_tried_out(admin_client: Client, made: Connection, server: FakeServer) -> None:
    good = act(admin_client, "try_out", made)
    server.always(refuses(401))
    bad = act(admin_client, "try_out", made)
    ConfigSection.objects.filter(name=SECTION).delete()
    other = act(admin_client, "try_out", made)

    assert "8 dimensions" in good[0]
    assert "401" in bad[0]
    assert "do not name this provider" in other[0]
    assert KEY not in str(good + bad + other)
    assert EmbeddingUsage.objects.get().purpose == "trial"
