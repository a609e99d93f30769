"""Whole numbers that an operator may set. The apps that go by one say where it is stored and its bounds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Limit:
    section: str
    default: int
    low: int
    high: int

    def allows(self, value: object) -> bool:
        return type(value) is int and self.low <= value <= self.high


type Limits = Mapping[str, Limit]


def in_force(limits: Limits, sections: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Return the value of each limit; one that is stored out of its bounds counts as not set."""
    return {name: _in_force(name, limit, sections) for name, limit in limits.items()}


def _in_force(name: str, limit: Limit, sections: Mapping[str, Mapping[str, Any]]) -> int:
    value: int = sections.get(limit.section, {}).get(name, limit.default)
    return value if limit.allows(value) else limit.default
