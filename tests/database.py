from django.db import connection


def let_tests_empty_the_trail() -> None:
    """Let the flush after a transactional test truncate the audit; its rows stay protected."""
    with connection.cursor() as cursor:
        for table in ("memories_memoryevent", "memories_configevent", "embeddings_connectionevent"):
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER keeps_all")
