from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.admin import UserAdmin
from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from elowen.admin import ReadOnlyAdmin
from elowen.lib.errors import ElowenError
from memories.actions import editing
from memories.actions.keys import revoke_key
from memories.audit import Note
from memories.differences import Difference, differences
from memories.gauge import Gauge, Reading
from memories.models import (
    Account,
    ApiKey,
    BodyHash,
    Category,
    ConfigEvent,
    ConfigSection,
    Heartbeat,
    IdempotentReply,
    Lease,
    Memory,
    MemoryEvent,
    MemoryUse,
    Project,
    ProjectMember,
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


@admin.register(Category)
class CategoryAdmin(admin.ModelAdmin[Category]):
    list_display = ["name", "owner", "project", "color", "icon"]
    list_filter = ["project"]
    list_select_related = ["owner", "project"]
    search_fields = ["name", "owner__username"]
    raw_id_fields = ["owner"]
    readonly_fields = ["created_at"]


class ProjectMemberInline(admin.TabularInline[ProjectMember, Project]):
    model = ProjectMember
    raw_id_fields = ["account"]
    extra = 0


@admin.register(Project)
class ProjectAdmin(admin.ModelAdmin[Project]):
    list_display = ["slug", "name", "memory_shared", "root_path"]
    list_filter = ["memory_shared"]
    search_fields = ["slug", "name"]
    readonly_fields = ["created_at"]
    inlines = [ProjectMemberInline]


@admin.register(MemoryEvent)
class MemoryEventAdmin(ReadOnlyAdmin[MemoryEvent]):
    list_display = ["created_at", "action", "memory_id", "account_id", "actor", "automatic", "reason"]
    list_filter = ["action", "automatic", "created_at", "actor"]
    search_fields = ["memory_id__exact", "account_id__exact", "run_id__exact", "actor"]
    ordering = ["-pk"]
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[MemoryEvent]:
        rows = super().get_queryset(request)
        return (
            rows
            if request.resolver_match and "object_id" in request.resolver_match.kwargs
            else rows.defer("before", "after")
        )

    def get_fields(self, request: HttpRequest, obj: MemoryEvent | None = None) -> Fields:
        changes = "changes" if may_read_bodies(request) else "changes_but_bodies"
        return [
            "created_at", "action", "memory_id", "account_id", "actor", "automatic", "reason", "model",
            "run_id", changes,
        ]  # fmt: skip

    def get_readonly_fields(self, request: HttpRequest, obj: MemoryEvent | None = None) -> list[str]:
        return [str(name) for name in self.get_fields(request, obj)]

    @admin.display(description="Changes")
    def changes(self, event: MemoryEvent) -> SafeString:
        return as_lines(differences(event.before, event.after))

    @admin.display(description="Changes")
    def changes_but_bodies(self, event: MemoryEvent) -> SafeString:
        return as_lines([found for found in differences(event.before, event.after) if found.label != "Body"])


def as_lines(found: Sequence[Difference]) -> SafeString:
    """Write differences as HTML, escaped."""
    elements = {"same": "{}", "added": "<ins>{}</ins>", "removed": "<del>{}</del>"}
    lines = [
        (one.label, format_html_join("", "{}", ((format_html(elements[p.tag], p.text),) for p in one.pieces)))
        for one in found
    ]
    return format_html_join("", "<p><strong>{}</strong>: {}</p>", lines) or format_html("{}", "none to show")


@admin.register(ConfigEvent)
class ConfigEventAdmin(ReadOnlyAdmin[ConfigEvent]):
    list_display = ["created_at", "section", "revision", "actor"]
    list_filter = ["section", "created_at"]
    ordering = ["-pk"]


@admin.register(ConfigSection)
class ConfigSectionAdmin(ReadOnlyAdmin[ConfigSection]):
    list_display = ["name", "revision", "updated_at"]


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin[ApiKey]):
    list_display = ["prefix", "name", "account", "scopes", "last_used_at", "expires_at", "revoked_at"]
    list_filter = ["revoked_at"]
    list_select_related = ["account"]
    search_fields = ["name", "prefix", "account__username"]
    fields = ["prefix", "name", "account", "scopes", "created_at", "last_used_at", "expires_at", "revoked_at"]
    ordering = ["-pk"]
    actions = ["revoke"]

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("memories.change_apikey")

    @admin.action(description="Revoke (at once, for good)", permissions=["revoke"])
    def revoke(self, request: HttpRequest, rows: QuerySet[ApiKey]) -> None:
        keys = list(rows.select_related("account"))
        for key in keys:
            revoke_key(account=key.account, key_id=key.pk)
        self.message_user(request, f"Revoked: {len(keys)}.", messages.SUCCESS)


@admin.register(Account)
class AccountAdmin(UserAdmin[Account]):
    list_display = ["username", "email", "is_staff", "is_active", "last_login"]
    fieldsets = [
        *(UserAdmin.fieldsets or []),
        ("Switches", {"fields": ["auto_recall", "auto_live_recall", "auto_save"]}),
    ]

    def has_delete_permission(self, request: HttpRequest, obj: Account | None = None) -> bool:
        return False  # memories hang on it; locking it out is a matter of `active`


@admin.register(MemoryUse)
class MemoryUseAdmin(ReadOnlyAdmin[MemoryUse]):
    list_display = ["used_at", "memory_id", "account"]
    list_filter = ["used_at"]
    list_select_related = ["account"]
    ordering = ["-pk"]


@admin.register(BodyHash)
class BodyHashAdmin(ReadOnlyAdmin[BodyHash]):
    list_display = ["memory_id", "digest"]
    fields = ["memory", "digest"]
    ordering = ["-pk"]

    @admin.display(description="SHA-256")
    def digest(self, row: BodyHash) -> str:
        return bytes(row.sha256).hex()


@admin.register(IdempotentReply)
class IdempotentReplyAdmin(ReadOnlyAdmin[IdempotentReply]):
    list_display = ["created_at", "account", "key", "status"]
    fields = ["created_at", "account", "key", "status"]  # replies hold bodies
    list_select_related = ["account"]
    ordering = ["-pk"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[IdempotentReply]:
        return super().get_queryset(request).defer("reply")


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin[Lease]):
    list_display = ["name", "holder", "until", "fence", "wanted"]


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin[Heartbeat]):
    list_display = ["name", "at"]
