"""What changed between two snapshots of a memory, in pieces a person can read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from re import findall
from typing import Any, Literal

type Tag = Literal["same", "added", "removed"]

LABELS = {
    "body": "Body",
    "kind": "Kind",
    "importance": "Importance",
    "status": "Status",
    "category_id": "Category",
}
# Comparing words takes time with the product of the lengths; longer texts are shown whole, old and new.
MAX_COMPARED_CHARS = 5_000
WORDS = r"\s+|\w+|[^\w\s]+"


@dataclass(frozen=True)
class Piece:
    tag: Tag
    text: str


@dataclass(frozen=True)
class Difference:
    label: str
    pieces: list[Piece]


def differences(
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    *,
    categories: Mapping[int, str] | None = None,
) -> list[Difference]:
    """Return one difference for each field that changed; none for a memory that came or went whole.

    Args:
        categories: names by id, as far as the reader may know them.
    """
    if before is None or after is None:
        return []
    changed = [name for name in LABELS if before.get(name) != after.get(name)]
    return [_difference(name, before.get(name), after.get(name), categories or {}) for name in changed]


def _difference(name: str, old: object, new: object, categories: Mapping[int, str]) -> Difference:
    if name == "category_id":
        old, new = _category(old, categories), _category(new, categories)
    pieces = word_pieces(str(old), str(new)) if name == "body" else _replaced(str(old), str(new), gap=" ")
    return Difference(LABELS[name], pieces)


def word_pieces(old: str, new: str) -> list[Piece]:
    """Return the new text with what was added and removed, word by word."""
    if len(old) + len(new) > MAX_COMPARED_CHARS:
        return _replaced(old, new, gap="\n")
    return list(_compared(findall(WORDS, old), findall(WORDS, new)))


def _compared(old: list[str], new: list[str]) -> Iterator[Piece]:
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield Piece("same", "".join(old[a:b]))
            continue
        if a < b:
            yield Piece("removed", "".join(old[a:b]))
        if c < d:
            yield Piece("added", "".join(new[c:d]))


def _replaced(old: str, new: str, *, gap: str) -> list[Piece]:
    return [Piece("removed", old), Piece("same", gap), Piece("added", new)]


def _category(value: object, names: Mapping[int, str]) -> str:
    if value is None:
        return "none"
    return names.get(value, "another category") if isinstance(value, int) else "another category"
