from typing import Self

from django.contrib.postgres.expressions import ArraySubquery
from django.db import models
from django.db.models import CheckConstraint, F, Func, GeneratedField, Index, Q
from django.db.models.functions import Length
from django.db.models.lookups import LessThanOrEqual
from django.utils import timezone

from memories.importance import DEFAULT_IMPORTANCE, MAX_IMPORTANCE, MIN_IMPORTANCE
from memories.models.account import Account
from memories.models.category import Category

MAX_BODY_CHARS = 100_000
MAX_KIND_CHARS = 40


class InArray(Func):
    """`value = ANY(array)`: unlike IN with a subquery, an index can serve it within an OR."""

    template = "%(expressions)s)"
    arg_joiner = " = ANY("
    output_field = models.BooleanField()
    conditional = True


class MemoryQuerySet(models.QuerySet["Memory"]):
    def active(self) -> Self:
        return self.filter(status=Memory.Status.ACTIVE)

    def not_deleted(self) -> Self:
        return self.exclude(status=Memory.Status.DELETED)

    def owned_by(self, account: Account) -> Self:
        return self.filter(owner=account)

    def readable_by(self, account: Account) -> Self:
        """Keep the account's own rows and those of the pools it may use right now."""
        pools = ArraySubquery(Category.objects.pools_of(account).values("pk"))
        return self.filter(Q(owner=account) | Q(InArray(F("category_id"), pools)))

    def writable_by(self, account: Account) -> Self:
        """Members of a pool have full parity on its rows, so this is the same door."""
        return self.readable_by(account)


class Memory(models.Model):
    """One thing worth remembering, in the words it was saved with."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        ARCHIVED = "archived"
        DELETED = "deleted"

    class Source(models.TextChoices):
        USER = "user"
        AGENT = "agent"
        MERGE = "merge"
        IMPORT = "import"

    # Nobody owns a pool row whose author's account is gone.
    owner = models.ForeignKey(Account, models.PROTECT, null=True, blank=True, related_name="memories")
    category = models.ForeignKey(
        Category, models.SET_NULL, null=True, blank=True, related_name="memories", db_index=False
    )
    body = models.TextField()
    body_bytes = GeneratedField(
        expression=Func("body", function="octet_length"), output_field=models.IntegerField(), db_persist=True
    )
    kind = models.CharField(max_length=MAX_KIND_CHARS, default="fact")
    importance = models.PositiveSmallIntegerField(default=DEFAULT_IMPORTANCE, db_default=DEFAULT_IMPORTANCE)
    status = models.CharField(max_length=8, choices=Status.choices, default=Status.ACTIVE)
    source = models.CharField(max_length=6, choices=Source.choices, default=Source.USER)
    use_count = models.PositiveIntegerField(default=0)
    last_used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)  # moves on edits, never on use
    dream_reviewed_at = models.DateTimeField(null=True, blank=True)
    dream_run_id = models.BigIntegerField(null=True, blank=True)
    origin = models.JSONField(default=dict, blank=True)  # client, conversation, entry; never secrets
    objects = MemoryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "memories"
        permissions = [("view_memory_body", "Can read the bodies of other people's memories")]
        indexes = [
            # None of them holds use_count or last_used_at: a use must stay a cheap, index-free update.
            Index(fields=["owner", "status", "-updated_at", "-id"], name="memory_by_owner"),
            Index(fields=["category", "status", "-updated_at", "-id"], name="memory_by_category"),
        ]
        constraints = [
            CheckConstraint(
                condition=Q(importance__range=(MIN_IMPORTANCE, MAX_IMPORTANCE)), name="importance_in_range"
            ),
            CheckConstraint(condition=Q(status__in=["active", "archived", "deleted"]), name="known_status"),
            CheckConstraint(
                condition=Q(source__in=["user", "agent", "merge", "import"]), name="known_source"
            ),
            CheckConstraint(
                condition=~Q(body="") & Q(LessThanOrEqual(Length("body"), MAX_BODY_CHARS)),
                name="body_length_in_range",
            ),
            CheckConstraint(condition=~Q(kind=""), name="kind_not_empty"),
        ]

    def __str__(self) -> str:
        return f"memory {self.pk}"  # never the body: this ends up in logs


class BodyHash(models.Model):
    """The identity of a memory's body. A missing row means: not indexed yet."""

    memory = models.OneToOneField(Memory, models.CASCADE, primary_key=True, related_name="body_hash")
    sha256 = models.BinaryField(max_length=32)

    def __str__(self) -> str:
        return f"hash of memory {self.pk}"
