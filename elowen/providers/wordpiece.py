"""BERT's uncased tokenizer: text to the numbers that the bundled English model was trained on."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

CLS, SEP, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
MAX_WORD_CHARS = 100  # a longer word is unknown, as in training
CACHED_WORDS = 20_000
# Not the unassigned ones (Cn), of which every Python knows others: vectors must not depend on that.
DROPPED = ("Cc", "Cf", "Co", "Cs")

# Scripts written without spaces: every ideograph is a word (the ranges of the reference tokenizer).
IDEOGRAPH = re.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f"
    "\U0002b740-\U0002b81f\U0002b920-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f])"
)


class WordPiece:
    def __init__(self, vocabulary: str) -> None:
        """Take the vocabulary as text: one piece a line, whose number is its line."""
        self.ids = {piece: number for number, piece in enumerate(vocabulary.splitlines())}
        self.first, self.last, self.unknown = self.ids[CLS], self.ids[SEP], self.ids[UNKNOWN]
        self.cached_pieces = lru_cache(maxsize=CACHED_WORDS)(self.pieces)

    def encode(self, text: str) -> list[int]:
        """Return the numbers of the text's pieces, without the marks around them."""
        return [number for word in words(text) for number in self.cached_pieces(word)]

    def pieces(self, word: str) -> list[int]:
        if len(word) > MAX_WORD_CHARS:
            return [self.unknown]
        numbers, start = [], 0
        while start < len(word):
            end = self.longest_piece(word, start)
            if end == start:
                return [self.unknown]
            numbers.append(self.ids[marked(word, start, end)])
            start = end
        return numbers

    def longest_piece(self, word: str, start: int) -> int:
        ends = range(len(word), start, -1)
        return next((end for end in ends if marked(word, start, end) in self.ids), start)


def marked(word: str, start: int, end: int) -> str:
    return f"##{word[start:end]}" if start else word[start:end]


def words(text: str) -> Iterator[str]:
    spaced = IDEOGRAPH.sub(r" \1 ", "".join(map(clean, text)))
    # Lower case letter by letter: Python alone would write the last sigma of a word differently.
    plain = without_marks(spaced).replace("Σ", "σ").lower()
    for chunk in plain.split():
        yield from split_at_punctuation(chunk)


@lru_cache(maxsize=4_096)
def clean(char: str) -> str:
    if char in "\t\n\r":
        return " "
    category = unicodedata.category(char)
    if category in DROPPED or char == "\ufffd":
        return ""
    return " " if category == "Zs" else char


def without_marks(text: str) -> str:
    if text.isascii():
        return text
    return "".join(char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn")


def split_at_punctuation(chunk: str) -> Iterator[str]:
    if chunk.isalnum():
        yield chunk
        return
    start = 0
    for place, char in enumerate(chunk):
        if is_punctuation(char):
            if start < place:
                yield chunk[start:place]
            yield char
            start = place + 1
    if start < len(chunk):
        yield chunk[start:]


@lru_cache(maxsize=4_096)
def is_punctuation(char: str) -> bool:
    # BERT also counts the ASCII symbols, such as + and $.
    return unicodedata.category(char)[0] == "P" or (char.isascii() and not char.isalnum())
