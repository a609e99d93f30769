from dataclasses import asdict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from elowen.lib.errors import NotFound
from memories.actions.editing import keep_memory
from memories.api.memories import row_response
from memories.api.paging import validated, validated_query
from memories.history import history_of
from memories.models import Memory
from memories.requests import account_of
from memories.serializers import DaysQuery, EmptyInput, MemoryRow, VitalityHistoryReply


class MemoryVitality(APIView):
    """How alive a memory was and will be; of every memory that one may read, in the trash as well."""

    @extend_schema(
        operation_id="memory_vitality_history", parameters=[DaysQuery], responses=VitalityHistoryReply
    )
    def get(self, request: Request, memory_id: int) -> Response:
        days = validated_query(DaysQuery, request)["days"]
        memory = Memory.objects.readable_by(account_of(request)).filter(pk=memory_id).first()
        if memory is None:
            raise NotFound
        return Response(VitalityHistoryReply(asdict(history_of(memory, days=days))).data)


class MemoryKeep(APIView):
    """Count contact without a use: the memory fades from now on anew."""

    @extend_schema(operation_id="memory_keep", request=EmptyInput, responses=MemoryRow)
    def post(self, request: Request, memory_id: int) -> Response:
        validated(EmptyInput, request.data)
        return row_response(keep_memory(memory_id=memory_id, by=account_of(request)))
