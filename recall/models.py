from django.db import models
from django.db.models import Index

from memories.models import Memory


class MemoryWord(models.Model):
    """One word that an active memory holds, brought to its stem in its owner's language.

    Database triggers keep these rows true, in the transaction of whoever changes the memory.
    """

    pk = models.CompositePrimaryKey("memory_id", "lexeme")
    memory = models.ForeignKey(Memory, models.CASCADE, related_name="+", db_index=False)
    category_id = models.BigIntegerField()
    lexeme = models.CharField(max_length=64, db_collation="C")

    class Meta:
        indexes = [
            # Holds all that a search reads, so that it needs no row of the table.
            Index(fields=["category_id", "lexeme"], include=["memory"], name="word_by_category"),
        ]

    def __str__(self) -> str:
        return self.lexeme
