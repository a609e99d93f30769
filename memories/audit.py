"""The trail of every change. Called by actions only, inside their transactions."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memories.models import Account, Memory, MemoryEvent

SNAPSHOT_FIELDS = (
    "id", "owner_id", "category_id", "body", "kind", "importance", "status", "source", "use_count",
    "last_used_at", "created_at", "updated_at", "dream_reviewed_at", "dream_run_id", "origin",
)  # fmt: skip

type Snapshot = dict[str, Any]


@dataclass(frozen=True)
class Note:
    """What an audit event says beside the row: who acted if not the account itself, and why.

    `operator` lifts the access predicate for the administration's console, and is never set by REST.
    """

    actor: str | None = None
    reason: str = ""
    model: str = ""
    run_id: int | None = None
    automatic: bool = False
    operator: bool = False

    def actor_of(self, by: Account | None) -> str:
        if by is None and self.actor is None:
            raise ValueError("Somebody must have acted.")
        return self.actor or f"user:{by and by.pk}"


PLAIN = Note()  # the account itself, without a word


@dataclass(frozen=True)
class Change:
    action: MemoryEvent.Action
    memory: Memory
    before: Snapshot | None
    after: Snapshot | None


def snapshot(memory: Memory) -> Snapshot:
    """Return the whole row as JSON types, times in ISO 8601."""
    return {name: _as_json(getattr(memory, name)) for name in SNAPSHOT_FIELDS}


def record(changes: Iterable[Change], *, by: Account | None, note: Note) -> None:
    """Append the changes to the trail. Without an account, the note names who acted."""
    MemoryEvent.objects.bulk_create(
        [
            MemoryEvent(
                memory_id=change.memory.pk,
                account_id=change.memory.owner_id,
                action=change.action,
                before=change.before,
                after=change.after,
                actor=note.actor_of(by),
                reason=note.reason[:300],
                model=note.model,
                run_id=note.run_id,
                automatic=note.automatic,
            )
            for change in changes
        ],
        batch_size=500,
    )


def _as_json(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
