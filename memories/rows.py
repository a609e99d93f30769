"""Memories as programs see them: the stored row, and what follows from it at this moment."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from memories.audit import SNAPSHOT_FIELDS
from memories.models import Memory
from memories.policy import RetentionPolicy
from memories.vitality import evictable_at, vitality

ROW_FIELDS = (*SNAPSHOT_FIELDS, "body_bytes")


def memory_row(memory: Memory, policy: RetentionPolicy, now: datetime) -> dict[str, Any]:
    return with_vitality({name: getattr(memory, name) for name in ROW_FIELDS}, policy, now)


def memory_rows(
    rows: Iterable[Mapping[str, Any]], policy: RetentionPolicy, now: datetime
) -> list[dict[str, Any]]:
    return [with_vitality(row, policy, now) for row in rows]


def with_vitality(row: Mapping[str, Any], policy: RetentionPolicy, now: datetime) -> dict[str, Any]:
    """Add vitality and evictable_at; both are null where the policy is malformed for this level."""
    full = {name: row[name] for name in ROW_FIELDS} | {"vitality": None, "evictable_at": None}
    facts = SimpleNamespace(
        **{name: row[name] for name in ("importance", "use_count", "last_used_at", "created_at")}
    )
    with suppress(ValueError):
        full["vitality"] = round(vitality(facts, policy, now), 4)
        full["evictable_at"] = evictable_at(facts, policy, now)
    return full
