"""API keys: made, checked, revoked. Only the digest of a secret is stored."""

import re
import secrets
import string
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hmac import compare_digest

from django.db.models import Q
from django.utils import timezone

from elowen.lib.errors import Invalid, NotFound, Refused
from elowen.lib.hashing import text_hash
from memories.models import Account, ApiKey

PREFIX_CHARS, SECRET_BYTES = 8, 32
_SHAPE = re.compile(r"^(elw_[A-Za-z0-9]{8})_([A-Za-z0-9_-]{32,128})$")
_LEAST_DISTINCT_CHARS = 12
_NO_DIGEST = bytes(32)
_LAST_USED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class IssuedKey:
    """A new key with its secret, which nobody can see again."""

    key: ApiKey
    secret: str


def issue_key(
    *,
    account: Account,
    name: str,
    scopes: Sequence[str] = (ApiKey.Scope.READ, ApiKey.Scope.WRITE),
    expires_at: datetime | None = None,
    secret: str | None = None,
    maker: ApiKey | None = None,
) -> IssuedKey:
    """Make a key, or register a given secret.

    Args:
        maker: the key that asks for it; the new one may not do more than that, nor for longer.
    Raises:
        Invalid: the given secret has not the shape of a key, or is too easy to guess; or the time is past.
        Refused: the new key would outgrow its maker.
    """
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid("A key has to expire in the future.", field="expiresAt")
    if maker is not None:
        _refuse_to_outgrow(maker, scopes, expires_at)
    secret = _new_secret() if secret is None else _strong(secret)
    key = ApiKey.objects.create(
        account=account,
        name=name,
        prefix=_prefix(secret),
        digest=text_hash(secret),
        scopes=sorted(set(scopes)),
        expires_at=expires_at,
    )
    return IssuedKey(key, secret)


def authenticate_key(secret: str) -> ApiKey | None:
    """Return the usable key with this secret and remember that it was used, or None."""
    key = ApiKey.objects.usable().select_related("account").filter(prefix=_prefix(secret)).first()
    # The comparison also runs for an unknown prefix, so that time tells nothing.
    digest = bytes(key.digest) if key else _NO_DIGEST
    if not compare_digest(digest, text_hash(secret)) or key is None:
        return None
    _remember_use(key)
    return key


def revoke_key(*, account: Account, key_id: int) -> None:
    rows = ApiKey.objects.filter(account=account, pk=key_id)
    if not rows.exists():
        raise NotFound
    rows.filter(revoked_at=None).update(revoked_at=timezone.now())


def _refuse_to_outgrow(maker: ApiKey, scopes: Sequence[str], expires_at: datetime | None) -> None:
    if not set(scopes) <= set(maker.scopes):
        raise Refused("A key cannot make a key that may do more than itself.", field="scopes")
    if maker.expires_at is not None and (expires_at is None or expires_at > maker.expires_at):
        raise Refused("A key cannot make a key that lives longer than itself.", field="expiresAt")


def _remember_use(key: ApiKey) -> None:
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _LAST_USED_EVERY)
    ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)


def _prefix(secret: str) -> str:
    return secret[: len("elw_") + PREFIX_CHARS]


def _new_secret() -> str:
    alphabet = string.ascii_letters + string.digits
    prefix = "".join(secrets.choice(alphabet) for _ in range(PREFIX_CHARS))
    return f"elw_{prefix}_{secrets.token_urlsafe(SECRET_BYTES)}"


def _strong(secret: str) -> str:
    shape = _SHAPE.match(secret)
    if shape and len(set(shape[2])) >= _LEAST_DISTINCT_CHARS:
        return secret
    raise Invalid(
        "A key looks like elw_<8 letters or digits>_<32 or more random characters>; "
        "leave it out to have a strong one made.",
        field="secret",
    )
