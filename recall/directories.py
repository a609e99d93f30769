"""Which directories lie within a project's root. Pure but for `real`; access is not decided here."""

import ntpath
import os
import posixpath
import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePath, PurePosixPath, PureWindowsPath

WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\]")
EXTENDED = re.compile(r"^\\\\\?\\(UNC\\)?", re.IGNORECASE)  # Windows writes long paths so


def place(path: str) -> PurePath | None:
    """Return an absolute path of any system without its `.` and `..`; None for any other text.

    Names are compared as the path's system does: on Windows without regard to case. Differently composed
    letters are the same, as macOS gives them apart.
    """
    path = unicodedata.normalize("NFC", path)
    if "\0" in path:
        return None
    if found := EXTENDED.match(path):
        path = (r"\\" if found[1] else "") + path[found.end() :]
    if WINDOWS.match(path):
        return PureWindowsPath(ntpath.normpath(path))
    return PurePosixPath("/" + posixpath.normpath(path).lstrip("/")) if path.startswith("/") else None


def contains(root: str, path: str) -> bool:
    """Whether the path is the root or beneath it, by whole names: `/srv/app` does not hold `/srv/app-old`."""
    outer, inner = place(root), place(path)
    return outer is not None and type(outer) is type(inner) and inner.is_relative_to(outer)


def real(path: str) -> str | None:
    """Return where a path of this machine really leads, all links followed; None if there is nothing."""
    try:
        return os.path.realpath(path, strict=True)
    except (OSError, ValueError):
        return None


def innermost[Key](roots: Iterable[tuple[Key, str]], path: str) -> Key | None:
    """Return the key of the longest root that contains the path, of equal ones the first."""
    holding = [(key, place(root)) for key, root in roots if contains(root, path)]
    longest = max(holding, key=lambda pair: len(pair[1].parts) if pair[1] else 0, default=None)
    return longest[0] if longest else None
