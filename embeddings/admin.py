from django.contrib import admin

from elowen.admin import ReadOnlyAdmin
from embeddings.models import EmbeddingSpace, PendingMemory


@admin.register(EmbeddingSpace)
class EmbeddingSpaceAdmin(ReadOnlyAdmin[EmbeddingSpace]):
    list_display = ["id", "provider", "model", "width", "dims", "created_at"]
    fields = ["provider", "model", "width", "dims", "created_at"]


@admin.register(PendingMemory)
class PendingMemoryAdmin(ReadOnlyAdmin[PendingMemory]):
    list_display = ["memory_id", "account_id", "attempts", "next_at"]
    fields = ["account_id", "attempts", "next_at"]
    search_fields = ["=memory__pk", "=account_id"]
    ordering = ["next_at"]
