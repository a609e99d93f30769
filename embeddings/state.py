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
from embeddings.models import Connection, EmbeddingSpace, PendingMemory, Reindex
from embeddings.pending import SUSPECT_ATTEMPTS
from embeddings.space import space_of
from memories.models import Account

LANGUAGES = {"english": "English", "multilingual": "16 languages"}
SAMPLE = "Elowen remembers."


def describe(account: Account) -> dict[str, Any]:
    config = load()
    place = endpoint(config)
    space = EmbeddingSpace.objects.row_of(space_of(place))
    return config.to_document() | {
        "model": place.model,
        "spaceId": space.pk,
        "languages": LANGUAGES[settings.EMBEDDER] if config.provider == LOCAL else None,
        "calibrated": is_calibrated(place.provider, place.model),
        "pending": PendingMemory.objects.filter(account_id=account.pk).count(),
        "reindex": progress(space) if account.is_staff else None,
    }


def progress(space: EmbeddingSpace) -> dict[str, Any] | None:
    """Tell how far the latest reindexing into this space has come; None if there was none."""
    latest = Reindex.objects.filter(space=space).order_by("-pk").first()
    if latest is None:
        return None
    left, failed = 0, 0
    if latest.is_open:
        waiting = PendingMemory.objects.filter(backfill=True)
        left = waiting.count()
        failed = waiting.filter(attempts__gte=SUSPECT_ATTEMPTS).count()
    return {
        "state": latest.state,
        "total": latest.total,
        "done": max(latest.total - left, 0),
        "failed": failed,
        "startedAt": latest.started_at,
        "endedAt": latest.ended_at,
    }


def waiting() -> int:
    """Return how many memories of all accounts wait for a vector."""
    return PendingMemory.objects.count()


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
