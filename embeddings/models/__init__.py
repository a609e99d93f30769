from embeddings.models.connections import Connection, ConnectionEvent, EmbeddingUsage
from embeddings.models.vectors import EmbeddingSpace, MemoryEmbedding, PendingMemory

__all__ = [
    "Connection",
    "ConnectionEvent",
    "EmbeddingSpace",
    "EmbeddingUsage",
    "MemoryEmbedding",
    "PendingMemory",
]
