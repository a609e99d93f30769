from collections.abc import Callable

import pytest

from embeddings.config import active_space
from embeddings.models import EmbeddingSpace
from memories.models import ConfigSection
from tests.embeddings.conftest import Use, server, use
from tests.fakes.server import FakeServer, gives_vectors

__all__ = ["server", "use"]

type Asks = Callable[..., None]
type SetLimits = Callable[..., None]


@pytest.fixture
def space(server: FakeServer, use: Use) -> EmbeddingSpace:
    """The space of the scripted server, which the settings name from now on."""
    use(server)
    return EmbeddingSpace.objects.row_of(active_space())


@pytest.fixture
def question(server: FakeServer) -> Asks:
    """Let every question from now on have this vector; only its direction counts."""

    def choose(*numbers: float) -> None:
        server.always(gives_vectors(change=lambda rows: [row | {"embedding": numbers} for row in rows]))

    return choose


@pytest.fixture
def set_limits() -> SetLimits:
    """Store these limits in `runtime.limits`, as an administrator would."""

    def save(**limits: object) -> None:
        ConfigSection.objects.update_or_create(name="runtime.limits", defaults={"document": limits})

    return save
