"""A memory's history as one reader may see it."""

from collections.abc import Iterable
from dataclasses import dataclass

from memories.differences import Difference, differences
from memories.models import Account, Category, Memory, MemoryEvent

SHOWN_EVENTS = 50


@dataclass(frozen=True)
class TrailEntry:
    event: MemoryEvent
    actor: str
    differences: list[Difference]


def trail_of(memory: Memory, *, reader: Account) -> list[TrailEntry]:
    """Return the newest changes of a readable memory, newest first."""
    events = list(MemoryEvent.objects.filter(memory_id=memory.pk).order_by("-pk")[:SHOWN_EVENTS])
    names = _actor_names(events)
    categories = dict(Category.objects.usable_by(reader).values_list("pk", "name"))
    return [
        TrailEntry(
            event,
            names.get(event.actor, event.actor),
            differences(event.before, event.after, categories=categories),
        )
        for event in events
    ]


def _actor_names(events: Iterable[MemoryEvent]) -> dict[str, str]:
    ids = {event.actor.removeprefix("user:") for event in events if event.actor.startswith("user:")}
    accounts = Account.objects.filter(pk__in=[text for text in ids if text.isdecimal()])
    return {f"user:{pk}": name for pk, name in accounts.values_list("pk", "username")}
