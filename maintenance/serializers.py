from typing import Any

from rest_framework import serializers

from memories.serializers import DaysQuery, MemoryRow


class ForecastQuery(DaysQuery):
    limit = serializers.IntegerField(min_value=1, max_value=500, default=50)


class DepartureRow(serializers.Serializer[Any]):
    at = serializers.DateTimeField()  # the sweep that takes it
    memory = MemoryRow()


class ForecastReply(serializers.Serializer[Any]):
    now = serializers.DateTimeField()
    enabled = serializers.BooleanField()
    nextSweepAt = serializers.DateTimeField()
    dailyDeletionLimit = serializers.IntegerField()
    total = serializers.IntegerField()  # of departures in these days
    waiting = serializers.IntegerField()  # due as well, and left for later by the limit
    departures = DepartureRow(many=True)
