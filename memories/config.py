"""The settings that change while the service runs: one document in sections, with one revision."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from elowen.lib.errors import Invalid, Stale, Unavailable
from memories.models import Account, ConfigEvent, ConfigSection
from memories.policy import LEVELS, RetentionPolicy, clamp, from_document, to_document

RETENTION = "runtime.memoryRetention"
SECTIONS = (RETENTION, "runtime.limits", "brain.limits", "embedding")
FIRST_REVISION = 1


def load_document() -> tuple[dict[str, dict[str, Any]], int]:
    """Return the stored sections by name, and the document's revision."""
    rows = list(ConfigSection.objects.all())
    revision = max((row.revision for row in rows), default=FIRST_REVISION)
    return {row.name: _object(row) for row in rows}, revision


def load_section(name: str) -> dict[str, Any]:
    """Return a section as it is stored; empty when nobody has changed it."""
    row = ConfigSection.objects.filter(name=name).first()
    return _object(row) if row else {}


def retention_policy() -> RetentionPolicy:
    return from_document(load_section(RETENTION))


def usable(policy: RetentionPolicy) -> RetentionPolicy:
    """Return the policy itself, for work on many rows at once that cannot go on without it.

    Raises:
        Unavailable: a half-life that is stored cannot be used.
    """
    try:
        for level in LEVELS:
            policy.half_life(level)
    except ValueError:
        raise Unavailable("The half-lives of the retention settings are unusable; save them again.") from None
    return policy


@transaction.atomic
def save(*, by: Account, changes: Mapping[str, dict[str, Any]], revision: int) -> None:
    """Save all sections that change, or none.

    Args:
        changes: by section, the values to change; the others stay.
    Raises:
        Stale: the document is no longer at `revision`.
    """
    sections, current = load_document()
    if current != revision:
        raise Stale
    for section, change in changes.items():
        stored = sections.get(section, {})
        merged = merge_retention(stored, change) if section == RETENTION else stored | change
        revision = save_section(name=section, document=merged, revision=revision, by=by)


def merge_retention(stored: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    return to_document(clamp(from_document(stored), change))


@transaction.atomic
def save_section(*, name: str, document: dict[str, Any], revision: int, by: Account) -> int:
    """Store a section that its owner has checked. Returns the document's new revision.

    Raises:
        Stale: the document is no longer at `revision`.
    """
    if name not in SECTIONS:
        raise Invalid("There is no such section.", field=name)
    current = _lock_revision()
    if current != revision:
        raise Stale
    row = ConfigSection.objects.get(name=name)
    before, row.document, row.revision, row.updated_at = row.document, document, current + 1, timezone.now()
    row.save()
    ConfigEvent.objects.create(
        section=name, revision=row.revision, before=before, after=document, actor=f"user:{by.pk}"
    )
    return row.revision


def _object(row: ConfigSection) -> dict[str, Any]:
    return row.document if isinstance(row.document, dict) else {}


def _lock_revision() -> int:
    missing = [ConfigSection(name=name, revision=FIRST_REVISION) for name in SECTIONS]
    ConfigSection.objects.bulk_create(missing, ignore_conflicts=True)
    # All rows, in one order: whoever saves any section waits for whoever saves another.
    rows = list(ConfigSection.objects.order_by("name").select_for_update())
    return max(row.revision for row in rows)
