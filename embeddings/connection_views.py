"""Pages on which administrators connect accounts at providers. A key goes in and never comes out again."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from elowen.lib.errors import ElowenError, Invalid
from embeddings import openrouter, state
from embeddings.actions.connecting import add_connection, change_connection, remove_connection
from embeddings.forms import ConnectionForm, blame
from embeddings.models import Connection
from embeddings.views import SETTINGS, administrators
from memories.requests import account_of

SIGN_IN = "openrouter"  # where the session keeps the attempt


@administrators
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def connection_new(request: HttpRequest) -> HttpResponse:
    form = ConnectionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            add_connection(
                by=account_of(request),
                provider=given["provider"],
                key=given["key"],
                granted_to=given["granted_to"],
                **form.fields_to_write(),
            )
        except Invalid as error:
            blame(form, error)
        else:
            messages.success(request, "Connected. Try it before you rely on it.")
            return redirect(SETTINGS)
    return render(request, "embeddings/connection.html", {"form": form}, status=400 if form.errors else 200)


@administrators
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def connection_edit(request: HttpRequest, connection_id: int) -> HttpResponse:
    known = get_object_or_404(Connection, pk=connection_id)
    form = ConnectionForm(request.POST if request.method == "POST" else None, known=known)
    if form.is_bound and form.is_valid():
        try:
            change_connection(
                connection_id=connection_id,
                by=account_of(request),
                changes=form.fields_to_write(),
                key=form.cleaned_data["key"] or None,
                granted_to=form.cleaned_data["granted_to"],
            )
        except Invalid as error:
            blame(form, error)
        else:
            messages.success(request, "Saved.")
            return redirect(SETTINGS)
    context = {"form": form, "connection": known}
    return render(request, "embeddings/connection.html", context, status=400 if form.errors else 200)


@administrators
@require_POST
def connection_act(request: HttpRequest, connection_id: int) -> HttpResponse:
    """Do what the pressed button is called: pause, resume, try or remove."""
    known, by = get_object_or_404(Connection, pk=connection_id), account_of(request)
    if "remove" in request.POST:
        remove_connection(connection_id=connection_id, by=by)
        messages.success(
            request, f"Removed: {known}. Its key is forgotten here; revoke it at the provider as well."
        )
    elif "try" in request.POST:
        _tell_trial(request, known)
    elif "pause" in request.POST or "resume" in request.POST:
        change_connection(connection_id=connection_id, by=by, changes={"paused": "pause" in request.POST})
        messages.success(request, f"{'Paused' if 'pause' in request.POST else 'Resumed'}: {known}.")
    return redirect(SETTINGS)


def _tell_trial(request: HttpRequest, connection: Connection) -> None:
    tried = state.try_connection(connection)
    if tried["ok"]:
        told = f"{connection} works: {tried['dimensions']} dimensions in {tried['latencyMs']:.0f} ms."
        messages.success(request, told)
    else:
        messages.error(request, f"{connection}: {tried['error']}")


# --- Signing in at OpenRouter ---


@administrators
@require_POST
def openrouter_begin(request: HttpRequest) -> HttpResponse:
    attempt = openrouter.SignIn.begin()
    request.session[SIGN_IN] = {"state": attempt.state, "verifier": attempt.verifier}
    back = request.build_absolute_uri(reverse("embeddings-pages:openrouter-back", args=[attempt.state]))
    return redirect(openrouter.address(attempt, back=back))


@administrators
@never_cache
@require_safe
def openrouter_back(request: HttpRequest, attempt: str) -> HttpResponse:
    """Take the key of whoever was sent away from this very session; the attempt works once."""
    kept = request.session.pop(SIGN_IN, None)
    if not kept or kept["state"] != attempt:
        raise Http404
    try:
        key = openrouter.key_for(request.GET.get("code", ""), openrouter.SignIn(**kept))
        add_connection(
            by=account_of(request), provider="openrouter", key=key, kind=Connection.Kind.OPENROUTER
        )
    except ElowenError as error:
        messages.error(request, f"OpenRouter was not connected: {error}")
    else:
        messages.success(request, "OpenRouter is connected. Choose it as the provider to use it.")
    return redirect(SETTINGS)
