"""The embedding settings and the connections as forms. What a value has to be, their actions know."""

from collections.abc import Mapping
from typing import Any

from django import forms

from elowen.lib.errors import Invalid
from elowen.providers.catalog import PROVIDERS
from elowen.providers.endpoint import LOCAL
from embeddings.actions.connecting import MAX_KEY_CHARS, MAX_LABEL_CHARS
from embeddings.config import ENDPOINT, MAX_MODEL_CHARS, MAX_RETRIES, MAX_WIDTH, EmbeddingConfig, parse
from embeddings.models import Connection
from memories.models import Account

MAX_ADDRESS_CHARS = 1_000
MAX_PLACE = 32_767
PROVIDER_NAMES = [(one.id, one.name) for one in PROVIDERS.values()]


class EmbeddingForm(forms.Form):
    providerId = forms.ChoiceField(
        label="Where it runs",
        choices=[(LOCAL, "The bundled one"), (ENDPOINT, "On a server of your own"), *PROVIDER_NAMES],
        help_text="The bundled one needs no network and costs nothing. Providers need a connection.",
    )
    model = forms.CharField(
        label="Its name", max_length=MAX_MODEL_CHARS, required=False, help_text="As its server calls it."
    )
    baseUrl = forms.CharField(
        label="Address",
        max_length=MAX_ADDRESS_CHARS,
        required=False,
        help_text="Of the server, such as http://localhost:8080. Empty for a provider's own.",
    )
    dimensions = forms.IntegerField(
        label="Dimensions",
        required=False,
        min_value=1,
        max_value=MAX_WIDTH,
        help_text=f"1 to {MAX_WIDTH:,}. Empty takes the model's own, which is the default.",
    )
    maxRetries = forms.IntegerField(
        label="Other connections",
        min_value=0,
        max_value=MAX_RETRIES,
        help_text=f"To ask after one was refused: 0 to {MAX_RETRIES}, by default {MAX_RETRIES}.",
    )

    def __init__(self, data: Mapping[str, Any] | None = None, initial: dict[str, Any] | None = None) -> None:
        super().__init__(data, initial=initial)
        self.config: EmbeddingConfig | None = None
        self.remarks = dict[str, str]()

    def clean(self) -> None:
        """Leave the check to the settings themselves; their refusals go to the fields they are about."""
        sent = self.cleaned_data
        if sent.get("providerId") == LOCAL:
            self.errors.clear()  # of fields that are not shown
            sent = {"providerId": LOCAL}
        if self.errors:
            return
        try:
            self.config = parse(sent)
        except Invalid as error:
            blame(self, error)

    def compare(self, stored: EmbeddingConfig) -> None:
        """Remark beside each value that another one is in force."""
        for name, value in stored.to_document().items():
            if self.cleaned_data.get(name, "") not in (value, value or ""):
                self.remarks[name] = f"In force now: {value if value not in (None, '') else 'nothing'}."

    def rows(self) -> list[tuple[forms.BoundField, str]]:
        """Return each field with what there is to remark about it."""
        return [(field, self.remarks.get(field.name, "")) for field in self]


class ConnectionForm(forms.Form):
    provider = forms.ChoiceField(choices=PROVIDER_NAMES)
    label = forms.CharField(
        max_length=MAX_LABEL_CHARS,
        required=False,
        help_text="To tell it from others; empty takes the provider's name.",
    )
    key = forms.CharField(
        max_length=MAX_KEY_CHARS,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="It is stored encrypted and never shown again.",
    )
    base_url = forms.CharField(
        label="Address",
        max_length=MAX_ADDRESS_CHARS,
        required=False,
        help_text="Empty for the provider's own.",
    )
    place = forms.IntegerField(
        label="Order", min_value=0, max_value=MAX_PLACE, initial=0, help_text="The lowest is asked first."
    )
    for_everyone = forms.BooleanField(label="For all accounts", required=False, initial=True)
    granted_to = forms.CharField(
        label="Or only for",
        max_length=20_000,
        required=False,
        help_text="User names, with spaces between them.",
    )

    def __init__(self, data: Mapping[str, Any] | None = None, *, known: Connection | None = None) -> None:
        super().__init__(data, initial=values_of(known) if known else None)
        if known:
            del self.fields["provider"]
            self.fields["key"].required = False
            self.fields["key"].help_text = "Leave it empty to keep the one there is, which is never shown."

    def clean_granted_to(self) -> list[Account]:
        names = set(self.cleaned_data["granted_to"].replace(",", " ").split())
        found = list(Account.objects.filter(username__in=names))
        if missing := names - {one.username for one in found}:
            raise forms.ValidationError(f"There is no account {', '.join(sorted(missing))}.")
        return found

    def fields_to_write(self) -> dict[str, Any]:
        """Return what is neither provider, key nor grants, an empty label being the provider's name."""
        names = ("label", "base_url", "place", "for_everyone")
        given = {name: self.cleaned_data[name] for name in names}
        if not given["label"]:
            del given["label"]
        return given


def values_of(connection: Connection) -> dict[str, Any]:
    names = connection.granted_to.order_by("username").values_list("username", flat=True)
    shown = ("label", "base_url", "place", "for_everyone")
    return {name: getattr(connection, name) for name in shown} | {"granted_to": " ".join(names)}


def blame(form: forms.Form, error: Invalid) -> None:
    """Show a refusal beside the field that it is about."""
    form.add_error(error.field if error.field in form.fields else None, str(error))
