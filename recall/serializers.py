from typing import Any, get_args

from django.core.validators import RegexValidator
from rest_framework import serializers

from elowen.lib.rest import IdField, StrictCharField, StrictIntegerField, StrictSerializer
from memories.models.memory import MAX_BODY_CHARS
from recall.config import LIMITS
from recall.packing import Fate
from recall.retrieval import Path

COUNT, BYTES = LIMITS["memoryRecallCount"], LIMITS["memoryRecallBytes"]
MAX_EXCLUDED = 5000
HEX = RegexValidator(r"\A[0-9a-f]{64}\Z", "Give 64 hexadecimal digits, in lower case.")


class VersionInput(StrictSerializer):
    id = IdField()
    bodySha256 = StrictCharField(validators=[HEX], required=False)


class RetrieveInput(StrictSerializer):
    query = StrictCharField(max_length=MAX_BODY_CHARS, allow_blank=True)
    projectId = IdField(required=False)
    workingDirectory = StrictCharField(
        max_length=4096,
        required=False,
        help_text="Canonical path at the client; without projectId it chooses the project by its root.",
    )
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


class ExplainedRow(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="memory.pk")
    category_id = serializers.IntegerField(source="memory.category_id", allow_null=True)
    excerpt = serializers.CharField(help_text="The first characters of its body.")
    body_bytes = serializers.IntegerField(source="memory.body_bytes")
    fate = serializers.ChoiceField(
        choices=get_args(Fate.__value__),
        help_text="`after the last`: the count or the bytes were used up before its turn.",
    )
    repeats = serializers.IntegerField(
        allow_null=True, help_text="The picked memory that says it already: the same text, or a paraphrase."
    )
    score = serializers.FloatField(allow_null=True, help_text="Null below the floor.")
    cosine = serializers.FloatField(allow_null=True, help_text="Null without a current vector.")
    words = serializers.FloatField(help_text="Share of the question's words that it holds, by their weight.")
    importance = serializers.IntegerField(source="memory.importance")
    vitality = serializers.FloatField(allow_null=True)


class WordRow(serializers.Serializer[Any]):
    lexeme = serializers.CharField(help_text="As it is compared: its stem, or a pair of characters.")
    held = serializers.IntegerField(help_text="Memories of the scope that hold it.")
    weight = serializers.FloatField(help_text="Its rarity; natural logarithm.")


class LimitsRow(serializers.Serializer[Any]):
    floor = serializers.FloatField()
    paraphrase = serializers.FloatField()
    lexical_weight = serializers.FloatField(source="lexical")
    lexical_floor = serializers.FloatField()
    importance_weight = serializers.FloatField(source="weights.importance")
    vitality_weight = serializers.FloatField(source="weights.vitality")
    count = serializers.IntegerField()
    byte_budget = serializers.IntegerField()


class ExplainReply(serializers.Serializer[Any]):
    path = serializers.ChoiceField(choices=get_args(Path.__value__))
    reason = serializers.CharField()
    provider = serializers.CharField(help_text="Empty where the stored settings cannot be used.")
    model = serializers.CharField()
    failure = serializers.CharField(help_text="Why the question could not be embedded; empty when it could.")
    limits = LimitsRow(allow_null=True, help_text="Null where nothing was looked for.")
    words = WordRow(many=True)
    candidates = ExplainedRow(many=True)
