from typing import cast

from django.http import HttpRequest
from rest_framework.request import Request

from memories.models import Account, ApiKey, Memory


def account_of(request: Request | HttpRequest) -> Account:
    """Return who asks, behind a permission or a login that has seen to it that there is somebody."""
    return cast(Account, request.user)


def source_of(request: Request) -> Memory.Source:
    """Programs come with a key, people with a session."""
    return Memory.Source.AGENT if isinstance(request.auth, ApiKey) else Memory.Source.USER
