from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import CheckConstraint, F, Func, Index, Q, UniqueConstraint
from django.db.models.lookups import GreaterThan
from django.utils import timezone
from pgvector.django import HalfVectorField

from embeddings.space import VectorSpace
from memories.models import Memory

VECTOR_LENGTH = Func(F("vec"), function="l2_norm", output_field=models.FloatField())


class EmbeddingSpaceQuerySet(models.QuerySet["EmbeddingSpace"]):
    def row_of(self, space: VectorSpace) -> EmbeddingSpace:
        """Return the row of this space, made at the first call."""
        return self.get_or_create(**asdict(space))[0]

    def held_until(self, space: VectorSpace, now: datetime) -> datetime | None:
        """Return until when the space's own server wants no request, if that is later than now."""
        held = self.filter(**asdict(space), held_until__gt=now)
        return held.values_list("held_until", flat=True).first()


class EmbeddingSpace(models.Model):
    """Where vectors came from. Only vectors of one space can be compared; the row holds no secret."""

    provider = models.CharField(max_length=20)
    endpoint_hash = models.BinaryField(max_length=32)  # SHA-256 of the exact request address
    model = models.CharField(max_length=200)
    width = models.PositiveIntegerField(null=True)  # asked for; none takes what the model gives
    dims = models.PositiveIntegerField(null=True)  # of the vectors stored so far; all have it
    held_until = models.DateTimeField(null=True)  # its server of our own wants no request before
    created_at = models.DateTimeField(default=timezone.now)
    objects = EmbeddingSpaceQuerySet.as_manager()

    class Meta:
        constraints = [
            UniqueConstraint(
                fields=["provider", "endpoint_hash", "model", "width"],
                nulls_distinct=False,
                name="one_row_per_space",
            )
        ]

    def __str__(self) -> str:
        return f"{self.model} ({self.provider})"


class MemoryEmbedding(models.Model):
    """A memory's vector in one space, and of which exact body it is.

    Carries what the scan of a recall filters by, so that it needs no join. Database triggers keep
    those copies true, whoever changes the memory.
    """

    pk = models.CompositePrimaryKey("memory_id", "space_id")
    memory = models.ForeignKey(Memory, models.CASCADE, related_name="embeddings", db_index=False)
    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, related_name="embeddings", db_index=False)
    account_id = models.BigIntegerField(null=True)  # the owner
    category_id = models.BigIntegerField(null=True)  # only while the memory is active
    body_hash = models.BinaryField(max_length=32)
    vec = HalfVectorField()

    class Meta:
        indexes = [
            Index(fields=["space", "category_id"], name="embedding_by_category"),
            Index(fields=["space", "account_id"], name="embedding_by_account"),
        ]
        constraints = [
            # The cosine with a zero vector is NaN, which PostgreSQL sorts above every number.
            CheckConstraint(condition=Q(GreaterThan(VECTOR_LENGTH, 0.0)), name="vector_not_zero"),
        ]

    def __str__(self) -> str:
        return f"vector of memory {self.memory_id}"


class PendingMemory(models.Model):
    """A memory that waits for its vector. Database triggers put it here; storing the vector takes it away."""

    memory = models.OneToOneField(Memory, models.CASCADE, primary_key=True, related_name="pending")
    account_id = models.BigIntegerField()  # whose turn it is; 0 where nobody owns the memory
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(default=timezone.now)
    backfill = models.BooleanField(default=False, db_default=False)  # what is new goes before it

    class Meta:
        verbose_name_plural = "pending memories"
        indexes = [
            Index(fields=["account_id", "backfill", "next_at", "memory"], name="pending_by_turn"),
            Index(fields=["attempts"], condition=Q(backfill=True), name="backfill_left"),
        ]

    def __str__(self) -> str:
        return f"pending memory {self.memory_id}"


class ReindexQuerySet(models.QuerySet["Reindex"]):
    def open(self) -> Self:
        """Keep the one that is not over."""
        return self.filter(state__in=[Reindex.State.RUNNING, Reindex.State.STOPPED])


class Reindex(models.Model):
    """The way of everything into one space: after a change of the model, or where vectors were lost."""

    class State(models.TextChoices):
        RUNNING = "running"
        STOPPED = "stopped", "stopped by an administrator"
        DONE = "done"
        SUPERSEDED = "superseded", "superseded by another change"

    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, related_name="+")
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    total = models.PositiveIntegerField()  # memories that lacked a vector
    asked_by = models.CharField(max_length=40, blank=True)  # empty: it began by itself
    stopped_by = models.CharField(max_length=40, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)
    objects = ReindexQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "reindexing"
        constraints = [
            UniqueConstraint(
                models.Value(1), condition=Q(state__in=["running", "stopped"]), name="one_open_reindex"
            )
        ]

    def __str__(self) -> str:
        return f"reindexing of {self.total} memories"

    @property
    def is_open(self) -> bool:
        return self.state in (Reindex.State.RUNNING, Reindex.State.STOPPED)
