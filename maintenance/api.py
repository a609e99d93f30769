from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from maintenance.forecast import Forecast, forecast
from maintenance.serializers import ForecastQuery, ForecastReply
from memories.api.paging import validated_query
from memories.gauge import Gauge
from memories.models import Memory
from memories.requests import account_of
from memories.rows import ROW_FIELDS, memory_rows


class MemoryForecast(APIView):
    """What the sweeps of the coming days would take, soonest first, so that it can be kept."""

    @extend_schema(operation_id="memory_forecast", parameters=[ForecastQuery], responses=ForecastReply)
    def get(self, request: Request) -> Response:
        query = validated_query(ForecastQuery, request)
        reader = account_of(request)
        coming = forecast(reader=reader, days=query["days"])
        shown = coming.departures[: query["limit"]]
        # Asked for again: what was shared a moment ago may not be any more.
        ids = [one.memory_id for one in shown]
        found = Memory.objects.readable_by(reader).filter(pk__in=ids).values(*ROW_FIELDS)
        rows = {row["id"]: row for row in memory_rows(found, Gauge(coming.policy, coming.now))}
        departing = [{"at": one.at, "memory": rows[one.memory_id]} for one in shown if one.memory_id in rows]
        return Response(ForecastReply(document(coming) | {"departures": departing}).data)


def document(coming: Forecast) -> dict[str, object]:
    return {
        "now": coming.now,
        "enabled": coming.policy.enabled,
        "nextSweepAt": coming.next_sweep_at,
        "dailyDeletionLimit": coming.policy.daily_deletion_limit,
        "total": len(coming.departures),
        "waiting": coming.waiting,
    }
