"""Small rules about text."""


def unstorable(text: str) -> str | None:
    """Say why PostgreSQL or UTF-8 cannot hold this text, or return None."""
    if "\x00" in text:
        return "The NUL character cannot be stored."
    try:
        text.encode()
    except UnicodeEncodeError:
        return "A lone surrogate is not a character; send complete Unicode text."
    return None


def escape_like(text: str) -> str:
    """Make `%`, `_` and the backslash stand for themselves in a LIKE pattern."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def whole_number(text: str) -> int | None:
    """Return what was typed, or None where it is no number that PostgreSQL has room for."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None
