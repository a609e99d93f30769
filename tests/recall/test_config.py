"""S13: the thresholds are those of the model in use, unless somebody set them."""

from typing import Any

import pytest

from elowen.providers.local import MODELS
from embeddings.calibration import KNOWN, UNKNOWN, is_calibrated
from memories.models import Account
from recall.config import LIMITS, limits_under, load_limits
from tests.conftest import Api
from tests.embeddings.conftest import Use
from tests.fakes.server import FakeServer
from tests.recall.conftest import SetLimits

pytestmark = pytest.mark.django_db

ENGLISH = KNOWN["local", MODELS["english"].id]


def thresholds() -> tuple[float, float, float]:
    limits = load_limits()
    return limits.floor, limits.paraphrase, limits.duplicate


def test_the_bundled_english_model_has_thresholds_of_its_own() -> None:
    assert thresholds() == (0.2, 0.9, 0.93)
    assert ENGLISH.paraphrase == 900


def test_a_model_that_nobody_measured_starts_from_a_cautious_guess(server: FakeServer, use: Use) -> None:
    use(server, model="somebody/s-model")

    assert thresholds() == (0.2, 0.7, 0.93)


def test_what_is_set_wins_over_the_model(server: FakeServer, use: Use, set_limits: SetLimits) -> None:
    set_limits(memoryParaphrasePerMille=650)
    assert thresholds() == (0.2, 0.65, 0.93)

    use(server)

    assert thresholds() == (0.2, 0.65, 0.93)


@pytest.mark.parametrize("stored", [{"providerId": "nobody"}, {"providerId": "endpoint"}, {"model": 3}])
def test_settings_that_cannot_be_used_name_no_model(stored: dict[str, Any]) -> None:
    limits = limits_under({"embedding": stored})

    assert limits["memoryParaphrasePerMille"].default == UNKNOWN.paraphrase


def test_every_calibration_is_within_the_bounds_and_of_a_model_there_is() -> None:
    names = ("memorySemanticFloorPerMille", "memoryParaphrasePerMille", "memoryDuplicatePerMille")

    for row in (*KNOWN.values(), UNKNOWN):
        values = (row.floor, row.paraphrase, row.duplicate)
        assert all(LIMITS[name].allows(value) for name, value in zip(names, values, strict=True))
    assert {model for _, model in KNOWN} <= {model.id for model in MODELS.values()}


def test_rest_says_whether_the_model_was_measured(
    api: Api, ada: Account, server: FakeServer, use: Use
) -> None:
    bundled = api(ada).get("/api/memory/embedding").json()
    use(server)
    own = api(ada).get("/api/memory/embedding").json()

    assert (bundled["calibrated"], own["calibrated"]) == (True, False)
    assert not is_calibrated("endpoint", MODELS["english"].id)
