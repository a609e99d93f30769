from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlencode

from elowen.lib.errors import NotFound, Unavailable
from elowen.lib.text import whole_number
from maintenance.departures import Departure
from maintenance.forecast import forecast
from memories.actions.editing import keep_memory
from memories.gauge import Gauge
from memories.models import Account, Memory
from memories.requests import account_of
from memories.views import PREVIEW_CHARS, Row, row_of

SHOWN = 200
HORIZONS = (7, 30, 90, 365)  # days
DEFAULT_DAYS = 30


@dataclass(frozen=True)
class DayOfLeaving:
    day: date
    rows: list[Row]


@login_required
def forecast_page(request: HttpRequest) -> HttpResponse:
    """What leaves in the coming days, each with a box to keep it."""
    account, days = account_of(request), _days(request)
    if request.method == "POST":
        _keep(request, account)
        return redirect(f"{request.path}?{urlencode({'days': days})}")
    try:
        context = _coming(account, days)
    except Unavailable as error:
        context = {"problem": str(error)}
    choices = {"days": days, "horizons": HORIZONS}
    return render(request, "maintenance/forecast.html", context | choices)


def _coming(account: Account, days: int) -> dict[str, Any]:
    coming = forecast(reader=account, days=days)
    shown = coming.departures[:SHOWN]
    rows = _rows(account, shown, Gauge(coming.policy, coming.now))
    return {
        "coming": coming,
        "calendar": list(_calendar(shown, rows)),
        "more": len(coming.departures) - len(shown),
        "floor": coming.policy.floor,
    }


def _rows(account: Account, shown: list[Departure], gauge: Gauge) -> dict[int, Row]:
    found = Memory.objects.readable_by(account).filter(pk__in=[one.memory_id for one in shown])
    found = found.defer("body", "origin").annotate(preview=Left("body", PREVIEW_CHARS))
    return {memory.pk: row_of(memory, gauge) for memory in found.select_related("category", "owner")}


def _calendar(shown: list[Departure], rows: dict[int, Row]) -> Iterable[DayOfLeaving]:
    for day, leaving in groupby(shown, key=lambda one: one.at.date()):
        there = [rows[one.memory_id] for one in leaving if one.memory_id in rows]
        if there:
            yield DayOfLeaving(day, there)


def _keep(request: HttpRequest, account: Account) -> None:
    """Keep what was ticked; what is gone or no longer shared meanwhile is told."""
    ticked = {number for text in request.POST.getlist("memory") if (number := whole_number(text))}
    wanted = sorted(ticked)[:SHOWN]  # no page has more
    kept = sum(_is_kept(memory_id, account) for memory_id in wanted)
    if kept:
        messages.success(request, f"Kept: {kept}. They fade anew from this moment on.")
    if kept < len(wanted):
        messages.warning(request, f"No longer there or no longer yours: {len(wanted) - kept}.")
    if not wanted:
        messages.info(request, "Nothing was ticked, so nothing has changed.")


def _is_kept(memory_id: int, account: Account) -> bool:
    try:
        keep_memory(memory_id=memory_id, by=account)
    except NotFound:
        return False
    return True


def _days(request: HttpRequest) -> int:
    wanted = whole_number(request.GET.get("days", ""))
    return wanted if wanted in HORIZONS else DEFAULT_DAYS
