"""What the tests of the queue put in and look at."""

from datetime import timedelta

from django.utils import timezone

from embeddings.models import MemoryEmbedding, PendingMemory
from memories.models import Account, Memory
from tests.factories import MemoryFactory


def remember(account: Account, *bodies: str) -> list[Memory]:
    return [MemoryFactory.create(owner=account, category=None, body=body) for body in bodies]


def indexed() -> set[int]:
    return set(MemoryEmbedding.objects.values_list("memory_id", flat=True))


def waiting() -> dict[int, int]:
    return dict(PendingMemory.objects.values_list("memory_id", "attempts"))


def make_due() -> None:
    PendingMemory.objects.update(next_at=timezone.now() - timedelta(seconds=1))
