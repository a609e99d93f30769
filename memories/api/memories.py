"""Memories over REST: each view validates, calls an action or a QuerySet, and answers."""

from datetime import datetime
from typing import Any

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers as drf
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from elowen.lib import pages
from elowen.lib.errors import Invalid, NotFound
from memories import rows
from memories.actions import editing, merging, purging
from memories.actions.editing import NewMemory
from memories.config import retention_policy
from memories.idempotency import HEADER, idempotent
from memories.models import Account, Memory, MemoryEvent
from memories.requests import account_of, source_of
from memories.serializers import (
    BatchInput,
    BatchReply,
    CategoryChoice,
    ChangeInput,
    EmptyInput,
    EventQuery,
    EventRow,
    IdsInput,
    ListQuery,
    MemoryRow,
    MergeInput,
    NewMemoryInput,
    PurgedReply,
    RestoreInput,
)
from memories.vitality_sql import vitality_sql

IDEMPOTENCY_KEY = OpenApiParameter(
    HEADER, OpenApiTypes.STR, OpenApiParameter.HEADER, description="Store once, answer alike for 24 hours."
)
IF_MATCH = OpenApiParameter(
    "If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description="The ETag of the row as you read it."
)


def page_reply(name: str, row: type[drf.Serializer[Any]]) -> drf.Serializer[Any]:
    return inline_serializer(
        name,
        {
            "results": row(many=True),
            "next": drf.CharField(allow_null=True),
            "previous": drf.CharField(allow_null=True),
        },
    )


def validated(kind: type[drf.Serializer[Any]], data: Any) -> dict[str, Any]:
    serializer = kind(data=data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


def validated_query(kind: type[drf.Serializer[Any]], request: Request) -> dict[str, Any]:
    """Check the query parameters; unknown and repeated ones are refused by name."""
    known = kind().get_fields()
    for name, values in request.query_params.lists():
        if name not in known:
            raise Invalid("There is no such parameter.", field=name.encode("utf-8", "replace").decode())
        if len(values) > 1:
            raise Invalid("Give this parameter once.", field=name)
    return validated(kind, request.query_params.dict())


def row_response(memory: Memory, status: int = 200) -> Response:
    memory.refresh_from_db()
    row = rows.memory_row(memory, retention_policy(), timezone.now())
    return Response(row, status=status, headers={"ETag": editing.etag(memory)})


class MemoryList(APIView):
    @extend_schema(
        operation_id="memory_list", parameters=[ListQuery], responses=page_reply("MemoryPage", MemoryRow)
    )
    def get(self, request: Request) -> Response:
        query = validated_query(ListQuery, request)
        return self.browse(request, query, self.filtered(account_of(request), query))

    @extend_schema(
        operation_id="memory_create",
        request=NewMemoryInput,
        responses={201: MemoryRow},
        parameters=[IDEMPOTENCY_KEY],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        entry = new_memory(validated(NewMemoryInput, request.data))
        memory = editing.add_memories(by=account_of(request), entries=[entry], source=source_of(request))[0]
        return row_response(memory, status=201)

    def filtered(self, account: Account, query: dict[str, Any]) -> QuerySet[Memory]:
        found: QuerySet[Memory] = Memory.objects.readable_by(account)
        if query["status"] != "all":
            found = found.filter(status=query["status"])
        for parameter, lookup in FILTERS.items():
            if parameter in query:
                found = found.filter(**{lookup: query[parameter]})
        if "categoryId" in query:
            chosen = query["categoryId"]
            found = found.filter(category=None if chosen == "null" else int(chosen))
        return found

    def browse(self, request: Request, query: dict[str, Any], found: QuerySet[Memory]) -> Response:
        ordering = query["ordering"]
        cursor = pages.decode(query["cursor"], ordering=ordering) if query.get("cursor") else None
        now, policy = (cursor.now if cursor else timezone.now()), retention_policy()
        if ordering.lstrip("-") == "vitality":
            found = found.annotate(place=vitality_sql(policy, now))
        else:
            found = found.annotate(place=PLACES[ordering.lstrip("-")])
        sign = "-" if ordering.startswith("-") else ""
        page = pages.page_of(
            found.values(*rows.ROW_FIELDS, "place"),
            ordering=f"{sign}place",
            limit=query["limit"],
            cursor=cursor,
            now=now,
            key=lambda row: (row["place"], row["id"]),
            after=beyond,
        )
        return Response(
            {
                "results": rows.memory_rows(page.rows, policy, now),
                "next": link(request, page.next, ordering),
                "previous": link(request, page.previous, ordering),
            }
        )


FILTERS = {
    "kind": "kind",
    "projectId": "category__project_id",
    "importanceMin": "importance__gte",
    "importanceMax": "importance__lte",
}
PLACES = {
    "updated_at": F("updated_at"),
    "created_at": F("created_at"),
    "importance": F("importance"),
    # Never used counts as used longest ago.
    "last_used_at": Coalesce(
        "last_used_at", datetime.min.replace(tzinfo=timezone.get_default_timezone(), year=1000)
    ),
}


def beyond(greater: bool, value: Any, row_id: int) -> Q:
    side = "gt" if greater else "lt"
    return Q(**{f"place__{side}": value}) | Q(**{"place": value, f"id__{side}": row_id})


def link(request: Request, cursor: pages.Cursor | None, ordering: str) -> str | None:
    """Return the address of a neighbouring page, with every other parameter kept."""
    if cursor is None:
        return None
    params = request.query_params.copy()
    params["cursor"] = pages.encode(pages.Cursor(ordering, *list(vars(cursor).values())[1:]))
    return f"{request.build_absolute_uri(request.path)}?{params.urlencode()}"


def new_memory(data: dict[str, Any]) -> NewMemory:
    return NewMemory(
        data["body"], data["kind"], data["importance"], data.get("categoryId"), data.get("projectId")
    )


class MemoryBatch(APIView):
    @extend_schema(
        operation_id="memory_batch",
        request=BatchInput,
        responses={201: BatchReply},
        parameters=[IDEMPOTENCY_KEY],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        entries = [new_memory(one) for one in validated(BatchInput, request.data)["memories"]]
        stored = editing.add_memories(by=account_of(request), entries=entries, source=source_of(request))
        fresh = Memory.objects.in_bulk([memory.pk for memory in stored])
        policy, now = retention_policy(), timezone.now()
        results = [rows.memory_row(fresh[memory.pk], policy, now) for memory in stored]
        return Response({"results": results}, status=201)


class MemoryDetail(APIView):
    @extend_schema(operation_id="memory_get", responses=MemoryRow)
    def get(self, request: Request, memory_id: int) -> Response:
        rows_ = Memory.objects.not_deleted().readable_by(account_of(request))
        memory = rows_.filter(pk=memory_id).first()
        if memory is None:
            raise NotFound
        return row_response(memory)

    @extend_schema(
        operation_id="memory_change", request=ChangeInput, responses=MemoryRow, parameters=[IF_MATCH]
    )
    def patch(self, request: Request, memory_id: int) -> Response:
        memory = editing.change_memory(
            memory_id=memory_id,
            by=account_of(request),
            changes=validated(ChangeInput, request.data),
            if_match=request.headers.get("If-Match"),
        )
        return row_response(memory)

    @extend_schema(operation_id="memory_delete", responses={204: None})
    def delete(self, request: Request, memory_id: int) -> Response:
        editing.delete_memory(memory_id=memory_id, by=account_of(request))
        return Response(status=204)


class MemoryRestore(APIView):
    @extend_schema(operation_id="memory_restore", request=RestoreInput, responses=MemoryRow)
    def post(self, request: Request, memory_id: int) -> Response:
        keep = validated(RestoreInput, request.data or {})["keep"]
        return row_response(editing.restore_memory(memory_id=memory_id, by=account_of(request), keep=keep))


class MemoryArchive(APIView):
    @extend_schema(operation_id="memory_archive", request=EmptyInput, responses=MemoryRow)
    def post(self, request: Request, memory_id: int) -> Response:
        validated(EmptyInput, request.data or {})
        return row_response(editing.archive_memory(memory_id=memory_id, by=account_of(request)))


class MemoryPurge(APIView):
    @extend_schema(operation_id="memory_purge", responses={204: None})
    def delete(self, request: Request, memory_id: int) -> Response:
        purging.purge_memory(memory_id=memory_id, by=account_of(request))
        return Response(status=204)


class MemoryCategory(APIView):
    @extend_schema(operation_id="memory_set_category", request=CategoryChoice, responses=MemoryRow)
    def put(self, request: Request, memory_id: int) -> Response:
        category_id = validated(CategoryChoice, request.data)["categoryId"]
        memory = editing.set_category(memory_id=memory_id, by=account_of(request), category_id=category_id)
        return row_response(memory)


class MemoryMerge(APIView):
    @extend_schema(
        operation_id="memory_merge",
        request=MergeInput,
        responses={201: MemoryRow},
        parameters=[IDEMPOTENCY_KEY],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        memory = merging.merge_memories(by=account_of(request), **validated(MergeInput, request.data))
        return row_response(memory, status=201)


class PurgeMany(APIView):
    @extend_schema(operation_id="memory_purge_many", request=IdsInput, responses=PurgedReply)
    def post(self, request: Request) -> Response:
        ids = validated(IdsInput, request.data)["ids"]
        return Response({"purged": purging.purge_memories(by=account_of(request), ids=ids)})


class EmptyTrash(APIView):
    @extend_schema(operation_id="memory_empty_trash", request=EmptyInput, responses=PurgedReply)
    def post(self, request: Request) -> Response:
        validated(EmptyInput, request.data or {})
        return Response({"purged": purging.empty_trash(by=account_of(request))})


class EventFeed(APIView):
    """Changes of one's own memories, newest first."""

    @extend_schema(
        operation_id="memory_events", parameters=[EventQuery], responses=page_reply("EventPage", EventRow)
    )
    def get(self, request: Request) -> Response:
        return self.feed(request, MemoryEvent.objects.filter(account_id=account_of(request).pk))

    def feed(self, request: Request, events: QuerySet[MemoryEvent]) -> Response:
        query = validated_query(EventQuery, request)
        cursor = pages.decode(query["cursor"], ordering="-id") if query.get("cursor") else None
        page = pages.page_of(
            events.annotate(place=F("id")),
            ordering="-place",
            limit=query["limit"],
            cursor=cursor,
            now=timezone.now(),
            key=lambda event: (event.pk, event.pk),
            after=beyond,
        )
        return Response(
            {
                "results": EventRow(page.rows, many=True).data,
                "next": link(request, page.next, "-id"),
                "previous": link(request, page.previous, "-id"),
            }
        )


class MemoryEvents(EventFeed):
    """The whole trail of one memory, for everyone who may read it; its author keeps it after a purge."""

    @extend_schema(
        operation_id="memory_events_of_one",
        parameters=[EventQuery],
        responses=page_reply("EventPageOfOne", EventRow),
    )
    def get(self, request: Request, memory_id: int) -> Response:  # type: ignore[override]
        events = MemoryEvent.objects.filter(memory_id=memory_id)
        if not Memory.objects.readable_by(account_of(request)).filter(pk=memory_id).exists():
            events = events.filter(account_id=account_of(request).pk)
            gone = not Memory.objects.filter(pk=memory_id).exists()
            if not (gone and events.exists()):
                raise NotFound
        return self.feed(request, events)
