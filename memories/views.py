from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.http import urlencode

from memories.gauge import Gauge, Reading
from memories.importance import VERBAL_SCALE
from memories.models import Memory
from memories.models.memory import MemoryQuerySet
from memories.requests import account_of
from memories.trail import trail_of

PAGE_ROWS = 50
PREVIEW_CHARS = 240
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
    gauge = Gauge.today()
    context = {
        "memory": memory,
        "importance_in_words": VERBAL_SCALE[memory.importance],
        "reading": gauge.read(memory),
        "floor": gauge.policy.floor,
        "events": trail_of(memory, reader=account),
    }
    return render(request, "memories/detail.html", context)


def _status(request: HttpRequest) -> str:
    wanted = request.GET.get("status", "")
    return wanted if wanted in dict(STATUSES) else str(Memory.Status.ACTIVE)


def whole_number(text: str) -> int | None:
    # Longer numbers are no ids, and PostgreSQL has no room for them.
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


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
