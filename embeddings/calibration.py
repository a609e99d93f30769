"""Thresholds are properties of a model: how near two texts have to be, in its vectors, to mean something."""

from dataclasses import dataclass

from elowen.providers.endpoint import LOCAL


@dataclass(frozen=True)
class Calibration:
    """Cosines per mille."""

    floor: int  # below it a memory is not relevant to a question
    paraphrase: int  # from it on, two memories say the same to whoever reads them
    duplicate: int  # from it on, a new memory repeats one there is


# What an unknown model starts from, until somebody measures it.
UNKNOWN = Calibration(floor=200, paraphrase=700, duplicate=930)
# By provider and model. See docs/recall.md for how they were found.
KNOWN = {
    (LOCAL, "minilm-l6-int8-1"): Calibration(floor=200, paraphrase=900, duplicate=930),
    (LOCAL, "use-m3-6bit-1"): Calibration(floor=150, paraphrase=860, duplicate=880),
}


def calibration_of(provider: str, model: str) -> Calibration:
    return KNOWN.get((provider, model), UNKNOWN)


def is_calibrated(provider: str, model: str) -> bool:
    return (provider, model) in KNOWN
