"""The one decision whether a stored vector belongs to the body that its memory has now.

Pieces of SQL over fixed names: `m` memories_memory, `h` its memories_bodyhash by LEFT JOIN,
`e` its embeddings_memoryembedding in the one space asked about.
"""

# A stored hash compares 100 times faster than one computed from the body. Where it is missing the vector
# counts as pending for the queue, while a reader computes it: it may use what is right, never what is stale.
EXACT_HASH = "sha256(convert_to(m.body, 'UTF8'))"
KNOWN_HASH = f"coalesce(h.sha256, {EXACT_HASH})"
READABLE = f"e.body_hash = {KNOWN_HASH}"
INDEXED = "coalesce(e.body_hash = h.sha256, false)"
NEEDED = f"(m.status = 'active' AND NOT {INDEXED})"

# With the parameter `space`, the id of an EmbeddingSpace row.
JOINS = """
    LEFT JOIN memories_bodyhash h ON h.memory_id = m.id
    LEFT JOIN embeddings_memoryembedding e ON e.memory_id = m.id AND e.space_id = %(space)s
"""
