"""Shapes and bounds of what comes in and goes out. Rows are snake_case as stored; the rest is camelCase."""

from typing import Any

from django.core.validators import validate_slug
from rest_framework import serializers

from elowen.lib.rest import (
    MAX_ID,
    IdField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictFloatField,
    StrictIntegerField,
    StrictSerializer,
)
from memories.importance import DEFAULT_IMPORTANCE, MAX_IMPORTANCE, MIN_IMPORTANCE
from memories.models import Category, Memory
from memories.models.account import LANGUAGES
from memories.models.memory import MAX_BODY_CHARS, MAX_KIND_CHARS
from memories.models.project import ABSOLUTE
from memories.policy import BOUNDS, LEVELS

ORDERINGS = ("updated_at", "created_at", "last_used_at", "importance", "vitality")
MAX_BATCH = 500
MAX_IDS = 1000


class MemoryRow(serializers.Serializer[Any]):
    """A stored memory, and what follows from it now."""

    id = serializers.IntegerField()
    owner_id = serializers.IntegerField(allow_null=True)
    category_id = serializers.IntegerField(allow_null=True)
    body = serializers.CharField()
    body_bytes = serializers.IntegerField()
    kind = serializers.CharField()
    importance = serializers.IntegerField()
    status = serializers.ChoiceField(Memory.Status.choices)
    source = serializers.ChoiceField(Memory.Source.choices)  # type: ignore[assignment]  # a field of that name
    use_count = serializers.IntegerField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    dream_reviewed_at = serializers.DateTimeField(allow_null=True)
    dream_run_id = serializers.IntegerField(allow_null=True)
    origin = serializers.DictField()
    vitality = serializers.FloatField(
        allow_null=True, help_text="0 to 100; null when the policy is malformed"
    )
    evictable_at = serializers.DateTimeField(allow_null=True)


class NewMemoryInput(StrictSerializer):
    body = StrictCharField(max_length=MAX_BODY_CHARS)
    kind = StrictCharField(max_length=MAX_KIND_CHARS, default="fact")
    importance = StrictIntegerField(
        min_value=MIN_IMPORTANCE, max_value=MAX_IMPORTANCE, default=DEFAULT_IMPORTANCE
    )
    categoryId = IdField(required=False)
    projectId = IdField(required=False)


class BatchInput(StrictSerializer):
    memories = serializers.ListField(child=NewMemoryInput(), min_length=1, max_length=MAX_BATCH)


class BatchReply(serializers.Serializer[Any]):
    results = MemoryRow(many=True)


class ChangeInput(StrictSerializer):
    body = StrictCharField(max_length=MAX_BODY_CHARS, required=False)
    kind = StrictCharField(max_length=MAX_KIND_CHARS, required=False)
    importance = StrictIntegerField(min_value=MIN_IMPORTANCE, max_value=MAX_IMPORTANCE, required=False)
    status = StrictChoiceField(Memory.Status.choices, required=False)


class RestoreInput(StrictSerializer):
    keep = StrictBooleanField(default=False)


class CategoryChoice(StrictSerializer):
    categoryId = IdField(allow_null=True)


class IdsInput(StrictSerializer):
    ids = serializers.ListField(child=IdField(), min_length=1, max_length=MAX_IDS)


class MergeInput(IdsInput):
    body = StrictCharField(max_length=MAX_BODY_CHARS)
    kind = StrictCharField(max_length=MAX_KIND_CHARS, required=False)


class EmptyInput(StrictSerializer):
    """Takes nothing."""


class DaysQuery(serializers.Serializer[Any]):
    """How far to look."""

    days = serializers.IntegerField(min_value=1, max_value=365, default=30)


class VitalityPoint(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    vitality = serializers.FloatField()


class VitalityHistoryReply(serializers.Serializer[Any]):
    points = VitalityPoint(many=True)
    forecast = VitalityPoint(many=True)
    recalls = serializers.ListField(child=serializers.DateTimeField())
    floor = serializers.FloatField()
    evictAt = serializers.DateTimeField(source="evict_at", allow_null=True)
    historyFrom = serializers.DateTimeField(source="history_from", allow_null=True)
    now = serializers.DateTimeField()


class PurgedReply(serializers.Serializer[Any]):
    purged = serializers.IntegerField()


class EventRow(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    memory_id = serializers.IntegerField()
    account_id = serializers.IntegerField(allow_null=True)
    action = serializers.CharField()
    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)
    actor = serializers.CharField()
    reason = serializers.CharField()
    model = serializers.CharField()
    run_id = serializers.IntegerField(allow_null=True)
    automatic = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class CategoryRow(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    owner_id = serializers.IntegerField(allow_null=True)
    project_id = serializers.IntegerField(allow_null=True)
    name = serializers.CharField()
    description = serializers.CharField()
    color = serializers.CharField()
    icon = serializers.CharField()
    created_at = serializers.DateTimeField()


class CategoryInput(StrictSerializer):
    name = StrictCharField(max_length=60)
    description = StrictCharField(max_length=1000, allow_blank=True, required=False)
    color = StrictCharField(max_length=7, required=False, help_text="#rrggbb")
    icon = StrictChoiceField(Category.Icon.choices, required=False)
    projectId = IdField(required=False, allow_null=True)

    def validate_color(self, color: str) -> str:
        if len(color) == 7 and color[0] == "#" and all(c in "0123456789abcdefABCDEF" for c in color[1:]):
            return color
        raise serializers.ValidationError("A colour looks like #64748b.")


class CategoryChange(CategoryInput):
    name = StrictCharField(max_length=60, required=False)


class ProjectRow(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    slug = serializers.CharField()
    name = serializers.CharField()
    root_path = serializers.CharField()
    memory_shared = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class ProjectInput(StrictSerializer):
    slug = StrictCharField(max_length=50, validators=[validate_slug])
    name = StrictCharField(max_length=100)
    rootPath = StrictCharField(max_length=1000, allow_blank=True, required=False, validators=[ABSOLUTE])


class ProjectChange(ProjectInput):
    slug = StrictCharField(max_length=50, required=False, validators=[validate_slug])
    name = StrictCharField(max_length=100, required=False)
    memoryShared = StrictBooleanField(required=False)


class MemberRow(serializers.Serializer[Any]):
    account_id = serializers.IntegerField()
    username = serializers.CharField(source="account.username")
    is_manager = serializers.BooleanField()
    on_share_list = serializers.BooleanField()


class MemberInput(StrictSerializer):
    accountId = IdField()
    isManager = StrictBooleanField(default=False)


class ShareList(StrictSerializer):
    userIds = serializers.ListField(child=IdField(), max_length=MAX_IDS)


class MeRow(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    username = serializers.CharField()
    isAdministrator = serializers.BooleanField(source="is_staff")
    autoRecall = serializers.BooleanField(source="auto_recall")
    autoLiveRecall = serializers.BooleanField(source="auto_live_recall")
    autoSave = serializers.BooleanField(source="auto_save")
    language = serializers.CharField(help_text="In which the account's memories are written.")


class PreferencesInput(StrictSerializer):
    autoRecall = StrictBooleanField(required=False, source="auto_recall")
    autoLiveRecall = StrictBooleanField(required=False, source="auto_live_recall")
    autoSave = StrictBooleanField(required=False, source="auto_save")
    language = StrictChoiceField(choices=LANGUAGES, required=False)


class KeyRow(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    prefix = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewKeyRow(KeyRow):
    secret = serializers.CharField(help_text="Shown in this one reply; nobody can see it again.")


class KeyInput(StrictSerializer):
    name = StrictCharField(max_length=60)
    scopes = serializers.ListField(
        child=StrictChoiceField(["read", "write"]), min_length=1, max_length=2, required=False
    )
    expiresAt = serializers.DateTimeField(required=False, allow_null=True)


class AccountRow(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    username = serializers.CharField()
    is_active = serializers.BooleanField()
    is_staff = serializers.BooleanField()


class AccountInput(StrictSerializer):
    username = StrictCharField(max_length=150)
    password = StrictCharField(max_length=200, required=False, trim_whitespace=False)


def bounds_of(name: str) -> dict[str, Any]:
    return {"min_value": BOUNDS[name].low, "max_value": BOUNDS[name].high}


class HalfLives(StrictSerializer):
    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        bounds = bounds_of("halfLifeByImportance")
        return {str(level): StrictFloatField(**bounds, required=False) for level in LEVELS}


class RetentionInput(StrictSerializer):
    """Values out of bounds are refused, only grace is clamped."""

    enabled = StrictBooleanField(required=False)
    halfLifeByImportance = HalfLives(required=False)
    vitalityFloor = StrictFloatField(**bounds_of("vitalityFloor"), required=False)
    graceDays = StrictFloatField(required=False)
    dailyDeletionLimit = StrictIntegerField(**bounds_of("dailyDeletionLimit"), required=False)


class LimitsInput(serializers.DictField):
    """Whole numbers by name; names and bounds are those that a GET lists."""

    child = StrictIntegerField()


class RuntimeInput(StrictSerializer):
    memoryRetention = RetentionInput(required=False)
    limits = LimitsInput(required=False)


class BrainInput(StrictSerializer):
    limits = LimitsInput(required=False)


class ConfigInput(StrictSerializer):
    revision = StrictIntegerField(min_value=1, max_value=MAX_ID, required=False)
    runtime = RuntimeInput(required=False)
    brain = BrainInput(required=False)


class ConfigDocument(serializers.Serializer[Any]):
    revision = serializers.IntegerField()
    runtime = serializers.DictField()
    brain = serializers.DictField()
    defaults = serializers.DictField()
    bounds = serializers.DictField()


class PageQuery(serializers.Serializer[Any]):
    """What every list can be asked for."""

    limit = serializers.IntegerField(min_value=1, max_value=500, default=50)
    cursor = StrictCharField(max_length=400, required=False)


class ListQuery(PageQuery):
    """What the list of memories can be asked for."""

    status = serializers.ChoiceField([*Memory.Status.values, "all"], default=Memory.Status.ACTIVE)
    kind = StrictCharField(max_length=MAX_KIND_CHARS, required=False)
    categoryId = serializers.RegexField(r"^(null|[1-9][0-9]{0,18})$", required=False)
    projectId = serializers.IntegerField(min_value=1, max_value=MAX_ID, required=False)
    importanceMin = serializers.IntegerField(
        min_value=MIN_IMPORTANCE, max_value=MAX_IMPORTANCE, required=False
    )
    importanceMax = serializers.IntegerField(
        min_value=MIN_IMPORTANCE, max_value=MAX_IMPORTANCE, required=False
    )
    ordering = serializers.ChoiceField(
        [sign + name for name in ORDERINGS for sign in ("", "-")], default="-updated_at"
    )
    q = StrictCharField(max_length=20_000, required=False, allow_blank=True)
