"""The retention settings as a form. Bounds and defaults are the policy's own."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from memories.importance import VERBAL_SCALE
from memories.policy import BOUNDS, DEFAULT_POLICY, LEVELS, Bounds, RetentionPolicy

WORDS = {
    "enabled": "While this is off, memories still fade, but no sweep takes any.",
    "vitalityFloor": "A memory may go once its vitality is below this.",
    "graceDays": "Nothing goes before it is this old. A number out of bounds becomes the nearest bound.",
    "dailyDeletionLimit": "The most that sweeps take from one account within 24 hours.",
}


@dataclass(frozen=True)
class Setting:
    """One field as the page shows it: with what it means, and what else there is to know about it now."""

    field: forms.BoundField
    words: str
    remark: str


def within(bounds: Bounds) -> Callable[[float], None]:
    def check(value: float) -> None:
        if bounds.clamp(value) != value:
            raise ValidationError(f"This has to be from {bounds.low:g} to {bounds.high:g}.")

    return check


def number(
    bounds: Bounds, default: float, *, label: str, unit: str, whole: bool = False, clamped: bool = False
) -> forms.IntegerField:
    """Return a field that tells its bounds and its default.

    Args:
        clamped: take any number, as it is brought into its bounds when it is stored.
    """
    field = forms.IntegerField if whole else forms.FloatField
    return field(
        label=label,
        help_text=f"{bounds.low:g} to {bounds.high:g} {unit}, by default {default:g}.",
        validators=[] if clamped else [within(bounds)],
        # Not type=number: browsers hide what was typed when it is no number.
        widget=forms.TextInput({"inputmode": "numeric" if whole else "decimal", "autocomplete": "off"}),
        error_messages={
            "required": "Fill this in.",
            "invalid": "This has to be a whole number." if whole else "This has to be a number.",
        },
    )


def half_life(level: int) -> forms.IntegerField:
    bounds, default = BOUNDS["halfLifeByImportance"], DEFAULT_POLICY.half_life(level)
    return number(bounds, default, label=f"Level {level}", unit="days")


def half_life_name(level: int) -> str:
    return f"halfLife{level}"


def _text(value: float | None) -> str:
    """In as few digits as say it exactly."""
    return "" if value is None else repr(value).removesuffix(".0")


def _said(value: object) -> str:
    """As it is typed, and a switch in words."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return _text(value) if isinstance(value, int | float) else str(value)


class RetentionForm(forms.Form):
    enabled = forms.BooleanField(
        label="Let faded memories go",
        help_text=f"By default {_said(DEFAULT_POLICY.enabled)}.",
        required=False,
    )
    vitalityFloor = number(BOUNDS["vitalityFloor"], DEFAULT_POLICY.floor, label="Floor", unit="of 100")
    graceDays = number(
        BOUNDS["graceDays"], DEFAULT_POLICY.grace_days, label="Grace", unit="days", clamped=True
    )
    dailyDeletionLimit = number(
        BOUNDS["dailyDeletionLimit"],
        DEFAULT_POLICY.daily_deletion_limit,
        label="Daily limit",
        unit="memories",
        whole=True,
    )

    def __init__(self, data: Mapping[str, Any] | None = None, initial: dict[str, Any] | None = None) -> None:
        super().__init__(data, initial=initial)
        self.remarks: dict[str, str] = {}
        self.fields |= {half_life_name(level): half_life(level) for level in LEVELS}

    def half_lives(self) -> list[Setting]:
        return [self._setting(half_life_name(level), VERBAL_SCALE[level]) for level in LEVELS]

    def others(self) -> list[Setting]:
        return [self._setting(name, words) for name, words in WORDS.items() if name != "enabled"]

    def switch(self) -> Setting:
        return self._setting("enabled", WORDS["enabled"])

    def changes(self) -> dict[str, Any]:
        """Return what was sent and is valid, as a change of the stored document."""
        valid = {name: _plain(value) for name, value in self.cleaned_data.items()}
        half_lives = {str(level): valid.pop(half_life_name(level), None) for level in LEVELS}
        return valid | {"halfLifeByImportance": {level: days for level, days in half_lives.items() if days}}

    def compare(self, policy: RetentionPolicy) -> None:
        """Remark beside each value that another one is in force."""
        stored = {name: _said(value) for name, value in values_of(policy).items()}
        differ = [name for name, value in self.cleaned_data.items() if _said(value) != stored[name]]
        self.remarks = {name: f"In force now: {stored[name] or 'nothing usable'}." for name in differ}

    def ask_for_missing(self) -> None:
        """Remark beside each field whose stored value cannot be used that it needs one."""
        missing = [name for name, value in self.initial.items() if value == ""]
        self.remarks = dict.fromkeys(missing, "The stored value cannot be used. Fill this in.")

    def labels_in_error(self) -> list[str]:
        fields = [setting.field for setting in (*self.half_lives(), *self.others())]
        return [str(field.label) for field in fields if field.errors]

    def _setting(self, name: str, words: str) -> Setting:
        return Setting(self[name], words, self.remarks.get(name, ""))


def values_of(policy: RetentionPolicy) -> dict[str, Any]:
    """Return the policy as it is typed into the form. A half-life that cannot be used is empty."""
    usable = [days if math.isfinite(days) and days > 0 else None for days in policy.half_lives]
    return {
        "enabled": policy.enabled,
        "vitalityFloor": _text(policy.floor),
        "graceDays": _text(policy.grace_days),
        "dailyDeletionLimit": _text(policy.daily_deletion_limit),
        **{half_life_name(level): _text(usable[level - 1]) for level in LEVELS},
    }


def _plain(value: Any) -> Any:
    """Store 21 for 21.0, as the defaults do."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
