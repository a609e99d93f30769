from __future__ import annotations

from dataclasses import asdict

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


class EmbeddingSpace(models.Model):
    """Where vectors came from. Only vectors of one space can be compared; the row holds no secret."""

    provider = models.CharField(max_length=20)
    endpoint_hash = models.BinaryField(max_length=32)  # SHA-256 of the exact request address
    model = models.CharField(max_length=200)
    width = models.PositiveIntegerField(null=True)  # asked for; none takes what the model gives
    dims = models.PositiveIntegerField(null=True)  # of the vectors stored so far; all have it
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

    class Meta:
        verbose_name_plural = "pending memories"
        indexes = [Index(fields=["account_id", "next_at", "memory"], name="pending_by_turn")]

    def __str__(self) -> str:
        return f"pending memory {self.memory_id}"
