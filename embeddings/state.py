"""How things stand, for the API and the pages."""

import time
from typing import Any

from django.conf import settings

from elowen.lib.errors import Invalid, Unavailable
from elowen.providers.embeddings import embed_texts
from elowen.providers.endpoint import LOCAL
from embeddings.config import EmbeddingConfig, endpoint, load
from embeddings.models import EmbeddingSpace, PendingMemory
from embeddings.space import space_of
from memories.models import Account

LANGUAGES = {"english": "English", "multilingual": "16 languages"}
SAMPLE = "Elowen remembers."


def describe(account: Account) -> dict[str, Any]:
    config = load()
    place = endpoint(config)
    return config.to_document() | {
        "model": place.model,
        "spaceId": EmbeddingSpace.objects.row_of(space_of(place)).pk,
        "languages": LANGUAGES[settings.EMBEDDER] if config.provider == LOCAL else None,
        "pending": PendingMemory.objects.filter(account_id=account.pk).count(),
    }


def try_out(config: EmbeddingConfig) -> dict[str, Any]:
    """Embed one text and tell how it went; nothing is stored."""
    place = endpoint(config)
    began = time.perf_counter()
    try:
        rows = embed_texts(place, [SAMPLE], allow_link_local=settings.ALLOW_LINK_LOCAL)
    except (Unavailable, Invalid) as error:
        return {"ok": False, "error": str(error)}
    return {
        "ok": True,
        "dimensions": rows.shape[1],
        "provider": place.provider,
        "model": place.model,
        "latencyMs": round((time.perf_counter() - began) * 1000, 1),
    }
