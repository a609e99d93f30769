"""Vectors of models that were in use once take room, and the next change back is quick because of them."""

from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction

from elowen.lib.errors import Conflict, NotFound
from embeddings.actions.reindexing import administrator
from embeddings.actions.storing import lock_settings
from embeddings.config import active_space
from embeddings.models import CorpusDigest, CorpusVector, EmbeddingSpace, MemoryEmbedding
from memories.models import Account


@transaction.atomic
def prune_space(*, space_id: int, by: Account) -> int:
    """Delete the vectors of a space that the settings do not mean. Returns how many those were.

    The memories stay. A change back to that model embeds them anew.

    Raises:
        Conflict: it is the space in use.
        NotFound, Refused: there is no such space, or the account is no administrator.
    """
    administrator(by)
    lock_settings(shared=True)  # so that it is still not in use when this commits
    row = EmbeddingSpace.objects.filter(pk=space_id).first()
    if row is None:
        raise NotFound
    if row == EmbeddingSpace.objects.row_of(active_space()):
        raise Conflict("These vectors are in use. Change the model first.")
    pruned = sum(
        rows._raw_delete(rows.db)  # nothing hangs on them, and there may be a million
        for rows in (MemoryEmbedding.objects.filter(space=row), CorpusVector.objects.filter(space=row))
    )
    CorpusDigest.objects.all().delete()  # one of them may say that the texts of this space are complete
    EmbeddingSpace.objects.filter(pk=row.pk).update(dims=None)
    LogEntry.objects.create(
        user=by,
        content_type=ContentType.objects.get_for_model(EmbeddingSpace),
        object_id=str(row.pk),
        object_repr=str(row),
        action_flag=DELETION,
        change_message=f"Deleted {pruned} vectors",
    )
    return pruned
