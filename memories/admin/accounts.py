from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.db.models import QuerySet
from django.http import HttpRequest

from elowen.admin import ReadOnlyAdmin
from memories.actions.keys import revoke_key
from memories.models import (
    Account,
    ApiKey,
)


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
        ("Memories", {"fields": ["language"]}),
        ("Switches", {"fields": ["auto_recall", "auto_live_recall", "auto_save"]}),
    ]

    def has_delete_permission(self, request: HttpRequest, obj: Account | None = None) -> bool:
        return False  # memories hang on it; locking it out is a matter of `active`
