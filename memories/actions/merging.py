"""Several memories into one, refusing what would cross an audience or lose something."""

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from elowen.lib.errors import Conflict
from memories import audit
from memories.actions.editing import announce, clean_body, clean_text, store_hashes, writable_rows
from memories.audit import PLAIN, Change, Note
from memories.models import Account, Memory, MemoryEvent
from memories.models.memory import MAX_KIND_CHARS


@transaction.atomic
def merge_memories(
    *,
    by: Account,
    ids: Sequence[int],
    body: str,
    kind: str | None = None,
    note: Note = PLAIN,
) -> Memory:
    """Store one memory in place of several active ones of one category.

    Duplicate ids count once; inactive and inaccessible ones are skipped.

    Raises:
        Conflict: nothing is left to merge, categories differ, or kinds differ and none was named.
    """
    body = clean_body(body)
    sources = _lock_sources(by, ids, note)
    merged = Memory(
        owner=by,
        category_id=sources[0].category_id,
        body=body,
        kind=_kind_for(sources, kind),
        source=Memory.Source.MERGE,
        importance=max(source.importance for source in sources),
        use_count=sum(source.use_count for source in sources),
        last_used_at=max((s.last_used_at for s in sources if s.last_used_at), default=None),
        dream_run_id=note.run_id,
        dream_reviewed_at=timezone.now() if note.run_id else None,
    )
    retired = _retire(sources, note)
    merged.save(force_insert=True)
    store_hashes([merged])
    after = audit.snapshot(merged) | {"source_ids": [source.pk for source in sources]}
    audit.record([*retired, Change(MemoryEvent.Action.MERGE, merged, None, after)], by=by, note=note)
    announce([merged, *sources])
    return merged


def _lock_sources(by: Account, ids: Sequence[int], note: Note) -> list[Memory]:
    rows = writable_rows(Memory.objects.active(), by=by, note=note).filter(pk__in=set(ids))
    # One order for all, so that two merges of the same rows cannot wait for each other.
    sources = list(rows.order_by("pk").select_for_update(of=("self",)))
    if not sources:
        raise Conflict("None of these memories is active and yours to merge.", field="ids")
    if len({source.category_id for source in sources}) > 1:
        raise Conflict("The memories are in different categories; move them into one first.", field="ids")
    return sources


def _kind_for(sources: Sequence[Memory], kind: str | None) -> str:
    if kind is not None:
        return clean_text(kind, field="kind", max_chars=MAX_KIND_CHARS)
    kinds = {source.kind for source in sources}
    if len(kinds) > 1:
        raise Conflict(
            f"The memories are of different kinds ({', '.join(sorted(kinds))}); name one.", field="kind"
        )
    return kinds.pop()


def _retire(sources: Sequence[Memory], note: Note) -> list[Change]:
    now, changes = timezone.now(), []
    for source in sources:
        before = audit.snapshot(source)
        source.status, source.updated_at = Memory.Status.DELETED, now
        source.dream_run_id, source.dream_reviewed_at = note.run_id, now if note.run_id else None
        changes.append(Change(MemoryEvent.Action.DELETE, source, before, audit.snapshot(source)))
    Memory.objects.bulk_update(sources, ["status", "updated_at", "dream_run_id", "dream_reviewed_at"])
    return changes
