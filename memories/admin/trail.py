from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from elowen.admin import ReadOnlyAdmin
from memories.admin.memories import Fields, may_read_bodies
from memories.differences import Difference, differences
from memories.models import (
    ConfigEvent,
    ConfigSection,
    MemoryEvent,
)


class ActorFilter(admin.SimpleListFilter):
    """By kind: there are as many actors as there are people, and no list of them to choose from."""

    title, parameter_name = "kind of actor", "by"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("people", "People"),
            ("agent", "Assistants"),
            ("daemon", "The sweep"),
            ("migration", "An upgrade"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[MemoryEvent]) -> QuerySet[MemoryEvent]:
        if self.value() == "people":
            return queryset.filter(actor__startswith="user:")
        return queryset.filter(actor=self.value()) if self.value() else queryset


@admin.register(MemoryEvent)
class MemoryEventAdmin(ReadOnlyAdmin[MemoryEvent]):
    list_display = ["created_at", "action", "memory_id", "account_id", "actor", "automatic", "reason"]
    list_filter = ["action", "automatic", ActorFilter, "created_at"]
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
