"""The limits of recall: defaults, bounds, and what an operator has stored."""

from dataclasses import dataclass
from typing import Any

from memories.config import load_document
from recall.ranking import Weights, sound_weights

RUNTIME, BRAIN = "runtime.limits", "brain.limits"


@dataclass(frozen=True)
class Setting:
    section: str
    default: int
    low: int
    high: int


# Per mille of a cosine or of the score, counts, and UTF-8 bytes of bodies.
SETTINGS = {
    "memorySemanticFloorPerMille": Setting(RUNTIME, 200, 0, 950),
    "memoryParaphrasePerMille": Setting(RUNTIME, 700, 500, 990),
    "memoryDuplicatePerMille": Setting(RUNTIME, 930, 500, 990),
    "memoryImportanceWeightPerMille": Setting(RUNTIME, 100, 0, 300),
    "memoryVitalityWeightPerMille": Setting(RUNTIME, 100, 0, 300),
    "memoryRecallCount": Setting(BRAIN, 10, 1, 50),
    "memoryRecallBytes": Setting(BRAIN, 20_000, 1_000, 100_000),
}


@dataclass(frozen=True)
class RecallLimits:
    floor: float
    paraphrase: float
    duplicate: float
    weights: Weights
    count: int
    byte_budget: int


def load_limits() -> RecallLimits:
    sections, _ = load_document()
    value = {name: _stored(sections, name, setting) for name, setting in SETTINGS.items()}
    return RecallLimits(
        floor=value["memorySemanticFloorPerMille"] / 1000,
        paraphrase=value["memoryParaphrasePerMille"] / 1000,
        duplicate=value["memoryDuplicatePerMille"] / 1000,
        weights=sound_weights(
            value["memoryImportanceWeightPerMille"] / 1000, value["memoryVitalityWeightPerMille"] / 1000
        ),
        count=value["memoryRecallCount"],
        byte_budget=value["memoryRecallBytes"],
    )


def _stored(sections: dict[str, dict[str, Any]], name: str, setting: Setting) -> int:
    value = sections.get(setting.section, {}).get(name, setting.default)
    sound = type(value) is int and setting.low <= value <= setting.high
    return value if sound else setting.default
