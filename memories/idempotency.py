"""The same request with the same Idempotency-Key stores once and is answered alike for 24 hours."""

import json
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac
from rest_framework.request import Request
from rest_framework.response import Response

from elowen.lib.errors import Conflict, ElowenError, Invalid
from elowen.lib.text import unstorable
from memories.actions.purging import REPLY_HOURS
from memories.models import IdempotentReply
from memories.requests import account_of

MAX_KEY_CHARS = 255
HEADER = "Idempotency-Key"

# Waits for a request with the same key that is still under way, and takes over a key past its time.
_CLAIM = """
insert into memories_idempotentreply (account_id, key, request_hash, created_at) values (%s, %s, %s, %s)
on conflict (account_id, key) do update
set request_hash = excluded.request_hash, created_at = excluded.created_at,
    status = null, reply = null, memory_ids = default
where memories_idempotentreply.created_at < %s
returning id
"""

type Handler = Callable[..., Response]


class Purged(Conflict):
    """What this request stored has been purged since; take a new Idempotency-Key to store it again."""

    code = "purged"


class SecretShown(Conflict):
    """This request made a key, whose secret was shown once; revoke it and make another."""

    code = "secret_shown"


class KeyReused(ElowenError):
    """This Idempotency-Key was used for another request; take a new one."""

    code = "idempotency_key_reused"


def idempotent(handler: Handler) -> Handler:
    """Make a POST handler honour the Idempotency-Key header, if there is one."""

    @wraps(handler)
    def once(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        key = request.headers.get(HEADER)
        if key is None:
            return handler(view, request, *args, **kwargs)
        _check(key)
        with transaction.atomic():
            return _answer(key, handler, view, request, *args, **kwargs)

    return once


def _answer(key: str, handler: Handler, view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
    request_hash = _fingerprint(request)
    claimed = _claim(request, key, request_hash)
    if claimed is None:
        return _again(request, key, request_hash)
    response = handler(view, request, *args, **kwargs)
    reply = json.loads(view.get_renderers()[0].render(response.data))
    if "secret" in reply:
        reply = None
    IdempotentReply.objects.filter(pk=claimed).update(
        status=response.status_code, reply=reply, memory_ids=_memories_in(reply)
    )
    return response


def _claim(request: Request, key: str, request_hash: bytes) -> int | None:
    now = timezone.now()
    values: list[Any] = [account_of(request).pk, key, request_hash, now, now - timedelta(hours=REPLY_HOURS)]
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, values)
        row = cursor.fetchone()
    return row[0] if row else None


def _again(request: Request, key: str, request_hash: bytes) -> Response:
    first = IdempotentReply.objects.get(account=account_of(request), key=key)
    if bytes(first.request_hash) != request_hash:
        raise KeyReused
    if first.reply is None:
        raise Purged if first.memory_ids else SecretShown
    return Response(first.reply, status=first.status)


def _memories_in(reply: dict[str, Any] | None) -> list[int]:
    rows = reply.get("results", [reply]) if reply else []
    return [row["id"] for row in rows if "body" in row]


def _fingerprint(request: Request) -> bytes:
    """With the service's own secret, since there are passwords among the requests."""
    body = json.dumps(request.data, sort_keys=True)
    asked = f"{request.method} {request.path}\n{body}"
    return salted_hmac("idempotency", asked, algorithm="sha256").digest()


def _check(key: str) -> None:
    if not 1 <= len(key) <= MAX_KEY_CHARS or not key.isprintable() or unstorable(key):
        raise Invalid(f"A key has 1 to {MAX_KEY_CHARS} printable characters.", field=HEADER)
