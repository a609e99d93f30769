"""The page on which administrators choose the model, watch the index and see the connections."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.csp import CSP
from django.views.decorators.csp import csp_override
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from elowen.lib.errors import ElowenError, Invalid, Stale, Unavailable
from elowen.lib.text import whole_number
from embeddings import state
from embeddings.actions.reindexing import begin_reindex, stop_reindex
from embeddings.actions.storing import change_config
from embeddings.config import SECTION, EmbeddingConfig, parse
from embeddings.connections import Identity
from embeddings.forms import EmbeddingForm, blame
from embeddings.models import Connection, FailureSequence
from memories.config import load_document
from memories.requests import account_of, administrators_only

SETTINGS = "embeddings-pages:settings"
MAX_FAILURES_SHOWN = 10

administrators = administrators_only(SETTINGS)


@administrators
@require_http_methods(["GET", "HEAD", "POST"])
def embedding_settings(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        config, revision = _stored()
        return _page(request, EmbeddingForm(initial=(config or EmbeddingConfig()).to_document()), revision)
    form, revision = EmbeddingForm(request.POST), whole_number(request.POST.get("revision", "")) or 0
    if not form.is_valid() or form.config is None:
        return _page(request, form, revision, notice="invalid", status=400)
    if "try" in request.POST:
        tried = state.try_out(form.config, Identity(account_of(request).pk))
        return _page(request, form, revision, notice="tried", tried=tried)
    return _save(request, form, form.config, revision)


def _save(request: HttpRequest, form: EmbeddingForm, config: EmbeddingConfig, revision: int) -> HttpResponse:
    try:
        change_config(config=config, by=account_of(request), revision=revision)
    except Stale:
        stored, revision = _stored()
        form.compare(stored or EmbeddingConfig())
        return _page(request, form, revision, notice="stale", status=409)
    except Invalid as error:
        blame(form, error)
        return _page(request, form, revision, notice="invalid", status=400)
    messages.success(request, "Saved. What lacks a vector of this model is indexed in the background.")
    return redirect(SETTINGS)


def _stored() -> tuple[EmbeddingConfig | None, int]:
    """Return the settings in force, None where what is stored cannot be used, and the revision."""
    sections, revision = load_document()
    try:
        return parse(sections.get(SECTION, {})), revision
    except Invalid:
        return None, revision


def _page(
    request: HttpRequest, form: EmbeddingForm, revision: int, *, status: int = 200, **context: Any
) -> HttpResponse:
    context |= {"form": form, "revision": revision, "connections": connections(), **index_context(request)}
    page = render(request, "embeddings/settings.html", context, status=status)
    return may_leave_for_openrouter(page)


def may_leave_for_openrouter(page: HttpResponse) -> HttpResponse:
    """Let the page's forms lead there: browsers hold the redirect of a form against the policy as well."""
    policy: dict[str, Any] = settings.SECURE_CSP | {"form-action": [CSP.SELF, settings.OPENROUTER_URL]}
    return csp_override(policy)(lambda request: page)(None)


def connections() -> list[tuple[Connection, str]]:
    """Return each connection with how it is at the moment, in words."""
    now = timezone.now()
    return [(one, one.condition(now)) for one in Connection.objects.order_by("provider", "place", "pk")]


# --- The index ---


def index_context(request: HttpRequest) -> dict[str, Any]:
    try:
        described = state.describe(account_of(request))
    except Unavailable as error:
        return {"trouble": str(error)}
    reported = FailureSequence.objects.reported().order_by("-last_at")
    return {
        "state": described,
        "waiting": state.waiting(),
        "failures": reported[:MAX_FAILURES_SHOWN],
        "failure_count": reported.count(),
    }


@administrators
@require_safe
def index_progress(request: HttpRequest) -> HttpResponse:
    """Draw the part that moves while it is looked at."""
    if "HX-Request" not in request.headers:
        return redirect(SETTINGS)
    return render(request, "embeddings/_index.html", index_context(request))


@administrators
@require_POST
def reindex(request: HttpRequest) -> HttpResponse:
    by = account_of(request)
    try:
        if "stop" in request.POST:
            stop_reindex(by=by)
            messages.success(request, "Stopped. What is new is still indexed.")
        else:
            begin_reindex(by=by)
            messages.success(request, "Asked for. Whatever lacks a vector is indexed now.")
    except ElowenError as error:
        messages.error(request, str(error))
    return redirect(SETTINGS)
