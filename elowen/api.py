"""How programs come in, and how errors go out: keys, scopes, and one exception handler."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import DataError, IntegrityError
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from psycopg.errors import CheckViolation, NotNullViolation
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication
from rest_framework.authentication import SessionAuthentication as DRFSessionAuthentication
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from elowen.lib import errors
from elowen.lib.rest import TooLarge
from elowen.lib.text import unstorable
from memories.actions.keys import authenticate_key
from memories.models import Account, ApiKey

if TYPE_CHECKING:
    from rest_framework.views import APIView

PROBLEM_TYPE = "application/problem+json"
STATUS: dict[type, int] = {
    errors.NotFound: 404,
    errors.Invalid: 400,
    errors.Refused: 403,
    errors.Conflict: 409,
    errors.Stale: 412,
    errors.Unavailable: 503,
}
CODES = {"idempotency_key_reused": 422, "revision_needed": 428}
TITLES = {
    400: "Invalid input", 401: "Not signed in", 403: "Refused", 404: "Not found", 405: "Method not allowed",
    409: "Conflict", 412: "Stale", 413: "Too large", 415: "Unsupported media type",
    422: "Key used for another request", 428: "Precondition required", 503: "Unavailable",
}  # fmt: skip


class KeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer elw_…` or `X-API-Key: elw_…`."""

    def authenticate(self, request: Request) -> tuple[Account, ApiKey] | None:
        secret = _presented_key(request)
        if secret is None:
            return None
        key = None if unstorable(secret) else authenticate_key(secret)
        if key is None:
            raise exceptions.AuthenticationFailed("This key is unknown, expired or revoked.")
        return key.account, key

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="elowen"'


class SessionAuthentication(DRFSessionAuthentication):
    """The browser's session, with its CSRF token."""


class HasScope(BasePermission):
    """A key may do what its scopes say; a session may do everything its account may."""

    message = "This key lacks the scope for that."

    def has_permission(self, request: Request, view: "APIView") -> bool:
        if not isinstance(request.auth, ApiKey):
            return True
        reads = request.method in SAFE_METHODS or getattr(view, "only_reads", False)
        return ("read" if reads else "write") in request.auth.scopes


def problem_response(error: Exception, context: Mapping[str, Any]) -> JsonResponse | None:
    """Turn an error into an RFC 9457 problem document; None for what is a fault of ours.

    It goes past the view's renderers: a problem is JSON where the view answers in HTML too, and its escapes
    can carry whatever a client sent.
    """
    document, headers = _describe(error)
    if document is None:
        return None
    return JsonResponse(document, status=document["status"], content_type=PROBLEM_TYPE, headers=headers)


def problem(
    status: int, *, code: str, detail: str, errors: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "type": f"urn:elowen:problem:{code}",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "code": code,
        "errors": dict(errors or {}),
    }


@csrf_exempt  # there is nothing here to protect, and a program should be told so
def unknown_path(request: HttpRequest) -> JsonResponse:
    return problem_page(404, code="not_found", detail="There is nothing at this path.")


def problem_page(status: int, *, code: str, detail: str) -> JsonResponse:
    """Answer with a problem where no view of the REST framework is at work."""
    document = problem(status, code=code, detail=detail)
    return JsonResponse(document, status=status, content_type=PROBLEM_TYPE)


def _presented_key(request: Request) -> str | None:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    return request.headers.get("X-API-Key")


def _describe(error: Exception) -> tuple[dict[str, Any] | None, dict[str, str]]:
    if isinstance(error, errors.ElowenError):
        return _describe_ours(error), {}
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    if isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    if isinstance(error, RequestDataTooBig):
        error = TooLarge()
    if isinstance(error, exceptions.APIException):
        return _describe_framework(error)
    if isinstance(error, IntegrityError):
        return _describe_broken_constraint(error), {}
    if isinstance(error, DataError):
        return problem(400, code="invalid", detail="A value cannot be stored."), {}
    return None, {}


def _describe_ours(error: errors.ElowenError) -> dict[str, Any]:
    status = CODES.get(error.code) or next((STATUS[k] for k in type(error).__mro__ if k in STATUS), 400)
    fields = {error.field: [str(error)]} if error.field else {}
    return problem(status, code=error.code, detail=str(error), errors=fields) | getattr(error, "more", {})


def _describe_broken_constraint(error: IntegrityError) -> dict[str, Any]:
    """A row that no state would allow is bad input; one that another row forbids came second."""
    if isinstance(error.__cause__, CheckViolation | NotNullViolation):
        name = error.__cause__.diag.constraint_name or "required"
        return problem(400, code="invalid", detail=f"A value is out of its bounds ({name}).")
    return problem(409, code="conflict", detail="Another change came first; read and try again.")


def _describe_framework(error: exceptions.APIException) -> tuple[dict[str, Any], dict[str, str]]:
    headers = {}
    if auth_header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = auth_header
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait))
    if isinstance(error, exceptions.ValidationError):
        fields = (
            cast("dict[str, Any]", error.detail) if isinstance(error.detail, dict) else {"body": error.detail}
        )
        detail = f"Check {', '.join(sorted(fields))}."
        return problem(400, code="invalid", detail=detail, errors=fields), headers
    code = str(getattr(error, "default_code", "error"))
    return problem(error.status_code, code=code, detail=str(error.detail)), headers
