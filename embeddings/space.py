"""The identity of a vector space. Vectors of two spaces are never compared, stored or counted together."""

from dataclasses import dataclass

from elowen.lib.errors import Conflict
from elowen.providers.endpoint import Endpoint, endpoint_fingerprint


class EmbeddingSpaceChanged(Conflict):
    """The embedding settings have changed while this was under way."""

    code = "embedding_space_changed"


@dataclass(frozen=True)
class VectorSpace:
    """Free of secrets: the address is only here as its hash."""

    provider: str
    endpoint_hash: bytes  # SHA-256 of the exact request address
    model: str
    width: int | None  # asked for; None takes what the model gives


def space_of(endpoint: Endpoint) -> VectorSpace:
    return VectorSpace(endpoint.provider, endpoint_fingerprint(endpoint.url), endpoint.model, endpoint.width)


def assert_space(captured: VectorSpace, expected: VectorSpace) -> None:
    """Refuse what was computed in another space, whatever its width.

    Raises:
        EmbeddingSpaceChanged: it was.
    """
    if captured != expected:
        raise EmbeddingSpaceChanged
