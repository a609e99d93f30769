from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from elowen.lib.errors import NotFound
from memories.api.paging import page_reply, paged
from memories.models import Memory, MemoryEvent
from memories.requests import account_of
from memories.serializers import EventRow, PageQuery


class EventFeed(APIView):
    """Changes of one's own memories, newest first."""

    @extend_schema(
        operation_id="memory_events", parameters=[PageQuery], responses=page_reply("EventPage", EventRow)
    )
    def get(self, request: Request) -> Response:
        events = MemoryEvent.objects.filter(account_id=account_of(request).pk)
        return paged(request, events, EventRow, ordering="-id")


class MemoryEvents(APIView):
    """The whole trail of one memory, for everyone who may read it; its author keeps it after a purge."""

    @extend_schema(
        operation_id="memory_events_of_one",
        parameters=[PageQuery],
        responses=page_reply("EventPageOfOne", EventRow),
    )
    def get(self, request: Request, memory_id: int) -> Response:
        events = MemoryEvent.objects.filter(memory_id=memory_id)
        if not Memory.objects.readable_by(account_of(request)).filter(pk=memory_id).exists():
            events = events.filter(account_id=account_of(request).pk)
            gone = not Memory.objects.filter(pk=memory_id).exists()
            if not (gone and events.exists()):
                raise NotFound
        return paged(request, events, EventRow, ordering="-id")
