"""The page on which administrators set how memories fade."""

import json
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe
from django.views.decorators.vary import vary_on_headers

from elowen.lib.errors import Stale
from elowen.lib.text import whole_number
from memories.charts import NARROW, WIDE, fates, retention_chart
from memories.config import RETENTION, load_document, retention_policy, save
from memories.forms import RetentionForm, values_of
from memories.policy import DEFAULT_POLICY, RetentionPolicy, clamp, from_document, to_document
from memories.requests import account_of, administrators_only

PAGE, CURVES = "memories/retention.html", "memories/_retention_curves.html"

administrators = administrators_only("memories:retention")


@administrators
@require_http_methods(["GET", "HEAD", "POST"])
def retention(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _sent(request)
    policy, revision = _stored()
    wants_defaults = "defaults" in request.GET
    shown = DEFAULT_POLICY if wants_defaults else policy
    form = RetentionForm(initial=values_of(shown))
    form.ask_for_missing()
    context = {"notice": "defaults" if wants_defaults else "missing" if form.remarks else ""}
    return _page(request, form, shown, revision, context)


@administrators
@require_safe
@vary_on_headers("HX-Request")
def retention_curves(request: HttpRequest) -> HttpResponse:
    """Redraw the curves for what is typed at the moment."""
    if "HX-Request" not in request.headers:
        return redirect("memories:retention")
    form = RetentionForm(request.GET)
    form.is_valid()
    return render(request, CURVES, _curves(form, _drawn(form, request.GET)))


def _sent(request: HttpRequest) -> HttpResponse:
    form = RetentionForm(request.POST)
    valid, preview = form.is_valid(), "preview" in request.POST
    if valid and not preview:
        return _save(request, form)
    context = {"notice": "preview" if valid else "invalid"}
    return _page(request, form, _drawn(form, request.POST), _revision(request.POST), context)


def _save(request: HttpRequest, form: RetentionForm) -> HttpResponse:
    changes = form.changes()
    try:
        save(by=account_of(request), changes={RETENTION: changes}, revision=_revision(request.POST))
    except Stale:
        policy, revision = _stored()
        form.compare(policy)
        return _page(request, form, clamp(policy, changes), revision, {"notice": "stale"}, status=409)
    messages.success(request, "Saved. Sweeps go by these settings from now on.")
    return redirect("memories:retention")


def _page(
    request: HttpRequest,
    form: RetentionForm,
    policy: RetentionPolicy,
    revision: int,
    context: Mapping[str, Any],
    status: int = 200,
) -> HttpResponse:
    """Render the page with the curves of the given policy."""
    return render(
        request, PAGE, {**context, **_curves(form, policy), "form": form, "revision": revision}, status=status
    )


def _curves(form: RetentionForm, policy: RetentionPolicy) -> dict[str, Any]:
    return {
        "charts": {"wide": retention_chart(policy, WIDE), "narrow": retention_chart(policy, NARROW)},
        "fates": fates(policy),
        "policy": policy,
        "kept": form.labels_in_error(),
        "drawn": json.dumps(to_document(policy)),
    }


def _stored() -> tuple[RetentionPolicy, int]:
    sections, revision = load_document()
    return from_document(sections.get(RETENTION, {})), revision


def _drawn(form: RetentionForm, sent: QueryDict) -> RetentionPolicy:
    """Return what to draw: the valid values and, for the others, those that were drawn before."""
    try:
        before = json.loads(sent.get("drawn", ""))
    except (ValueError, RecursionError):
        before = None
    policy = clamp(retention_policy(), before if isinstance(before, dict) else {})
    return clamp(policy, form.changes())


def _revision(sent: QueryDict) -> int:
    """Return the revision that the page was read at. What is none stands for no revision there is."""
    return whole_number(sent.get("revision", "")) or 0
