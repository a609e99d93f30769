"""The limits of recall: defaults, bounds, and what an operator has stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from elowen.lib.errors import Unavailable
from memories.config import RETENTION, load_document
from memories.policy import LEVELS, RetentionPolicy, from_document
from recall.ranking import Weights, sound_weights

RUNTIME, BRAIN = "runtime.limits", "brain.limits"


@dataclass(frozen=True)
class Setting:
    section: str
    default: int
    low: int
    high: int


# Per mille of a cosine or of the score, counts, and UTF-8 bytes of bodies. The three thresholds suit the
# bundled English model; they are properties of a model.
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
    return RecallConfig(limits_in(sections), _usable_policy(sections))


def load_limits() -> RecallLimits:
    return limits_in(load_document()[0])


def limits_in(sections: Mapping[str, Any]) -> RecallLimits:
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


def _stored(sections: Mapping[str, Any], name: str, setting: Setting) -> int:
    section = sections.get(setting.section)
    value = section.get(name, setting.default) if isinstance(section, Mapping) else setting.default
    sound = type(value) is int and setting.low <= value <= setting.high
    return value if sound else setting.default


def _usable_policy(sections: Mapping[str, Any]) -> RetentionPolicy:
    section = sections.get(RETENTION)
    policy = from_document(section if isinstance(section, Mapping) else {})
    try:
        for level in LEVELS:
            policy.half_life(level)
    except ValueError:
        # In SQL it would become a NaN, which sorts above every score.
        raise Unavailable("The half-lives of the retention settings are unusable; save them again.") from None
    return policy
