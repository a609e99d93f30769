"""What `calibrate` has to say: how cosines lie, the thresholds in force and those that they suggest."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from elowen.providers.vectors import Vector
from embeddings.calibrating import Pairs, propose, quantile, reaching, together
from embeddings.calibration import Calibration
from embeddings.measuring import Store
from recall.config import LIMITS

SHARES = (0, 2, 5, 50, 90, 95, 98, 100)  # of a hundred
KEYS = {
    "floor": "memorySemanticFloorPerMille",
    "paraphrase": "memoryParaphrasePerMille",
    "duplicate": "memoryDuplicatePerMille",
}
NAMES = {
    "unrelated": "a note, and a question about something else",
    "question": "a note, and the question that it answers",
    "sibling": "two notes on one subject that say different things",
    "paraphrase": "two notes that say the same in other words",
    "near_duplicate": "two notes that say the same in nearly the same words",
    "pairs": "any two memories of this store",
    "nearest": "a memory and the nearest of the same owner",
}
REACH = {  # what is worth knowing of each threshold
    "floor": ("question", "unrelated", "pairs"),
    "paraphrase": ("paraphrase", "sibling", "nearest"),
    "duplicate": ("near_duplicate", "paraphrase", "nearest"),
}


@dataclass(frozen=True)
class Report:
    model: str
    is_known: bool
    languages: Mapping[str, Pairs]
    store: Store
    in_force: Calibration

    @property
    def cosines(self) -> dict[str, Vector]:
        of_store = {"pairs": self.store.pairs, "nearest": self.store.nearest}
        return vars(together(self.languages.values())) | of_store

    @property
    def proposed(self) -> dict[str, int]:
        return within_bounds(propose(together(self.languages.values())))

    def document(self) -> dict[str, Any]:
        """Return all of it as JSON knows it. Thresholds are per mille, shares are of one."""
        return {
            "model": self.model,
            "calibrated": self.is_known,
            "cosines": {name: described(values) for name, values in self.cosines.items()},
            "languages": {name: within_bounds(propose(pairs)) for name, pairs in self.languages.items()},
            "in_force": asdict(self.in_force),
            "proposed": self.proposed,
            "reached_by": {name: self.reached(name, value) for name, value in self.proposed.items()},
        }

    def reached(self, name: str, value: int) -> dict[str, float]:
        found = {of: self.cosines[of] for of in REACH[name] if len(self.cosines[of])}
        return {of: round(reaching(cosines, value), 4) for of, cosines in found.items()}

    def lines(self) -> Iterator[str]:
        known = "thresholds are known" if self.is_known else "nobody has measured this model before"
        yield f"{self.model} ({known})\n"
        yield f"{'cosine of …':<54}{'pairs':>8}" + "".join(f"{heading(share):>8}" for share in SHARES)
        yield from (f"{NAMES[name]:<54}{row_of(values)}" for name, values in self.cosines.items())
        yield ""
        yield from self.thresholds()
        yield ""
        yield from self.advice()

    def thresholds(self) -> Iterator[str]:
        each = {name: within_bounds(propose(pairs)) for name, pairs in self.languages.items()}
        alone = "".join(f"{f'{name} only':>9}" for name in each)
        yield f"{'per mille':<12}{'in force':>10}{'proposed':>10}{alone}"
        for name, value in self.proposed.items():
            alone = "".join(f"{one[name]:>9}" for one in each.values())
            yield f"{name:<12}{getattr(self.in_force, name):>10}{value:>10}{alone}"

    def advice(self) -> Iterator[str]:
        for name, value in self.proposed.items():
            for of, share in self.reached(name, value).items():
                yield f"{share:>6.1%} reach {value}: {NAMES[of]}"
        if not len(self.store.pairs):
            yield "No two memories have a vector of this model yet: nothing can be said of this store."
        limits = {KEYS[name]: value for name, value in self.proposed.items()}
        document = {"revision": "…", "runtime": {"limits": limits}}
        yield "\nTo set them, as an administrator, with the revision that GET /api/config gives:"
        yield f"PATCH /api/config {json.dumps(document, ensure_ascii=False)}"


def within_bounds(found: Calibration) -> dict[str, int]:
    return {name: min(max(value, low(name)), high(name)) for name, value in asdict(found).items()}


def low(name: str) -> int:
    return LIMITS[KEYS[name]].low


def high(name: str) -> int:
    return LIMITS[KEYS[name]].high


def described(values: Vector) -> dict[str, float | int]:
    shares = SHARES if len(values) else ()
    return {"count": len(values)} | {f"p{share}": round(quantile(values, share / 100), 3) for share in shares}


def row_of(values: Vector) -> str:
    count, *quantiles = described(values).values()
    return f"{count:>8,}" + "".join(f"{value:>8.3f}" for value in quantiles)


def heading(share: int) -> str:
    return {0: "least", 50: "half", 100: "most"}.get(share, f"{share} %")
