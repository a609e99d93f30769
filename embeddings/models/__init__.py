from embeddings.models.connections import Connection, ConnectionEvent, EmbeddingUsage
from embeddings.models.corpora import CorpusDigest, CorpusVector
from embeddings.models.failures import REPORTED_AT, FailureSequence
from embeddings.models.vectors import EmbeddingSpace, MemoryEmbedding, PendingMemory, Reindex

__all__ = [
    "REPORTED_AT",
    "Connection",
    "ConnectionEvent",
    "CorpusDigest",
    "CorpusVector",
    "EmbeddingSpace",
    "EmbeddingUsage",
    "FailureSequence",
    "MemoryEmbedding",
    "PendingMemory",
    "Reindex",
]
