from typing import cast

from django.http import HttpRequest
from rest_framework.request import Request

from memories.models import Account, ApiKey, Memory


class AccountRequest(HttpRequest):
    """A page's request after sign-in."""

    user: Account


def account_of(request: Request) -> Account:
    return cast(Account, request.user)


def source_of(request: Request) -> Memory.Source:
    """Programs come with a key, people with a session."""
    return Memory.Source.AGENT if isinstance(request.auth, ApiKey) else Memory.Source.USER
