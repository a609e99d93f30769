from collections.abc import Callable, Mapping
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from elowen.lib.errors import Conflict, ElowenError, Invalid, Refused, Stale
from memories import config
from memories.api.paging import validated
from memories.limits import Limits, in_force
from memories.policy import BOUNDS, DEFAULT_POLICY, from_document, to_document
from memories.requests import account_of
from memories.serializers import ConfigDocument, ConfigInput


class RevisionNeeded(ElowenError):
    """Say which revision you read, in If-Match or as `revision`."""

    code = "revision_needed"


class StaleDocument(Conflict):
    """Somebody else has changed the settings; look at `current` and decide again."""

    code = "stale"

    def __init__(self, current: dict[str, Any]) -> None:
        super().__init__()
        self.more = {"current": current}


type LimitsUnder = Callable[[Mapping[str, Any]], Limits]


def no_limits(sections: Mapping[str, Any]) -> Limits:
    return {}


class Config(APIView):
    limits_under: LimitsUnder = staticmethod(no_limits)  # which limits there are under these settings

    @extend_schema(operation_id="config_get", responses=ConfigDocument)
    def get(self, request: Request) -> Response:
        return self.reply()

    @extend_schema(
        operation_id="config_change",
        request=ConfigInput,
        responses=ConfigDocument,
        parameters=[OpenApiParameter("If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER)],
    )
    def patch(self, request: Request) -> Response:
        account = account_of(request)
        if not account.is_staff:
            raise Refused("Only administrators change settings.")
        data = validated(ConfigInput, request.data)
        changes = changes_in(data, self.limits_under(config.load_document()[0]))
        revision = stated_revision(request, data)
        try:
            config.save(by=account, changes=changes, revision=revision)
        except Stale as stale:
            raise StaleDocument(document(self.limits_under)) from stale
        return self.reply()

    def reply(self) -> Response:
        current = document(self.limits_under)
        return Response(current, headers={"ETag": f'"{current["revision"]}"'})


def document(limits_under: LimitsUnder) -> dict[str, Any]:
    """Return the settings in force, with what they are by default and may be."""
    sections, revision = config.load_document()
    limits = limits_under(sections)
    policy = from_document(sections.get(config.RETENTION, {}))
    defaults = {name: limit.default for name, limit in limits.items()}
    bounds = {name: [limit.low, limit.high] for name, limit in limits.items()}
    retention_bounds = {name: [bound.low, bound.high] for name, bound in BOUNDS.items()}
    return {
        "revision": revision,
        **tree(to_document(policy), in_force(limits, sections), limits),
        "defaults": tree(to_document(DEFAULT_POLICY), defaults, limits),
        "bounds": tree(retention_bounds, bounds, limits),
    }


def tree(retention: dict[str, Any], values: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """Nest the values as programs see them."""

    def of(section: str) -> dict[str, Any]:
        return {name: value for name, value in values.items() if limits[name].section == section}

    return {
        "runtime": {"memoryRetention": retention, "limits": of("runtime.limits")},
        "brain": {"limits": of("brain.limits")},
    }


def changes_in(data: dict[str, Any], limits: Limits) -> dict[str, dict[str, Any]]:
    """Return what is to change, by section."""
    runtime, brain = data.get("runtime", {}), data.get("brain", {})
    changes = {
        config.RETENTION: runtime.get("memoryRetention"),
        "runtime.limits": runtime.get("limits"),
        "brain.limits": brain.get("limits"),
    }
    for section in ("runtime.limits", "brain.limits"):
        for name, value in (changes[section] or {}).items():
            refuse_out_of_bounds(section, name, value, limits)
    return {section: change for section, change in changes.items() if change}


def refuse_out_of_bounds(section: str, name: str, value: int, limits: Limits) -> None:
    limit = limits.get(name)
    if limit is None or limit.section != section:
        raise Invalid("There is no such setting.", field=name.encode("utf-8", "replace").decode())
    if not limit.allows(value):
        raise Invalid(f"From {limit.low} to {limit.high}.", field=name)


def stated_revision(request: Request, data: dict[str, Any]) -> int:
    """Return the revision the client read. A tag that is none of ours stands for no revision there is."""
    tag = request.headers.get("If-Match")
    if tag is None and "revision" not in data:
        raise RevisionNeeded
    if tag is None:
        return int(data["revision"])
    number = tag.strip('"')
    return int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0
