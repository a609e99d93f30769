"""Numbers for Prometheus, read from the database when they are asked for, so that any process can answer."""

from collections import Counter
from collections.abc import Iterable

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from rest_framework.request import Request
from rest_framework.views import APIView

from elowen.lib.errors import Refused
from embeddings.models import FailureSequence, PendingMemory
from maintenance.models import SweepRun
from maintenance.retention import COUNTED
from memories.requests import account_of


class Sweeps(Collector):
    """The last sweep that ended as it should, and how many ended otherwise."""

    def collect(self) -> Iterable[Metric]:
        sweeps = SweepRun.objects.filter(dry_run=False)
        if last := SweepRun.objects.whole().order_by("-started_at").first():
            started = GaugeMetricFamily("elowen_sweep_started_seconds", "When the last whole sweep began.")
            started.add_metric([], last.started_at.timestamp())
            yield started
            memories = GaugeMetricFamily(
                "elowen_sweep_memories", "What the last whole sweep did with memories.", labels=["outcome"]
            )
            for name in ("scanned", *COUNTED):
                memories.add_metric([name], getattr(last, name))
            yield memories
        ended = GaugeMetricFamily("elowen_sweeps", "Sweeps of the last year.", labels=["state"])
        for state in SweepRun.State.values:
            ended.add_metric([state], sweeps.filter(state=state).count())
        yield ended


class Embeddings(Collector):
    """What waits for a vector, and which failures were reported."""

    def collect(self) -> Iterable[Metric]:
        pending = GaugeMetricFamily("elowen_pending_memories", "Memories that wait for a vector.")
        pending.add_metric([], PendingMemory.objects.count())
        yield pending
        failures = GaugeMetricFamily(
            "elowen_embedding_failures", "Embedding operations that go on failing.", labels=["operation"]
        )
        counts = Counter(FailureSequence.objects.reported().values_list("operation", flat=True))
        for operation in FailureSequence.Operation.values:
            failures.add_metric([operation], counts[operation])
        yield failures


class Metrics(APIView):
    """For administrators and their keys that may read."""

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        if not account_of(request).is_staff:
            raise Refused("Only administrators read the metrics.")
        registry = CollectorRegistry()
        registry.register(Sweeps())
        registry.register(Embeddings())
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
