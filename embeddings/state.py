"""How things stand, for the API and the pages."""

import time
from collections.abc import Callable
from typing import Any

from django.conf import settings

from elowen.lib.errors import Invalid, Unavailable
from elowen.providers.endpoint import LOCAL, Endpoint
from elowen.providers.vectors import Vector
from embeddings.calibration import is_calibrated
from embeddings.config import EmbeddingConfig, endpoint, load
from embeddings.connections import INSTANCE, Identity, Served, authorized
from embeddings.embedding import Purpose, Run, embed, rows_from
from embeddings.models import Connection, EmbeddingSpace, PendingMemory
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
        "calibrated": is_calibrated(place.provider, place.model),
        "pending": PendingMemory.objects.filter(account_id=account.pk).count(),
    }


def try_out(config: EmbeddingConfig, identity: Identity = INSTANCE) -> dict[str, Any]:
    """Embed one text and tell how it went; nothing but its usage is stored."""
    return _tried(
        endpoint(config),
        lambda: embed(Run.start(config), [SAMPLE], identity=identity, purpose=Purpose.TRIAL),
    )


def try_connection(connection: Connection) -> dict[str, Any]:
    """Do the same through this one connection, paused or not."""
    config = load()
    place = endpoint(config)
    if not config.is_connected or place.url != connection.url:
        return {"ok": False, "error": "The embedding settings do not name this provider and address."}
    served = Served(authorized(config, connection), INSTANCE, connection)
    return _tried(place, lambda: rows_from(served, Run.start(config), [SAMPLE], Purpose.TRIAL))


def _tried(place: Endpoint, ask: Callable[[], Vector]) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        rows = ask()
    except (Unavailable, Invalid) as error:
        return {"ok": False, "error": str(error)}
    return {
        "ok": True,
        "dimensions": rows.shape[1],
        "provider": place.provider,
        "model": place.model,
        "latencyMs": round((time.perf_counter() - began) * 1000, 1),
    }
