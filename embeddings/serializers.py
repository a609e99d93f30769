from rest_framework import serializers

from elowen.lib.rest import StrictCharField, StrictChoiceField, StrictIntegerField, StrictSerializer
from embeddings.config import CHOICES, MAX_MODEL_CHARS, MAX_RETRIES, MAX_WIDTH
from embeddings.models import Reindex


class EmbeddingConfigSerializer(StrictSerializer):
    """Which model turns memories into vectors. `local` is the bundled model and takes no other
    key, `endpoint` a server of your own; the others are providers, served by the accounts connected to them.
    """

    providerId = StrictChoiceField(choices=CHOICES)
    model = StrictCharField(max_length=MAX_MODEL_CHARS, allow_blank=True, default="")
    baseUrl = StrictCharField(max_length=1000, allow_blank=True, default="")
    dimensions = StrictIntegerField(min_value=1, max_value=MAX_WIDTH, allow_null=True, default=None)
    maxRetries = StrictIntegerField(
        min_value=0,
        max_value=MAX_RETRIES,
        default=MAX_RETRIES,
        help_text="How many other connections may be asked after one was refused.",
    )


class EmbeddingTrialSerializer(EmbeddingConfigSerializer):
    """Settings to try before they are saved; none at all stands for the stored ones."""

    providerId = StrictChoiceField(choices=CHOICES, required=False)


class ReindexSerializer(serializers.Serializer[object]):
    """The way of everything into one space. Meanwhile recall goes by words where a vector is missing."""

    state = serializers.ChoiceField(choices=Reindex.State.choices)
    total = serializers.IntegerField(help_text="Memories that lacked a vector.")
    done = serializers.IntegerField()
    failed = serializers.IntegerField(help_text="Refused several times; tried ever more rarely.")
    startedAt = serializers.DateTimeField()
    endedAt = serializers.DateTimeField(allow_null=True)


class EmbeddingStateSerializer(serializers.Serializer[object]):
    """The settings, with the space they mean and how much of it is still to be done."""

    providerId = serializers.CharField()
    model = serializers.CharField()
    baseUrl = serializers.CharField()
    dimensions = serializers.IntegerField(allow_null=True)
    maxRetries = serializers.IntegerField()
    spaceId = serializers.IntegerField()
    languages = serializers.CharField(allow_null=True, help_text="Of the bundled model; null otherwise.")
    calibrated = serializers.BooleanField(
        help_text="Whether the thresholds of recall were measured with this model, or are a cautious guess."
    )
    pending = serializers.IntegerField(help_text="Memories of your own account that wait for a vector.")
    reindex = ReindexSerializer(
        allow_null=True, help_text="The latest way of everything into this space; for administrators."
    )


class EmbeddingTestSerializer(serializers.Serializer[object]):
    """What embedding one text gave. A failure is an answer as well."""

    ok = serializers.BooleanField()
    dimensions = serializers.IntegerField(required=False)
    provider = serializers.CharField(required=False)
    model = serializers.CharField(required=False)
    latencyMs = serializers.FloatField(required=False)
    error = serializers.CharField(required=False)
