"""The limits of recall: defaults, bounds, and what an operator has stored."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from elowen.lib.errors import Invalid
from embeddings.calibration import UNKNOWN, Calibration, calibration_of
from embeddings.config import SECTION, endpoint, parse
from memories.config import RETENTION, load_document, usable
from memories.limits import Limit, in_force
from memories.policy import RetentionPolicy, from_document
from recall.ranking import Weights, sound_weights

RUNTIME, BRAIN = "runtime.limits", "brain.limits"


# Per mille of a cosine or of the score, counts, and UTF-8 bytes of bodies. The defaults of the first three
# are those of a model that nobody has measured; `limits_under` puts those of the model in use in their place.
LIMITS = {
    "memorySemanticFloorPerMille": Limit(RUNTIME, UNKNOWN.floor, 0, 950),
    "memoryParaphrasePerMille": Limit(RUNTIME, UNKNOWN.paraphrase, 500, 990),
    "memoryDuplicatePerMille": Limit(RUNTIME, UNKNOWN.duplicate, 500, 990),
    "memoryImportanceWeightPerMille": Limit(RUNTIME, 100, 0, 300),
    "memoryVitalityWeightPerMille": Limit(RUNTIME, 100, 0, 300),
    "memoryLexicalWeightPerMille": Limit(RUNTIME, 400, 0, 1000),
    "memoryLexicalFloorPerMille": Limit(RUNTIME, 400, 0, 1000),
    "memoryRecallCount": Limit(BRAIN, 10, 1, 50),
    "memoryRecallBytes": Limit(BRAIN, 20_000, 1_000, 100_000),
}


@dataclass(frozen=True)
class RecallLimits:
    floor: float
    paraphrase: float
    duplicate: float
    weights: Weights
    lexical: float  # share of words in the relevance
    lexical_floor: float  # share of the question's words, by worth, that makes a memory relevant
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


def limits_under(sections: Mapping[str, Any]) -> dict[str, Limit]:
    """Return the limits with the defaults that suit the model these settings name."""
    measured = calibration_under(sections)
    defaults = {
        "memorySemanticFloorPerMille": measured.floor,
        "memoryParaphrasePerMille": measured.paraphrase,
        "memoryDuplicatePerMille": measured.duplicate,
    }
    return {name: replace(one, default=defaults.get(name, one.default)) for name, one in LIMITS.items()}


def calibration_under(sections: Mapping[str, Any]) -> Calibration:
    try:
        place = endpoint(parse(sections.get(SECTION, {})))
    except Invalid:
        return UNKNOWN
    return calibration_of(place.provider, place.model)


def limits_in(sections: Mapping[str, Any]) -> RecallLimits:
    value = in_force(limits_under(sections), sections)
    return RecallLimits(
        floor=value["memorySemanticFloorPerMille"] / 1000,
        paraphrase=value["memoryParaphrasePerMille"] / 1000,
        duplicate=value["memoryDuplicatePerMille"] / 1000,
        weights=sound_weights(
            value["memoryImportanceWeightPerMille"] / 1000, value["memoryVitalityWeightPerMille"] / 1000
        ),
        lexical=value["memoryLexicalWeightPerMille"] / 1000,
        lexical_floor=value["memoryLexicalFloorPerMille"] / 1000,
        count=value["memoryRecallCount"],
        byte_budget=value["memoryRecallBytes"],
    )
