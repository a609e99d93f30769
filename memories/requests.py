from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from rest_framework.request import Request

from memories.models import Account, ApiKey, Memory

type View = Callable[..., HttpResponse]


def account_of(request: Request | HttpRequest) -> Account:
    """Return who asks, behind a permission or a login that has seen to it that there is somebody."""
    return cast(Account, request.user)


def source_of(request: Request) -> Memory.Source:
    """Programs come with a key, people with a session."""
    return Memory.Source.AGENT if isinstance(request.auth, ApiKey) else Memory.Source.USER


def administrators_only(page: str) -> Callable[[View], View]:
    """Return a decorator that lets administrators in; whoever signs in for it comes to that page."""

    def decorate(view: View) -> View:
        @wraps(view)
        def checked(request: HttpRequest, **arguments: Any) -> HttpResponse:
            if not request.user.is_authenticated:
                return _sign_in(request, page)
            if not account_of(request).is_staff:
                raise PermissionDenied
            return view(request, **arguments)

        return checked

    return decorate


def _sign_in(request: HttpRequest, page: str) -> HttpResponse:
    answer = redirect_to_login(reverse(page))
    # Of a redirect htmx would put the page into the fragment's place.
    return HttpResponse(headers={"HX-Redirect": answer.url}) if "HX-Request" in request.headers else answer
