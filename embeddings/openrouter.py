"""Signing in at OpenRouter (OAuth with PKCE). What comes of it is a permanent key, kept as a connection."""

import base64
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Self
from urllib.parse import urlencode

from django.conf import settings

from elowen.lib.errors import Invalid
from elowen.providers.errors import InvalidAnswer
from elowen.providers.http import post_json


@dataclass(frozen=True)
class SignIn:
    """One attempt. Who comes back has to bring the state along; the verifier never leaves the server."""

    state: str
    verifier: str

    @classmethod
    def begin(cls) -> Self:
        return cls(state=secrets.token_urlsafe(24), verifier=secrets.token_urlsafe(48))

    @property
    def challenge(self) -> str:
        digest = sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def address(sign_in: SignIn, *, back: str) -> str:
    """Return where the person agrees; OpenRouter then sends them `back` with a code."""
    query = {"callback_url": back, "code_challenge": sign_in.challenge, "code_challenge_method": "S256"}
    return f"{settings.OPENROUTER_URL}/auth?{urlencode(query)}"


def key_for(code: str, sign_in: SignIn) -> str:
    """Exchange the code, which works once, for the key.

    Raises:
        Invalid: OpenRouter cannot have given this code.
        ProviderFailed: it gives no key for it.
    """
    if not 1 <= len(code) <= 500:
        raise Invalid("This is no code of OpenRouter.")
    answer = post_json(
        f"{settings.OPENROUTER_URL}/api/v1/auth/keys",
        {"code": code, "code_verifier": sign_in.verifier, "code_challenge_method": "S256"},
        key=None,
        allow_link_local=settings.ALLOW_LINK_LOCAL,
    )
    key = answer.get("key") if isinstance(answer, dict) else None
    if not isinstance(key, str) or not key:
        raise InvalidAnswer("OpenRouter answered without a key.")
    return key
