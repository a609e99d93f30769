"""The limits of recall: defaults, bounds, and what an operator has stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memories.config import RETENTION, load_document, usable
from memories.limits import Limit, in_force
from memories.policy import RetentionPolicy, from_document
from recall.ranking import Weights, sound_weights

RUNTIME, BRAIN = "runtime.limits", "brain.limits"


# Per mille of a cosine or of the score, counts, and UTF-8 bytes of bodies. The three thresholds suit the
# bundled English model; they are properties of a model.
LIMITS = {
    "memorySemanticFloorPerMille": Limit(RUNTIME, 200, 0, 950),
    "memoryParaphrasePerMille": Limit(RUNTIME, 700, 500, 990),
    "memoryDuplicatePerMille": Limit(RUNTIME, 930, 500, 990),
    "memoryImportanceWeightPerMille": Limit(RUNTIME, 100, 0, 300),
    "memoryVitalityWeightPerMille": Limit(RUNTIME, 100, 0, 300),
    "memoryRecallCount": Limit(BRAIN, 10, 1, 50),
    "memoryRecallBytes": Limit(BRAIN, 20_000, 1_000, 100_000),
}


@dataclass(frozen=True)
class RecallLimits:
    floor: float
    paraphrase: float
    duplicate: float
    weights: Weights
    count: int
    byte_budget: int


@dataclass(frozen=True)
class RecallConfig:
    """What a recall goes by, read at one moment."""

    limits: RecallLimits
    policy: RetentionPolicy


def load_config() -> RecallConfig:
    """Return the stored settings; one that is out of its bounds counts as not set.

    Raises:
        Unavailable: a half-life that is stored cannot be used.
    """
    sections, _ = load_document()
    return RecallConfig(limits_in(sections), usable(from_document(sections.get(RETENTION, {}))))


def load_limits() -> RecallLimits:
    return limits_in(load_document()[0])


def limits_in(sections: Mapping[str, Any]) -> RecallLimits:
    value = in_force(LIMITS, sections)
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
