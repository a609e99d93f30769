"""What the OpenAPI document says beyond the views: the keys, and the problems every call may answer with."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

PROBLEM = {
    "type": "object",
    "description": "An RFC 9457 problem document.",
    "required": ["type", "title", "status", "detail", "code", "errors"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "Stable; for programs."},
        "errors": {"type": "object", "description": "What is wrong, by field.", "additionalProperties": True},
    },
}
ANSWERS = {
    "400": "A value cannot be accepted",
    "401": "No valid key or session",
    "403": "Not allowed",
    "404": "Not there, or not yours",
    "405": "The path does not know this method",
    "409": "The state does not allow it",
    "412": "The record has moved",
    "413": "The request is too large",
    "415": "Not JSON",
    "422": "The Idempotency-Key was used for another request",
    "428": "A revision is needed",
    "503": "A part of the service does not answer",
}
METHODS = ("get", "post", "put", "patch", "delete")


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "elowen.api.KeyAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An API key: `elw_…`"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "elowen.api.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}


def document_problems(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    result.setdefault("components", {}).setdefault("schemas", {})["Problem"] = PROBLEM
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for path in result["paths"].values():
        for method in METHODS:
            if operation := path.get(method):
                _add_answers(operation, content)
    return result


def _add_answers(operation: dict[str, Any], content: dict[str, Any]) -> None:
    for status, description in ANSWERS.items():
        operation["responses"].setdefault(status, {"description": description, "content": content})
