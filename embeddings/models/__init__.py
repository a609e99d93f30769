from embeddings.models.connections import Connection, ConnectionEvent, EmbeddingUsage
from embeddings.models.vectors import EmbeddingSpace, MemoryEmbedding, PendingMemory, Reindex

__all__ = [
    "Connection",
    "ConnectionEvent",
    "EmbeddingSpace",
    "EmbeddingUsage",
    "MemoryEmbedding",
    "PendingMemory",
    "Reindex",
]
