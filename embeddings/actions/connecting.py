"""Writes to connections. Each leaves an event; a key goes in sealed and never comes out again."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django_q.tasks import async_task

from elowen.lib.errors import Invalid, NotFound, Refused
from elowen.lib.sealing import seal
from elowen.providers.catalog import PROVIDERS
from elowen.providers.http import HEADER_SAFE
from embeddings.config import checked_base_url
from embeddings.models import Connection, ConnectionEvent
from memories.models import Account

MAX_LABEL_CHARS = 60
MAX_KEY_CHARS = 4_000
CHANGEABLE = ("label", "base_url", "paused", "place", "for_everyone")
SHOWN = ("provider", "kind", *CHANGEABLE)


@transaction.atomic
def add_connection(
    *,
    by: Account,
    provider: str,
    key: str,
    kind: str = Connection.Kind.API_KEY,
    granted_to: Sequence[Account] = (),
    **fields: Any,
) -> Connection:
    """Connect an account at a provider.

    Args:
        key: the provider's secret; it is sealed and never shown again.
        granted_to: who may be served, unless it is `for_everyone`.
    Raises:
        Invalid: a value cannot be accepted; `field` names it.
    """
    administrator(by)
    if provider not in PROVIDERS:
        raise Invalid("There is no such provider.", field="provider")
    connection = Connection(provider=provider, kind=kind, sealed_key=seal(checked_key(key)))
    apply(connection, {"label": PROVIDERS[provider].name, "base_url": ""} | fields)
    connection.save()
    connection.granted_to.set(granted_to)
    record(ConnectionEvent.Action.ADD, connection, by=by, before=None, after=snapshot(connection))
    retry_after_commit()
    return connection


@transaction.atomic
def change_connection(
    *,
    connection_id: int,
    by: Account,
    changes: Mapping[str, Any],
    key: str | None = None,
    granted_to: Sequence[Account] | None = None,
) -> Connection:
    """Change what is named. A new key also makes its earlier failures and limits void."""
    administrator(by)
    connection = locked(connection_id)
    before = snapshot(connection)
    apply(connection, changes)
    if key is not None:
        connection.sealed_key = seal(checked_key(key))
        connection.limited_until, connection.last_failure = None, ""
    connection.save()
    if granted_to is not None:
        connection.granted_to.set(granted_to)
    after = snapshot(connection) | ({"key": "replaced"} if key is not None else {})
    if after != before:
        record(ConnectionEvent.Action.CHANGE, connection, by=by, before=before, after=after)
        retry_after_commit()
    return connection


@transaction.atomic
def remove_connection(*, connection_id: int, by: Account) -> None:
    """Forget the connection and its key. What it was used for stays on record."""
    administrator(by)
    connection = locked(connection_id)
    record(ConnectionEvent.Action.REMOVE, connection, by=by, before=snapshot(connection), after=None)
    connection.delete()


def retry_after_commit() -> None:
    """What nobody could serve may find somebody now."""
    transaction.on_commit(partial(async_task, "embeddings.tasks.retry_now"))


def snapshot(connection: Connection) -> dict[str, Any]:
    """Return everything but the key."""
    granted = sorted(connection.granted_to.values_list("pk", flat=True))
    return {name: getattr(connection, name) for name in SHOWN} | {"granted_to": granted}


def apply(connection: Connection, changes: Mapping[str, Any]) -> None:
    for name, value in changes.items():
        if name not in CHANGEABLE:
            raise Invalid("This cannot be set.", field=name)
        setattr(connection, name, value.strip() if isinstance(value, str) else value)
    if not 1 <= len(connection.label) <= MAX_LABEL_CHARS:
        raise Invalid(f"A label has 1 to {MAX_LABEL_CHARS} characters.", field="label")
    if connection.base_url or not PROVIDERS[connection.provider].base_url:
        connection.base_url = address(connection.base_url)


def address(base_url: str) -> str:
    try:
        return checked_base_url(base_url)
    except Invalid as error:
        raise Invalid(str(error), field="base_url") from None


def checked_key(key: str) -> str:
    key = key.strip()
    if not key or len(key) > MAX_KEY_CHARS or not HEADER_SAFE.fullmatch(key):
        raise Invalid("This is no key: copy it anew, without spaces and line breaks.", field="key")
    return key


def administrator(by: Account) -> None:
    if not by.is_staff:
        raise Refused("Only administrators connect accounts of providers.")


def locked(connection_id: int) -> Connection:
    connection = Connection.objects.select_for_update().filter(pk=connection_id).first()
    if connection is None:
        raise NotFound
    return connection


def record(
    action: ConnectionEvent.Action,
    connection: Connection,
    *,
    by: Account,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
) -> None:
    ConnectionEvent.objects.create(
        connection_id=connection.pk, action=action, before=before, after=after, actor=f"user:{by.pk}"
    )
