"""Keyset pages: a cursor names the last row seen, so that a page costs the same wherever it is."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from elowen.lib.errors import Invalid


@dataclass(frozen=True)
class Cursor:
    """Where a page begins, and from which side; `now` keeps what is computed from the clock comparable."""

    ordering: str
    value: Any
    row_id: int
    backwards: bool
    now: datetime


def encode(cursor: Cursor) -> str:
    value = {"t": cursor.value.isoformat()} if isinstance(cursor.value, datetime) else cursor.value
    parts = [cursor.ordering, value, cursor.row_id, cursor.backwards, cursor.now.isoformat()]
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def cursor_in(query: Mapping[str, Any], *, ordering: str, kind: type) -> Cursor | None:
    """Return the cursor that was sent, if any.

    Args:
        kind: the type of what the list is sorted by.
    Raises:
        Invalid: it is none of this list's.
    """
    return _decode(query["cursor"], ordering=ordering, kind=kind) if query.get("cursor") else None


def _decode(text: str, *, ordering: str, kind: type) -> Cursor:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        stored, value, row_id, backwards, now = json.loads(raw)
        if isinstance(value, dict):
            value = _time(value["t"])
        valid = stored == ordering and type(row_id) is int and 0 < row_id < 2**63 and type(backwards) is bool
        if valid and type(value) is kind and abs(_size(value)) < 2**62:
            return Cursor(ordering, value, row_id, backwards, _time(now))
    except (binascii.Error, ValueError, TypeError, KeyError, RecursionError, AttributeError, OverflowError):
        pass
    raise Invalid("This cursor does not belong to this list; begin without one.", field="cursor")


@dataclass(frozen=True)
class Page:
    rows: list[Any]
    next: Cursor | None
    previous: Cursor | None


def page_of(
    rows: Any,
    *,
    ordering: str,
    limit: int,
    cursor: Cursor | None,
    now: datetime,
    key: Callable[[Any], tuple[Any, int]],
    after: Callable[[bool, Any, int], Any],
) -> Page:
    """Return one page of `rows`.

    Args:
        key: the value sorted by and the id, of a row.
        after: (greater?, value, id) -> a condition for the rows beyond that place.
    """
    backwards = bool(cursor and cursor.backwards)
    descending = ordering.startswith("-") != backwards
    sign, name = ("-" if descending else ""), ordering.lstrip("-")
    if cursor:
        rows = rows.filter(after(not descending, cursor.value, cursor.row_id))
    found: Sequence[Any] = list(rows.order_by(f"{sign}{name}", f"{sign}id")[: limit + 1])
    more, shown = len(found) > limit, list(found[:limit])
    if backwards:
        shown.reverse()
    has_next, has_previous = (True, more) if backwards else (more, cursor is not None)

    def at(row: Any, towards_start: bool) -> Cursor:
        value, row_id = key(row)
        return Cursor(ordering, value, row_id, towards_start, now)

    return Page(
        shown,
        at(shown[-1], False) if shown and has_next else None,
        at(shown[0], True) if shown and has_previous else None,
    )


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _size(value: Any) -> float:
    return value.year if isinstance(value, datetime) else float(value)
