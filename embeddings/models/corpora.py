from django.db import models
from django.db.models import UniqueConstraint
from django.utils import timezone
from pgvector.django import HalfVectorField

from embeddings.models.vectors import EmbeddingSpace


class CorpusVector(models.Model):
    """The vector of one text that is the same for everybody, found by what it says."""

    corpus = models.CharField(max_length=20)
    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, related_name="+")
    text_hash = models.BinaryField(max_length=32)
    vec = HalfVectorField()

    class Meta:
        constraints = [
            UniqueConstraint(fields=["corpus", "space", "text_hash"], name="one_vector_per_text"),
        ]

    def __str__(self) -> str:
        return f"vector of a text of {self.corpus}"


class CorpusDigest(models.Model):
    """Notes that every text of a corpus has its vector, so that the next look is a single one."""

    corpus = models.CharField(max_length=20, primary_key=True)
    digest = models.BinaryField(max_length=32)  # of its texts' hashes and the space
    verified_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.corpus} is complete"
