from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from elowen.admin import ReadOnlyAdmin, WrittenByActions
from elowen.lib.errors import ElowenError
from embeddings import state
from embeddings.actions.connecting import (
    CHANGEABLE,
    MAX_KEY_CHARS,
    add_connection,
    change_connection,
    remove_connection,
)
from embeddings.actions.pruning import prune_space
from embeddings.models import (
    Connection,
    ConnectionEvent,
    CorpusDigest,
    CorpusVector,
    EmbeddingSpace,
    EmbeddingUsage,
    FailureSequence,
    PendingMemory,
    Reindex,
)
from memories.requests import account_of


class ConnectionForm(forms.ModelForm[Connection]):
    """The key goes in and never comes out again."""

    key = forms.CharField(
        max_length=MAX_KEY_CHARS,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="It is stored encrypted and never shown again. Leave it empty to keep the one there is.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["key"].required = not self.instance.pk


@admin.register(Connection)
class ConnectionAdmin(WrittenByActions[Connection]):
    form = ConnectionForm
    list_display = [
        "label", "provider", "kind", "place", "paused", "for_everyone", "limited_until", "last_failure",
        "last_failure_at",
    ]  # fmt: skip
    list_filter = ["provider", "paused"]
    ordering = ["provider", "place", "pk"]
    fields = ["provider", "label", "key", "base_url", "place", "paused", "for_everyone", "granted_to"]
    autocomplete_fields = ["granted_to"]
    state_fields = ["kind", "limited_until", "last_failure", "last_failure_at", "created_at"]
    actions = ["pause", "resume", "try_out"]

    def get_fields(self, request: HttpRequest, obj: Connection | None = None) -> list[Any]:
        return [*self.fields, *self.state_fields] if obj else self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Connection | None = None) -> list[Any]:
        return ["provider", *self.state_fields] if obj else []

    def save_model(
        self, request: HttpRequest, obj: Connection, form: forms.ModelForm[Connection], change: bool
    ) -> None:
        given, by = form.cleaned_data, account_of(request)
        fields = {name: given[name] for name in CHANGEABLE}
        key, granted = given["key"], list(given["granted_to"])
        if change:
            change_connection(
                connection_id=obj.pk, by=by, changes=fields, key=key or None, granted_to=granted
            )
        else:
            made = add_connection(by=by, provider=given["provider"], key=key, granted_to=granted, **fields)
            obj.pk = made.pk

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Nothing is left to do: the grants were saved with the rest."""

    def delete_model(self, request: HttpRequest, obj: Connection) -> None:
        remove_connection(connection_id=obj.pk, by=account_of(request))

    @admin.action(description="Pause", permissions=["change"])
    def pause(self, request: HttpRequest, rows: QuerySet[Connection]) -> None:
        self._set_paused(request, rows, paused=True)

    @admin.action(description="Resume", permissions=["change"])
    def resume(self, request: HttpRequest, rows: QuerySet[Connection]) -> None:
        self._set_paused(request, rows, paused=False)

    @admin.action(description="Try it with one text (may cost a little)", permissions=["change"])
    def try_out(self, request: HttpRequest, rows: QuerySet[Connection]) -> None:
        for one in rows:
            found = state.try_connection(one)
            if found["ok"]:
                told = f"{one}: {found['dimensions']} dimensions in {found['latencyMs']} ms."
                self.message_user(request, told, messages.SUCCESS)
            else:
                self.message_user(request, f"{one}: {found['error']}", messages.ERROR)

    def _set_paused(self, request: HttpRequest, rows: QuerySet[Connection], *, paused: bool) -> None:
        for connection_id in rows.values_list("pk", flat=True):
            change_connection(connection_id=connection_id, by=account_of(request), changes={"paused": paused})
        self.message_user(request, f"{'Paused' if paused else 'Resumed'}: {rows.count()}.", messages.SUCCESS)


@admin.register(ConnectionEvent)
class ConnectionEventAdmin(ReadOnlyAdmin[ConnectionEvent]):
    list_display = ["created_at", "action", "connection_id", "actor"]
    list_filter = ["action", "created_at"]
    ordering = ["-pk"]


@admin.register(EmbeddingUsage)
class EmbeddingUsageAdmin(ReadOnlyAdmin[EmbeddingUsage]):
    list_display = ["created_at", "purpose", "account_id", "provider", "connection_id", "model", "tokens"]
    list_filter = ["purpose", "provider", "created_at"]
    search_fields = ["account_id__exact", "connection_id__exact"]
    ordering = ["-pk"]


@admin.register(EmbeddingSpace)
class EmbeddingSpaceAdmin(ReadOnlyAdmin[EmbeddingSpace]):
    list_display = ["id", "provider", "model", "width", "dims", "held_until", "created_at"]
    fields = ["provider", "model", "width", "dims", "held_until", "created_at"]
    actions = ["prune"]

    def has_prune_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("embeddings.delete_embeddingspace")

    @admin.action(description="Delete the vectors (of models no longer in use)", permissions=["prune"])
    def prune(self, request: HttpRequest, rows: QuerySet[EmbeddingSpace]) -> None:
        for row in rows:
            try:
                pruned = prune_space(space_id=row.pk, by=account_of(request))
            except ElowenError as error:
                self.message_user(request, f"{row}: {error}", messages.ERROR)
            else:
                self.message_user(request, f"{row}: deleted {pruned} vectors.", messages.SUCCESS)


@admin.register(CorpusDigest)
class CorpusDigestAdmin(ReadOnlyAdmin[CorpusDigest]):
    list_display = ["corpus", "verified_at"]
    fields = ["corpus", "verified_at"]


@admin.register(CorpusVector)
class CorpusVectorAdmin(ReadOnlyAdmin[CorpusVector]):
    list_display = ["corpus", "space", "digest"]
    fields = ["corpus", "space", "digest"]
    list_select_related = ["space"]
    list_filter = ["corpus"]
    ordering = ["corpus", "pk"]

    @admin.display(description="SHA-256 of the text")
    def digest(self, one: CorpusVector) -> str:
        return bytes(one.text_hash).hex()


@admin.register(FailureSequence)
class FailureSequenceAdmin(ReadOnlyAdmin[FailureSequence]):
    list_display = [
        "operation", "account_id", "subject", "count", "code", "first_at", "last_at", "reported_at",
    ]  # fmt: skip
    list_filter = [("reported_at", admin.EmptyFieldListFilter), "operation", "code"]
    search_fields = ["=account_id", "=subject"]
    ordering = ["-last_at"]


@admin.register(Reindex)
class ReindexAdmin(ReadOnlyAdmin[Reindex]):
    list_display = ["started_at", "space", "state", "total", "asked_by", "stopped_by", "ended_at"]
    list_select_related = ["space"]
    list_filter = ["state"]
    ordering = ["-pk"]


@admin.register(PendingMemory)
class PendingMemoryAdmin(ReadOnlyAdmin[PendingMemory]):
    list_display = ["memory_id", "account_id", "backfill", "attempts", "next_at"]
    fields = ["account_id", "backfill", "attempts", "next_at"]
    list_filter = ["backfill"]
    search_fields = ["=memory__pk", "=account_id"]
    ordering = ["next_at"]
