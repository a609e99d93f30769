from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers

from elowen.lib.rest import IdField, StrictCharField, StrictIntegerField, StrictSerializer
from memories.models.memory import MAX_BODY_CHARS
from recall.config import LIMITS

COUNT, BYTES = LIMITS["memoryRecallCount"], LIMITS["memoryRecallBytes"]
MAX_EXCLUDED = 5000
HEX = RegexValidator(r"\A[0-9a-f]{64}\Z", "Give 64 hexadecimal digits, in lower case.")


class VersionInput(StrictSerializer):
    id = IdField()
    bodySha256 = StrictCharField(validators=[HEX], required=False)


class RetrieveInput(StrictSerializer):
    query = StrictCharField(max_length=MAX_BODY_CHARS, allow_blank=True)
    projectId = IdField(required=False)
    count = StrictIntegerField(min_value=COUNT.low, max_value=COUNT.high, required=False)
    byteBudget = StrictIntegerField(min_value=1, max_value=BYTES.high, required=False)
    exclude = serializers.ListField(child=VersionInput(), max_length=MAX_EXCLUDED, required=False)


class SimilarInput(StrictSerializer):
    body = StrictCharField(max_length=MAX_BODY_CHARS)


class RecalledRow(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    owner_id = serializers.IntegerField(allow_null=True)
    category_id = serializers.IntegerField(allow_null=True)
    body = serializers.CharField()
    kind = serializers.CharField()
    importance = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    body_sha256 = serializers.CharField()
    score = serializers.FloatField()
    similarity = serializers.FloatField(allow_null=True)


class RecallReply(serializers.Serializer[Any]):
    memories = RecalledRow(many=True)
