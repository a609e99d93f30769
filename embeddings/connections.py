"""Which account at a provider serves a request, and what a refusal means for it.

A request is asked again only where the refusal itself proves that the connection was the reason: nothing was
done and nothing paid. Whatever else happens may have been done, so it ends the series.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import DateTimeField, F, Value
from django.db.models.functions import Greatest
from django.utils import timezone

from elowen.lib.errors import Refused, Unavailable
from elowen.providers.endpoint import LOCAL, Endpoint
from elowen.providers.errors import KeyRefused, ProviderFailed, RateLimited
from embeddings.config import EmbeddingConfig, endpoint
from embeddings.models import Connection, EmbeddingSpace, EmbeddingUsage
from embeddings.space import space_of

# How long a connection is left alone where the provider names no time.
UNTIL_ASKED_AGAIN = {KeyRefused: timedelta(minutes=10), RateLimited: timedelta(minutes=1)}

log = logging.getLogger(__name__)


class NoConnection(Unavailable):
    """No connection of the provider may serve this account at the moment; an administrator can see why."""

    code = "no_connection"


class OnHold(Unavailable):
    """The embedding server has asked to be left alone for a while; nothing was sent."""

    code = "on_hold"


@dataclass(frozen=True)
class Identity:
    """For whom a request is made: an account, or the instance itself."""

    account_id: int | None


INSTANCE = Identity(None)


@dataclass(frozen=True)
class Served:
    """One authorized request: where it goes, and on whose bill."""

    place: Endpoint
    identity: Identity
    connection: Connection | None = None  # a server of one's own has none

    def record(self, tokens: int | None, *, purpose: EmbeddingUsage.Purpose) -> None:
        EmbeddingUsage.objects.create(
            account_id=self.identity.account_id,
            provider=self.connection.provider if self.connection else "",
            connection_id=self.connection.pk if self.connection else None,
            model=self.place.model,
            tokens=tokens,
            purpose=purpose,
        )


def dispatch[T](config: EmbeddingConfig, identity: Identity | None, send: Callable[[Served], T]) -> T:
    """Send one request through the first connection that may serve it, or after a refusal through the next.

    Args:
        identity: needed where a provider's connections serve; each is authorized anew, for now.
        send: makes exactly one request.
    Raises:
        NoConnection, OnHold: nobody may be asked now; no request was made.
        ProviderFailed: the last refusal, or a failure that may have been paid for.
    """
    if not config.is_connected:
        return ask_own(Served(endpoint(config), identity or INSTANCE), send)
    if identity is None:
        raise Refused("A provider is asked for somebody, never for nobody.")
    refusal: Unavailable = NoConnection()
    tried = set[int]()
    while len(tried) <= config.max_retries and (connection := next_connection(config, identity, tried)):
        tried.add(connection.pk)
        try:
            answer = send(Served(authorized(config, connection), identity, connection))
        except (KeyRefused, RateLimited) as error:
            note_refusal(connection, error)
            refusal = error
        else:
            note_success(connection)
            return answer
    raise refusal


def ask_own[T](served: Served, send: Callable[[Served], T]) -> T:
    """Send one request to a server of one's own, unless it has asked to be left alone until later."""
    if served.place.provider == LOCAL:
        return send(served)
    space = space_of(served.place)
    if EmbeddingSpace.objects.held_until(space, timezone.now()):
        raise OnHold
    try:
        return send(served)
    except ProviderFailed as error:
        if error.retry_after_s:
            until = timezone.now() + timedelta(seconds=error.retry_after_s)
            EmbeddingSpace.objects.filter(pk=EmbeddingSpace.objects.row_of(space).pk).update(
                held_until=Greatest(F("held_until"), Value(until, DateTimeField()))  # which passes over null
            )
        raise


def not_before(config: EmbeddingConfig, identity: Identity) -> datetime | None:
    """Return until when nobody may be asked for this identity, as far as that was stated."""
    now = timezone.now()
    if not config.is_connected:
        return EmbeddingSpace.objects.held_until(space_of(endpoint(config)), now)
    wanted = endpoint(config).url
    granted = Connection.objects.granted(config.provider, identity.account_id)
    ends = [one.limited_until or now for one in granted if one.url == wanted]
    return min(ends) if ends and min(ends) > now else None


def next_connection(config: EmbeddingConfig, identity: Identity, tried: set[int]) -> Connection | None:
    """Read who may serve now; of another address the vectors would be of another space."""
    wanted = endpoint(config).url
    serving = Connection.objects.serving(config.provider, identity.account_id, timezone.now())
    return next((one for one in serving if one.pk not in tried and one.url == wanted), None)


def authorized(config: EmbeddingConfig, connection: Connection) -> Endpoint:
    return Endpoint(config.provider, connection.url, config.model, config.width, key=connection.key)


def note_refusal(connection: Connection, error: KeyRefused | RateLimited) -> None:
    """Leave the connection alone until the stated time; no attempt shortens an earlier statement."""
    now = timezone.now()
    stated = error.retry_after_s
    pause = timedelta(seconds=stated) if stated is not None else UNTIL_ASKED_AGAIN[type(error)]
    log.warning("Connection %s: %s", connection.pk, error)
    until = Value(now + pause, DateTimeField())
    Connection.objects.filter(pk=connection.pk).update(
        limited_until=Greatest(F("limited_until"), until),  # which passes over null
        last_failure=error.code,
        last_failure_at=now,
    )


def note_success(connection: Connection) -> None:
    if connection.last_failure:
        # Unless it has been refused anew meanwhile.
        same = Connection.objects.filter(pk=connection.pk, last_failure_at=connection.last_failure_at)
        same.update(last_failure="", limited_until=None)
