"""Memories over REST: each view validates, calls an action or a QuerySet, and answers."""

from datetime import UTC, datetime
from typing import Any

from django.db.models import Expression, F, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from elowen.lib import pages
from elowen.lib.errors import NotFound
from memories import rows
from memories.actions import editing, merging, purging
from memories.actions.editing import NewMemory
from memories.api.paging import beyond, page_reply, page_response, validated, validated_query
from memories.config import retention_policy, usable
from memories.gauge import Gauge
from memories.idempotency import HEADER, idempotent
from memories.models import Account, Memory
from memories.requests import account_of, source_of
from memories.serializers import (
    BatchInput,
    BatchReply,
    CategoryChoice,
    ChangeInput,
    EmptyInput,
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


def row_response(memory: Memory, status: int = 200) -> Response:
    memory.refresh_from_db()
    row = rows.memory_row(memory, Gauge.today())
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
        name, descending = ordering.lstrip("-"), ordering.startswith("-")
        cursor = pages.cursor_in(query, ordering=ordering, kind=KINDS[name])
        gauge = Gauge(retention_policy(), cursor.now if cursor else timezone.now())
        page = pages.page_of(
            found.annotate(place=place_of(name, descending, gauge)).values(*rows.ROW_FIELDS, "place"),
            ordering="-place" if descending else "place",
            limit=query["limit"],
            cursor=cursor,
            now=gauge.now,
            key=lambda row: (row["place"], row["id"]),
            after=beyond,
        )
        return page_response(request, page, rows.memory_rows(page.rows, gauge), ordering)


FILTERS = {
    "kind": "kind",
    "projectId": "category__project_id",
    "importanceMin": "importance__gte",
    "importanceMax": "importance__lte",
}
KINDS = {
    "updated_at": datetime,
    "created_at": datetime,
    "last_used_at": datetime,
    "importance": int,
    "vitality": float,
}
NEVER_FIRST, NEVER_LAST = datetime(1000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


def place_of(name: str, descending: bool, gauge: Gauge) -> Expression | F:
    """Return what the list is sorted by. It is never null: what was never used comes last either way."""
    if name == "vitality":
        return vitality_sql(usable(gauge.policy), gauge.now)
    if name == "last_used_at":
        return Coalesce("last_used_at", NEVER_FIRST if descending else NEVER_LAST)
    return F(name)


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
        gauge = Gauge.today()
        results = [rows.memory_row(fresh[memory.pk], gauge) for memory in stored]
        return Response({"results": results}, status=201)


class MemoryDetail(APIView):
    @extend_schema(operation_id="memory_get", responses=MemoryRow)
    def get(self, request: Request, memory_id: int) -> Response:
        readable = Memory.objects.not_deleted().readable_by(account_of(request))
        memory = readable.filter(pk=memory_id).first()
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
        keep = validated(RestoreInput, request.data)["keep"]
        return row_response(editing.restore_memory(memory_id=memory_id, by=account_of(request), keep=keep))


class MemoryArchive(APIView):
    @extend_schema(operation_id="memory_archive", request=EmptyInput, responses=MemoryRow)
    def post(self, request: Request, memory_id: int) -> Response:
        validated(EmptyInput, request.data)
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
        validated(EmptyInput, request.data)
        return Response({"purged": purging.empty_trash(by=account_of(request))})
