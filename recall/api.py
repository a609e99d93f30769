from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from elowen.lib.errors import Invalid
from memories import rows
from memories.api.memories import MemoryList
from memories.api.paging import validated
from memories.gauge import Gauge
from memories.models import Account, Memory
from memories.requests import account_of
from recall.explaining import explain
from recall.retrieval import PackedMemory, Recall, Version, retrieve
from recall.scope import project_at, recall_scope
from recall.search import search, similar
from recall.serializers import ExplainReply, RecallReply, RetrieveInput, SimilarInput

PATH_HEADER, DEGRADED_HEADER = "X-Elowen-Recall", "X-Elowen-Degraded"
ROW = ("id", "owner_id", "category_id", "body", "kind", "importance", "created_at", "updated_at")


class Retrieve(APIView):
    """The memories that matter for a question, inside a count and a byte budget."""

    only_reads = True

    @extend_schema(operation_id="memory_retrieve", request=RetrieveInput, responses=RecallReply)
    def post(self, request: Request) -> Response:
        recall = retrieve(**question_of(request))
        return Response({"memories": [_row(one) for one in recall.memories]}, headers=headers_of(recall))


class Explain(APIView):
    """Why a recall answers what it answers: each candidate with its numbers and what became of it."""

    only_reads = True

    @extend_schema(operation_id="memory_explain", request=RetrieveInput, responses=ExplainReply)
    def post(self, request: Request) -> Response:
        return Response(ExplainReply(explain(**question_of(request))).data)


class Similar(APIView):
    """Own memories that say nearly the same as a text, to warn before it is stored twice."""

    only_reads = True

    @extend_schema(operation_id="memory_similar", request=SimilarInput, responses=RecallReply)
    def post(self, request: Request) -> Response:
        account = account_of(request)
        found = similar(account, validated(SimilarInput, request.data)["body"])
        bodies = Memory.objects.active().owned_by(account).in_bulk([memory_id for memory_id, _ in found])
        memories = [_row(PackedMemory(bodies[pk], cosine, cosine)) for pk, cosine in found if pk in bodies]
        return Response({"memories": memories})


class MemoryListWithSearch(MemoryList):
    """The list, which with `q` finds by meaning and then by words, within the other filters."""

    def browse(self, request: Request, query: dict[str, Any], found: QuerySet[Memory]) -> Response:
        if "q" not in query:
            return super().browse(request, query, found)
        if "cursor" in query:
            raise Invalid("A search has one page; ask for more with limit.", field="cursor")
        ids, path = search(account_of(request), found, query["q"], limit=query["limit"])
        by_id = {row["id"]: row for row in found.filter(pk__in=ids).values(*rows.ROW_FIELDS)}
        results = rows.memory_rows([by_id[pk] for pk in ids if pk in by_id], Gauge.today())
        return Response({"results": results, "next": None, "previous": None}, headers={PATH_HEADER: path})


def question_of(request: Request) -> dict[str, Any]:
    data, account = validated(RetrieveInput, request.data), account_of(request)
    return {
        "account": account,
        "query": data["query"],
        "scope": recall_scope(account, _project_of(account, data)),
        "count": data.get("count"),
        "byte_budget": data.get("byteBudget"),
        "exclude": [Version(one["id"], one.get("bodySha256")) for one in data.get("exclude", [])],
    }


def _project_of(account: Account, data: dict[str, Any]) -> int | None:
    if "projectId" in data or "workingDirectory" not in data:
        return data.get("projectId")
    return project_at(account, data["workingDirectory"])


def headers_of(recall: Recall) -> dict[str, str]:
    return {PATH_HEADER: recall.path} | ({DEGRADED_HEADER: "true"} if recall.degraded else {})


def _row(one: PackedMemory) -> dict[str, Any]:
    row = {name: getattr(one.memory, name) for name in ROW}
    return row | {"body_sha256": one.body_sha256, "score": one.score, "similarity": one.similarity}
