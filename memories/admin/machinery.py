from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from elowen.admin import ReadOnlyAdmin
from memories.models import (
    BodyHash,
    Heartbeat,
    IdempotentReply,
    Lease,
    MemoryUse,
)


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
    list_display = ["name", "holder", "session_pid", "until", "fence", "wanted"]


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin[Heartbeat]):
    list_display = ["name", "at"]
