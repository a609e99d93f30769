"""Writes to single memories. Each locks the row, asks for access again, changes and records in one go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from elowen.lib.errors import Conflict, Invalid, NotFound, Refused, Stale
from elowen.lib.hashing import text_hash
from elowen.lib.text import unstorable
from memories import audit
from memories.actions.categories import category_for_write
from memories.audit import PLAIN, Change, Note
from memories.importance import DEFAULT_IMPORTANCE, MAX_IMPORTANCE, MIN_IMPORTANCE
from memories.models import Account, BodyHash, Category, Memory, MemoryEvent
from memories.models.memory import MAX_BODY_CHARS, MAX_KIND_CHARS, MemoryQuerySet
from memories.signals import memory_committed

Action = MemoryEvent.Action
KEPT = "Kept: counts as contact."  # the end of the reason of such an event
ROOM_FOR_REASON = 300 - len(KEPT) - 1
CHANGEABLE = ("body", "kind", "importance", "status")


@dataclass(frozen=True)
class NewMemory:
    """What a caller says about a memory it stores; a category wins over a project."""

    body: str
    kind: str = "fact"
    importance: int = DEFAULT_IMPORTANCE
    category_id: int | None = None
    project_id: int | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)


def clean_body(body: str) -> str:
    """Return the trimmed body, or say why it cannot be stored."""
    return clean_text(body, field="body", max_chars=MAX_BODY_CHARS)


def clean_text(text: str, *, field: str, max_chars: int) -> str:
    problem = unstorable(text)
    if problem:
        raise Invalid(problem, field=field)
    text = text.strip()
    if not text:
        raise Invalid("This must not be empty.", field=field)
    if len(text) > max_chars:
        raise Invalid(f"At most {max_chars:,} characters; this has {len(text):,}.", field=field)
    return text


def clean_importance(importance: int) -> int:
    if MIN_IMPORTANCE <= importance <= MAX_IMPORTANCE:
        return importance
    raise Invalid(f"Importance runs from {MIN_IMPORTANCE} to {MAX_IMPORTANCE}.", field="importance")


def add_memory(
    *,
    by: Account,
    body: str,
    kind: str = "fact",
    importance: int = DEFAULT_IMPORTANCE,
    category_id: int | None = None,
    project_id: int | None = None,
    source: str = Memory.Source.USER,
    origin: Mapping[str, Any] | None = None,
    note: Note = PLAIN,
) -> Memory:
    """Store one memory. See `add_memories`."""
    entry = NewMemory(body, kind, importance, category_id, project_id, origin or {})
    return add_memories(by=by, entries=[entry], source=source, note=note)[0]


@transaction.atomic
def add_memories(
    *,
    by: Account,
    entries: Sequence[NewMemory],
    source: str = Memory.Source.USER,
    note: Note = PLAIN,
) -> list[Memory]:
    """Store all memories or none, each in a category, so that each can be recalled.

    Raises:
        Invalid: a value is out of bounds; `field` names it.
        NotFound, Refused: the category or project is not there, or not the account's to use.
    """
    homes: dict[tuple[int | None, int | None], Category] = {}
    for entry in entries:
        key = (entry.category_id, entry.project_id)
        if key not in homes:
            homes[key] = category_for_write(account=by, category_id=key[0], project_id=key[1])
    now = timezone.now()
    memories = Memory.objects.bulk_create(
        [
            Memory(
                owner=by,
                category=homes[entry.category_id, entry.project_id],
                body=clean_body(entry.body),
                kind=clean_text(entry.kind, field="kind", max_chars=MAX_KIND_CHARS),
                importance=clean_importance(entry.importance),
                source=source,
                origin=dict(entry.origin),
                created_at=now,
                updated_at=now,
                dream_run_id=note.run_id,
                dream_reviewed_at=now if note.run_id else None,
            )
            for entry in entries
        ]
    )
    store_hashes(memories)
    audit.record([Change(Action.ADD, m, None, audit.snapshot(m)) for m in memories], by=by, note=note)
    announce(memories)
    return memories


@transaction.atomic
def change_memory(
    *,
    memory_id: int,
    by: Account,
    changes: Mapping[str, Any],
    if_match: str | None = None,
    note: Note = PLAIN,
) -> Memory:
    """Change body, kind, importance or status. A change that changes nothing writes nothing.

    Raises:
        Stale: the row is no longer the one whose tag is `if_match`.
    """
    memory = lock_memory(memory_id, by=by, note=note)
    if if_match is not None and if_match not in ("*", etag(memory)):
        raise Stale
    wanted = {name: _clean(name, value) for name, value in changes.items()}
    return write_changes(memory, wanted, by=by, note=note)


def archive_memory(*, memory_id: int, by: Account, note: Note = PLAIN) -> Memory:
    return change_memory(memory_id=memory_id, by=by, changes={"status": Memory.Status.ARCHIVED}, note=note)


def delete_memory(*, memory_id: int, by: Account, note: Note = PLAIN) -> Memory:
    """Move a memory to the trash; `restore_memory` brings it back."""
    return change_memory(memory_id=memory_id, by=by, changes={"status": Memory.Status.DELETED}, note=note)


@transaction.atomic
def restore_memory(
    *,
    memory_id: int,
    by: Account,
    keep: bool = False,
    note: Note = PLAIN,
) -> Memory:
    """Make a memory active again from any status.

    Args:
        keep: also count as contact, so that the next sweep does not take it again.
    """
    memory = lock_memory(memory_id, by=by, note=note, also_deleted=True)
    wanted: dict[str, Any] = {"status": Memory.Status.ACTIVE}
    if keep:
        wanted["last_used_at"], note = _contact(memory), _kept(note)
    return write_changes(memory, wanted, by=by, note=note)


@transaction.atomic
def keep_memory(*, memory_id: int, by: Account, note: Note = PLAIN) -> Memory:
    """Count contact without a use, so that the memory fades from now on anew.

    It is no edit: `updated_at` and the entity tag stay.
    """
    memory = lock_memory(memory_id, by=by, note=note)
    before = audit.snapshot(memory)
    memory.last_used_at = _contact(memory)
    memory.save(update_fields=["last_used_at"])
    event = Change(Action.UPDATE, memory, before, audit.snapshot(memory))
    audit.record([event], by=by, note=_kept(note))
    return memory


@transaction.atomic
def set_category(
    *,
    memory_id: int,
    by: Account,
    category_id: int | None,
    note: Note = PLAIN,
) -> Memory:
    """Move a memory to another category, or to none.

    Raises:
        Refused: another author's row stays in its pool.
    """
    memory = lock_memory(memory_id, by=by, note=note)
    if category_id == memory.category_id:
        return memory
    if memory.owner_id != by.pk:
        raise Refused("Only its author may move this memory out of the shared pool.", field="categoryId")
    if category_id is not None:
        category_for_write(account=by, category_id=category_id, project_id=None)
    return write_changes(memory, {"category_id": category_id}, by=by, note=note)


def lock_memory(memory_id: int, *, by: Account, note: Note, also_deleted: bool = False) -> Memory:
    """Lock one row that the account may write, or raise NotFound. Call inside a transaction."""
    rows = Memory.objects.all() if also_deleted else Memory.objects.not_deleted()
    memory = (
        writable_rows(rows, by=by, note=note).filter(pk=memory_id).select_for_update(of=("self",)).first()
    )
    if memory is None:
        raise NotFound
    return memory


def writable_rows(rows: MemoryQuerySet, *, by: Account, note: Note) -> MemoryQuerySet:
    return rows if note.operator else rows.writable_by(by)


def etag(memory: Memory) -> str:
    """Return the row's entity tag; it changes with every change but a use."""
    return f'"{memory.pk}-{int(memory.updated_at.timestamp() * 1_000_000)}"'


def store_hashes(memories: Sequence[Memory]) -> None:
    BodyHash.objects.bulk_create(
        [BodyHash(memory=memory, sha256=text_hash(memory.body)) for memory in memories],
        update_conflicts=True,
        unique_fields=["memory"],
        update_fields=["sha256"],
    )


def announce(memories: Sequence[Memory]) -> None:
    # Whoever indexes must not wake before the rows can be read; and what is saved stays saved if they fail.
    ids = [memory.pk for memory in memories]
    transaction.on_commit(partial(memory_committed.send_robust, Memory, memory_ids=ids))


def write_changes(memory: Memory, wanted: Mapping[str, Any], *, by: Account | None, note: Note) -> Memory:
    """Write what differs to a locked row, with its event. Without an account, the note names who acts."""
    changed = [name for name, value in wanted.items() if getattr(memory, name) != value]
    if not changed:
        return memory
    before = audit.snapshot(memory)
    for name in changed:
        setattr(memory, name, wanted[name])
    memory.updated_at = timezone.now()
    memory.dream_run_id = note.run_id
    memory.dream_reviewed_at = memory.updated_at if note.run_id else None
    memory.save(update_fields=[*changed, "updated_at", "dream_run_id", "dream_reviewed_at"])
    if "body" in changed:
        store_hashes([memory])
    event = Change(_action_for(memory, changed), memory, before, audit.snapshot(memory))
    audit.record([event], by=by, note=note)
    announce([memory])
    return memory


def _contact(memory: Memory) -> datetime:
    now = timezone.now()
    return max(memory.last_used_at or now, now)  # a clock that was set back takes nothing away


def _kept(note: Note) -> Note:
    return replace(note, reason=f"{note.reason[:ROOM_FOR_REASON]} {KEPT}".strip())


def _action_for(memory: Memory, changed: Sequence[str]) -> MemoryEvent.Action:
    if "category_id" in changed:
        return Action.CATEGORIZE
    if "status" in changed and memory.status == Memory.Status.DELETED:
        return Action.DELETE
    if ("status" in changed or "last_used_at" in changed) and memory.status == Memory.Status.ACTIVE:
        return Action.RESTORE
    return Action.UPDATE


def _clean(name: str, value: Any) -> Any:
    match name:
        case "body":
            return clean_body(value)
        case "kind":
            return clean_text(value, field="kind", max_chars=MAX_KIND_CHARS)
        case "importance":
            return clean_importance(value)
        case "status" if value in Memory.Status.values:
            return Memory.Status(value)
    raise Conflict(f"{name} cannot become this value.", field=name)
