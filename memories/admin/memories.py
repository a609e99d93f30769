from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

from elowen.admin import ReadOnlyAdmin
from elowen.lib.errors import ElowenError
from memories.actions import editing
from memories.audit import Note
from memories.gauge import Gauge, Reading
from memories.models import (
    Account,
    Memory,
    MemoryEvent,
)

VIEW_BODY = "memories.view_memory_body"
PREVIEW_CHARS = 80
type Write = Callable[..., Memory]
type Fields = list[str | list[str] | tuple[str, ...] | tuple[()]]


def may_read_bodies(request: HttpRequest) -> bool:
    return request.user.has_perm(VIEW_BODY)


def fingerprint(memory: Memory) -> str:
    """Tell two bodies apart without telling what they say."""
    digest = bytes(memory.body_hash.sha256).hex()[:16] if hasattr(memory, "body_hash") else "not hashed"
    return f"{digest}, {memory.body_bytes:,} bytes"


def level(reading: Reading) -> str:
    return "unknown" if reading.vitality is None else f"{reading.vitality:.1f}"


def eviction(reading: Reading) -> str:
    if not reading.is_known:
        return "unknown"
    return date_format(reading.evictable_at, "j M Y") if reading.evictable_at else "never"


class EvictedFilter(admin.SimpleListFilter):
    title, parameter_name = "evicted automatically", "evicted"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Yes, at least once")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        if self.value() != "yes":
            return queryset
        return queryset.filter(pk__in=MemoryEvent.objects.filter(automatic=True).values("memory_id"))


class ReasonForm(ActionForm):
    reason = forms.CharField(max_length=200, required=False, label="Reason")


@admin.register(Memory)
class MemoryAdmin(ReadOnlyAdmin[Memory]):
    list_filter = [
        "status",
        "importance",
        "source",
        EvictedFilter,
        ("category__project", admin.RelatedOnlyFieldListFilter),
        "category",
    ]
    list_select_related = ["category", "owner", "body_hash"]
    list_per_page = 50
    ordering = ["-pk"]
    action_form = ReasonForm
    actions = ["restore", "restore_and_keep", "archive", "move_to_trash"]
    shown_fields = [
        "history_link", "status", "kind", "importance", "vitality", "evicts_on", "category", "owner",
        "source", "use_count", "last_used_at", "created_at", "updated_at", "origin", "dream_reviewed_at",
        "dream_run_id",
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Memory]:
        return super().get_queryset(request).defer("body").annotate(begins=Left("body", PREVIEW_CHARS))

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        return ["body"] if may_read_bodies(request) else ["pk__exact"]

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        text = "begins" if may_read_bodies(request) else "fingerprint"
        return [
            "id", text, "status", "kind", "importance", *gauge_columns(Gauge.today()), "category", "owner",
            "source", "updated_at",
        ]  # fmt: skip

    def get_fields(self, request: HttpRequest, obj: Memory | None = None) -> Fields:
        return ["body" if may_read_bodies(request) else "fingerprint", *self.shown_fields]

    def get_readonly_fields(self, request: HttpRequest, obj: Memory | None = None) -> list[str]:
        return [str(name) for name in self.get_fields(request, obj)]

    @admin.display(description="Begins with")
    def begins(self, memory: Memory) -> str:
        return str(memory.begins)  # type: ignore[attr-defined]  # annotated

    @admin.display(description="Body")
    def fingerprint(self, memory: Memory) -> str:
        return fingerprint(memory)

    @admin.display(description="Vitality")
    def vitality(self, memory: Memory) -> str:
        return level(Gauge.today().read(memory))

    @admin.display(description="Evicts on")
    def evicts_on(self, memory: Memory) -> str:
        return eviction(Gauge.today().read(memory))

    @admin.display(description="Changes")
    def history_link(self, memory: Memory) -> SafeString:
        address = reverse("admin:memories_memoryevent_changelist")
        return format_html(
            '<a href="{}?memory_id={}">Every change of memory {}</a>', address, memory.pk, memory.pk
        )

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        answer = super().changelist_view(request, extra_context)
        shown = getattr(answer, "context_data", None) or {}
        if may_read_bodies(request) and "cl" in shown:
            self._remember_look(request, [memory.pk for memory in shown["cl"].result_list])
        return answer

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        answer = super().change_view(request, object_id, form_url, extra_context)
        if may_read_bodies(request) and answer.status_code == 200:
            self._remember_look(request, [int(object_id)])
        return answer

    def _remember_look(self, request: HttpRequest, ids: Sequence[int]) -> None:
        others = Memory.objects.filter(pk__in=ids).exclude(owner=request.user.pk).order_by("pk")
        if seen := list(others.values_list("pk", flat=True)):
            LogEntry.objects.create(
                user=cast(Account, request.user),
                content_type=ContentType.objects.get_for_model(Memory),
                object_repr=f"{len(seen)} memories of other people",
                action_flag=CHANGE,
                change_message="Read the bodies of memories " + ", ".join(map(str, seen)),
            )

    def has_restore_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("memories.change_memory")

    def has_trash_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("memories.delete_memory")

    @admin.action(description="Restore", permissions=["restore"])
    def restore(self, request: HttpRequest, rows: QuerySet[Memory]) -> None:
        self._each(request, rows, editing.restore_memory, "Restored")

    @admin.action(description="Restore and keep", permissions=["restore"])
    def restore_and_keep(self, request: HttpRequest, rows: QuerySet[Memory]) -> None:
        self._each(request, rows, partial(editing.restore_memory, keep=True), "Restored and kept")

    @admin.action(description="Archive", permissions=["restore"])
    def archive(self, request: HttpRequest, rows: QuerySet[Memory]) -> None:
        self._each(request, rows, editing.archive_memory, "Archived")

    @admin.action(description="Move to the trash", permissions=["trash"])
    def move_to_trash(self, request: HttpRequest, rows: QuerySet[Memory]) -> None:
        self._each(request, rows, editing.delete_memory, "Moved to the trash")

    def _each(self, request: HttpRequest, rows: QuerySet[Memory], write: Write, done: str) -> None:
        reason = request.POST.get("reason", "").strip() or f"{done} in the administration"
        note = Note(operator=True, reason=reason)
        count, refusals = 0, Counter[str]()
        for memory_id in rows.order_by("pk").values_list("pk", flat=True):
            try:
                write(memory_id=memory_id, by=request.user, note=note)
                count += 1
            except ElowenError as error:
                refusals[str(error)] += 1
        if count:
            self.message_user(request, f"{done}: {count}.", messages.SUCCESS)
        for why, times in refusals.items():
            self.message_user(request, f"Could not be done: {times}. {why}", messages.WARNING)


def gauge_columns(gauge: Gauge) -> list[Callable[[Memory], object]]:
    """Return the columns that need the policy, which is thus read once for the whole list."""

    @admin.display(description="Vitality")
    def vitality(memory: Memory) -> str:
        return level(gauge.read(memory))

    @admin.display(description="Evicts on")
    def evicts_on(memory: Memory) -> str:
        return eviction(gauge.read(memory))

    return [vitality, evicts_on]
