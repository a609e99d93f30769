from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models.functions import Left
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.formats import date_format
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from elowen.lib.errors import NotFound, Unavailable
from elowen.lib.text import whole_number
from memories.actions.editing import keep_memory, restore_memory
from memories.charts import timeline_chart
from memories.gauge import Gauge, Reading
from memories.history import history_of
from memories.importance import VERBAL_SCALE
from memories.models import Memory
from memories.models.memory import MemoryQuerySet
from memories.requests import account_of
from memories.trail import trail_of
from memories.vitality_history import VitalityHistory

PAGE_ROWS = 50
PREVIEW_CHARS = 240
CHART_DAYS = (30, 90, 365)
STATUSES = [*Memory.Status.choices, ("all", "All")]


@dataclass(frozen=True)
class Row:
    memory: Memory
    preview: str
    reading: Reading


@login_required
def memory_list(request: HttpRequest) -> HttpResponse:
    status = _status(request)
    before = whole_number(request.GET.get("before", ""))
    found = Memory.objects.readable_by(account_of(request))
    page = _page(found if status == "all" else found.filter(status=status), before=before)
    gauge = Gauge.today()
    context = {
        "rows": [row_of(memory, gauge) for memory in page[:PAGE_ROWS]],
        "floor": gauge.policy.floor,
        "status": status,
        "statuses": STATUSES,
        "newest_url": f"?{urlencode({'status': status})}" if before else "",
        "older_url": _older_url(page, status),
    }
    return render(request, "memories/list.html", context)


@login_required
def memory_detail(request: HttpRequest, memory_id: int) -> HttpResponse:
    account = account_of(request)
    rows = Memory.objects.readable_by(account).select_related("category", "owner")
    memory = get_object_or_404(rows, pk=memory_id)
    gauge, days = Gauge.today(), _chart_days(request)
    context = {
        "memory": memory,
        "importance_in_words": VERBAL_SCALE[memory.importance],
        "reading": gauge.read(memory),
        "floor": gauge.policy.floor,
        "events": trail_of(memory, reader=account),
        "days": days,
        "horizons": CHART_DAYS,
    }
    return render(request, "memories/detail.html", context | _drawn(memory, days))


@login_required
@require_POST
def memory_keep(request: HttpRequest, memory_id: int) -> HttpResponse:
    return _written(request, memory_id, keep_memory, "Kept. It fades anew from this moment on.")


@login_required
@require_POST
def memory_restore(request: HttpRequest, memory_id: int) -> HttpResponse:
    if "keep" in request.POST:
        return _written(request, memory_id, partial(restore_memory, keep=True), "Restored and kept.")
    return _written(request, memory_id, restore_memory, "Restored. The next sweep may take it again.")


def _written(request: HttpRequest, memory_id: int, write: Callable[..., Memory], said: str) -> HttpResponse:
    try:
        write(memory_id=memory_id, by=account_of(request))
    except NotFound as missing:
        raise Http404 from missing
    messages.success(request, said)
    return redirect("memories:detail", memory_id)


def _drawn(memory: Memory, days: int) -> dict[str, Any]:
    """Return the chart of the memory's vitality; nothing if the settings have to be saved again."""
    try:
        history = history_of(memory, days=days)
    except Unavailable:
        return {}
    past, forecast = ([(p.at, p.vitality) for p in points] for points in (history.points, history.forecast))
    chart = timeline_chart(
        past, forecast, history.recalls, floor=history.floor, now=history.now, evict_at=history.evict_at
    )
    return {"chart": chart, "table": [*past, *forecast[1:]], "summary": summary(history, days)}


def summary(history: VitalityHistory, days: int) -> str:
    """Say in one sentence what the chart shows."""
    times = len(history.recalls)
    recalled = f"recalled {times} time{'' if times == 1 else 's'} in {days} days"
    day = date_format(history.evict_at, "j F Y") if history.evict_at else ""
    leaves = f"may go on {day}" if day else "not to go by itself"
    return f"Vitality {history.forecast[0].vitality:.0f} of 100 now, {recalled}, {leaves}."


def _chart_days(request: HttpRequest) -> int:
    wanted = whole_number(request.GET.get("days", ""))
    return wanted if wanted in CHART_DAYS else CHART_DAYS[0]


def _status(request: HttpRequest) -> str:
    wanted = request.GET.get("status", "")
    return wanted if wanted in dict(STATUSES) else str(Memory.Status.ACTIVE)


def _page(rows: MemoryQuerySet, *, before: int | None) -> list[Memory]:
    """Return one page and, where there are more, one row beyond it."""
    if before:
        rows = rows.filter(pk__lt=before)
    # A body may be long; the list shows only how it begins.
    rows = rows.defer("body", "origin").annotate(preview=Left("body", PREVIEW_CHARS))
    return list(rows.order_by("-pk")[: PAGE_ROWS + 1])


def _older_url(page: list[Memory], status: str) -> str:
    if len(page) <= PAGE_ROWS:
        return ""
    return f"?{urlencode({'status': status, 'before': str(page[PAGE_ROWS - 1].pk)})}"


def row_of(memory: Memory, gauge: Gauge) -> Row:
    preview: str = memory.preview  # type: ignore[attr-defined]  # annotated
    whole = len(preview) < PREVIEW_CHARS
    return Row(memory, preview if whole else f"{preview}…", gauge.read(memory))
