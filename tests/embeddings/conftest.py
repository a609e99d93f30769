from collections.abc import Callable, Iterator

import pytest

from embeddings.config import SECTION, EmbeddingConfig
from memories.models import ConfigSection
from tests.fakes.server import FakeServer

type Use = Callable[..., EmbeddingConfig]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        yield fake


@pytest.fixture
def use() -> Use:
    """Save settings that send texts to this server, and return them."""

    def save(server: FakeServer, *, model: str = "m", width: int | None = None) -> EmbeddingConfig:
        config = EmbeddingConfig("endpoint", model, server.base, width)
        ConfigSection.objects.update_or_create(name=SECTION, defaults={"document": config.to_document()})
        return config

    return save
