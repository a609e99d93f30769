from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Index, Q
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timezone import localtime

from elowen.lib.sealing import unseal
from elowen.lib.secret import Secret
from elowen.providers.catalog import PROVIDERS
from elowen.providers.endpoint import embeddings_url
from elowen.providers.errors import KeyRefused
from memories.models import Account


class ConnectionQuerySet(models.QuerySet["Connection"]):
    def granted(self, provider: str, account_id: int | None) -> Self:
        """Keep those that may serve the account, the first in turn first; of nobody, what all may use."""
        granted = Q(for_everyone=True)
        if account_id is not None:
            grants = Connection.granted_to.through.objects.filter(account=account_id)
            granted |= Q(pk__in=grants.values("connection"))
        return self.filter(granted, provider=provider, paused=False).order_by("place", "pk")

    def serving(self, provider: str, account_id: int | None, now: datetime) -> Self:
        """Of these, keep those that may be asked now."""
        free = Q(limited_until=None) | Q(limited_until__lte=now)
        return self.granted(provider, account_id).filter(free)


class Connection(models.Model):
    """An account at a provider, and who may have requests served by it."""

    class Kind(models.TextChoices):
        API_KEY = "api_key", "API key"
        OPENROUTER = "openrouter", "signed in at OpenRouter"  # which gives a permanent key

    provider = models.CharField(max_length=20, choices=[(one.id, one.name) for one in PROVIDERS.values()])
    label = models.CharField(max_length=60)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.API_KEY)
    base_url = models.CharField(
        "base address", max_length=1000, blank=True, help_text="Leave it empty for the provider's own."
    )
    sealed_key = models.BinaryField()
    paused = models.BooleanField(default=False)
    place = models.PositiveSmallIntegerField("order", default=0)  # the lower, the sooner
    for_everyone = models.BooleanField("for all accounts", default=True)
    granted_to = models.ManyToManyField(Account, blank=True, related_name="+")
    limited_until = models.DateTimeField(null=True, editable=False)  # not asked before
    last_failure = models.CharField(max_length=40, blank=True, editable=False)  # a code; empty once it works
    last_failure_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    objects = ConnectionQuerySet.as_manager()

    class Meta:
        indexes = [Index(fields=["provider", "place", "id"], name="connection_by_turn")]

    def __str__(self) -> str:
        return f"{self.label} ({self.provider})"

    def condition(self, now: datetime) -> str:
        """Say whether it would be asked now."""
        if self.paused:
            return "paused"
        if self.limited_until and self.limited_until > now:
            reason = "key refused" if self.last_failure == KeyRefused.code else "limit reached"
            return (
                f"{reason}, not asked before {date_format(localtime(self.limited_until), 'DATETIME_FORMAT')}"
            )
        return "refused the last time, asked again next time" if self.last_failure else "ready"

    @property
    def url(self) -> str:
        """The exact address that its requests go to."""
        return embeddings_url(self.base_url or PROVIDERS[self.provider].base_url)

    @property
    def key(self) -> Secret:
        """Raises SealBroken."""
        return Secret(unseal(bytes(self.sealed_key)))


class ConnectionEvent(models.Model):
    """One change of one connection, without its key. Append-only, like the audit of memories."""

    class Action(models.TextChoices):
        ADD = "add"
        CHANGE = "change"
        REMOVE = "remove"

    connection_id = models.BigIntegerField()
    action = models.CharField(max_length=6, choices=Action.choices)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    actor = models.CharField(max_length=40)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "connection change"
        indexes = [Index(fields=["connection_id", "-id"], name="connection_events")]

    def __str__(self) -> str:
        return f"{self.action} of connection {self.connection_id}"


class EmbeddingUsage(models.Model):
    """One request that was paid for, committed before its vectors are looked at."""

    class Purpose(models.TextChoices):
        INDEX = "index"
        QUERY = "query"
        TRIAL = "trial"

    account_id = models.BigIntegerField(null=True)  # for whom; null is the instance itself
    provider = models.CharField(max_length=20, blank=True)  # empty for a server of one's own
    connection_id = models.BigIntegerField(null=True)
    model = models.CharField(max_length=200)
    tokens = models.PositiveIntegerField(null=True)  # null where the server does not say
    purpose = models.CharField(max_length=5, choices=Purpose.choices)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "embedding usage"
        indexes = [Index(fields=["created_at"], name="usage_by_time")]

    def __str__(self) -> str:
        return f"{self.purpose} with {self.model}"
