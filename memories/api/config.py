from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from elowen.lib.errors import Conflict, ElowenError, Refused, Stale
from memories import config
from memories.api.memories import validated
from memories.models import Account
from memories.policy import BOUNDS, DEFAULT_POLICY, clamp, from_document, to_document
from memories.requests import account_of
from memories.serializers import ConfigDocument, ConfigInput


class RevisionNeeded(ElowenError):
    """Say which revision you read, in If-Match or as `revision`."""

    code = "revision_needed"


def document() -> dict[str, Any]:
    sections, revision = config.load_document()
    retention = to_document(from_document(sections.get(config.RETENTION, {})))
    return {
        "revision": revision,
        "runtime": {"memoryRetention": retention},
        "defaults": {"runtime": {"memoryRetention": to_document(DEFAULT_POLICY)}},
        "bounds": {"runtime": {"memoryRetention": {name: [b.low, b.high] for name, b in BOUNDS.items()}}},
    }


def reply(status: int = 200) -> Response:
    current = document()
    return Response(current, status=status, headers={"ETag": f'"{current["revision"]}"'})


def change_retention(*, by: Account, change: dict[str, Any], revision: int) -> None:
    sections, _ = config.load_document()
    policy = clamp(from_document(sections.get(config.RETENTION, {})), change)
    config.save_section(name=config.RETENTION, document=to_document(policy), revision=revision, by=by)


def stated_revision(request: Request, data: dict[str, Any]) -> int:
    stated = request.headers.get("If-Match", "").strip('"')
    if stated.isascii() and stated.isdigit() and len(stated) < 19:
        return int(stated)
    if "revision" not in data:
        raise RevisionNeeded
    return int(data["revision"])


class Config(APIView):
    @extend_schema(operation_id="config_get", responses=ConfigDocument)
    def get(self, request: Request) -> Response:
        return reply()

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
        revision = stated_revision(request, data)
        try:
            change_retention(by=account, change=data["runtime"].get("memoryRetention", {}), revision=revision)
        except Stale as stale:
            raise StaleDocument(document()) from stale
        return reply()


class StaleDocument(Conflict):
    """Somebody else has changed the settings; look at `current` and decide again."""

    code = "stale"

    def __init__(self, current: dict[str, Any]) -> None:
        super().__init__()
        self.more = {"current": current}
