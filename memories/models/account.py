from typing import Self

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils import timezone

# Those that PostgreSQL can bring to their stems; `simple` leaves words as they are.
LANGUAGES = (
    "simple", "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "estonian", "finnish",
    "french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian",
    "nepali", "norwegian", "portuguese", "romanian", "russian", "serbian", "spanish", "swedish", "tamil",
    "turkish", "yiddish",
)  # fmt: skip


class Account(AbstractUser):
    """A person or a program that has memories of its own, with its personal switches."""

    language = models.CharField(
        max_length=20,
        choices=[(name, name.capitalize()) for name in LANGUAGES],
        default="english",
        db_default="english",
        help_text="Of its memories: words are found in all their forms. Simple: any other language.",
    )
    auto_recall = models.BooleanField("recall at turn start", default=True)
    auto_live_recall = models.BooleanField("recall during a turn", default=True)
    auto_save = models.BooleanField("save memories automatically", default=False)

    class Meta(AbstractUser.Meta):
        verbose_name = "account"
        verbose_name_plural = "accounts"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self) -> Self:
        """Keep keys that are neither revoked nor expired, of accounts that may sign in."""
        in_time = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
        return self.filter(in_time, revoked_at=None, account__is_active=True)


class ApiKey(models.Model):
    """A program's way in. The secret itself is shown once and stored nowhere."""

    class Scope(models.TextChoices):
        READ = "read"
        WRITE = "write"

    account = models.ForeignKey(Account, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=60)
    prefix = models.CharField(max_length=16, unique=True)  # the readable part: `elw_` and eight characters
    digest = models.BinaryField(max_length=32)  # SHA-256 of the whole key
    scopes = ArrayField(models.CharField(max_length=5, choices=Scope.choices), default=list)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "API key"
        constraints = [
            CheckConstraint(condition=Q(scopes__contained_by=["read", "write"]), name="known_scopes"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
