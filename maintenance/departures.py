"""Which of an account's memories the coming sweeps take, and when: the sweep's rules in plain numbers."""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memories.policy import LIMIT_WINDOW


@dataclass(frozen=True)
class Due:
    memory_id: int
    at: datetime  # the first sweep at which it may go


@dataclass(frozen=True)
class Departure:
    memory_id: int
    at: datetime


def departures(
    due: Iterable[Due], *, recent: Iterable[datetime], limit: int, sweeps: Sequence[datetime]
) -> list[Departure]:
    """Return what goes in which order. At each sweep it is the lowest ids, up to what the limit leaves.

    Args:
        due: the memories of one account.
        recent: its automatic deletions of the last 24 hours.
        sweeps: their times, in order.
    """
    coming = deque(sorted(due, key=lambda one: one.at))
    waiting: list[int] = []
    lost, gone = deque(sorted(recent)), list[Departure]()
    for sweep in sweeps:
        while coming and coming[0].at <= sweep:
            heapq.heappush(waiting, coming.popleft().memory_id)
        while lost and lost[0] <= sweep - LIMIT_WINDOW:
            lost.popleft()
        while waiting and len(lost) < limit:
            gone.append(Departure(heapq.heappop(waiting), sweep))
            lost.append(sweep)
    return gone
