"""Model files, trusted only when they are exactly the ones that were measured."""

from hashlib import file_digest
from pathlib import Path
from typing import NamedTuple

from elowen.lib.errors import Unavailable

# What a long text may cost: the rest of it has no say in the vector.
MAX_CHARS = 16_000


class ModelBroken(Unavailable):
    """The bundled embedding model is damaged or not the expected one; install Elowen's packages again."""

    code = "model_broken"


class Content(NamedTuple):
    size_bytes: int
    sha256: str


def checked(path: Path, content: Content) -> Path:
    """Return the path of a file that has exactly this content.

    Raises:
        ModelBroken: it cannot be read or has another content.
    """
    try:
        with path.open("rb") as file:
            found = Content(path.stat().st_size, file_digest(file, "sha256").hexdigest())
    except OSError:
        raise ModelBroken from None
    if found != content:
        raise ModelBroken
    return path
