"""S13: `manage.py calibrate` with the bundled models, a scripted server, and stores of known cosines."""

import json
from collections.abc import Callable
from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from elowen.providers.local import MODELS, Name
from embeddings.calibration import KNOWN
from embeddings.config import active_space
from embeddings.measuring import measure_store
from embeddings.models import EmbeddingSpace
from memories.models import Account, ConfigSection, Memory, MemoryEvent
from recall.config import LIMITS
from tests.embeddings.conftest import Use
from tests.fakes.server import FakeServer, refuses
from tests.recall.conftest import SetLimits
from tests.recall.stores import cosine, remembers

pytestmark = pytest.mark.django_db


type Calibrated = Callable[..., dict[str, Any]]


@pytest.fixture
def calibrated(capsys: pytest.CaptureFixture[str]) -> Calibrated:
    def measure(*options: str) -> dict[str, Any]:
        call_command("calibrate", "--json", *options)
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return measure


@pytest.mark.parametrize(("name", "languages"), [("english", ["en"]), ("multilingual", [])])
def test_what_is_known_of_the_bundled_models_is_what_the_examples_say(
    name: Name, languages: list[str], calibrated: Calibrated, settings: LazySettings
) -> None:
    settings.EMBEDDER = name

    found = calibrated(*(["--languages", *languages] if languages else []))

    # The row of the English model is from conversations. Processors differ a little in their arithmetic, too.
    known = KNOWN["local", MODELS[name].id]
    assert (found["calibrated"], found["in_force"]) == (True, vars(known))
    assert found["proposed"] == pytest.approx(vars(known), abs=20)
    assert found["cosines"]["sibling"]["p50"] < found["cosines"]["paraphrase"]["p50"]
    assert found["cosines"]["paraphrase"]["p50"] < found["cosines"]["near_duplicate"]["p50"]


def test_a_german_store_learns_that_the_english_model_is_not_for_it(calibrated: Calibrated) -> None:
    both = calibrated("--languages", "en", "de")
    english, german = (calibrated("--languages", name)["cosines"]["unrelated"] for name in ("en", "de"))

    assert list(both["languages"]) == ["en", "de"]
    assert german["p50"] > english["p95"]


def test_a_model_that_nobody_measured(
    server: FakeServer, use: Use, set_limits: SetLimits, capsys: pytest.CaptureFixture[str]
) -> None:
    use(server, model="somebody/s-model")
    set_limits(memoryDuplicatePerMille=970)

    call_command("calibrate")
    shown = capsys.readouterr()

    assert "nobody has measured this model before" in shown.out
    assert "nothing can be said of this store" in shown.out
    assert "970" in shown.out
    assert "PATCH /api/config" in shown.out
    assert "Embedding 98 examples" in shown.err
    assert {request.json["model"] for request in server.requests} == {"somebody/s-model"}


def test_what_is_proposed_may_be_set(server: FakeServer, use: Use, calibrated: Calibrated) -> None:
    use(server)  # whose vectors mean nothing, so that the rules give next to nothing

    proposed = calibrated()["proposed"]

    assert LIMITS["memorySemanticFloorPerMille"].allows(proposed["floor"])
    assert LIMITS["memoryParaphrasePerMille"].allows(proposed["paraphrase"])
    assert LIMITS["memoryDuplicatePerMille"].allows(proposed["duplicate"])


def test_a_model_that_does_not_answer_is_an_error_that_says_so(server: FakeServer, use: Use) -> None:
    use(server)
    server.always(refuses(401))

    with pytest.raises(CommandError, match="could not be measured"):
        call_command("calibrate")


def test_another_language_is_refused() -> None:
    with pytest.raises(CommandError, match="invalid choice: 'xx'"):
        call_command("calibrate", "--languages", "xx")


def test_it_changes_nothing_and_says_nothing_of_what_is_remembered(
    ada: Account, space: EmbeddingSpace, capsys: pytest.CaptureFixture[str]
) -> None:
    remembers(space, 1, 0, owner=ada, body="the secret of the vault")
    remembers(space, 0, 1, owner=ada, body="the secret of the vault, again")
    before = Memory.objects.count(), MemoryEvent.objects.count(), ConfigSection.objects.count()

    call_command("calibrate")
    shown = capsys.readouterr()

    assert "vault" not in shown.out + shown.err
    assert before == (Memory.objects.count(), MemoryEvent.objects.count(), ConfigSection.objects.count())


@pytest.mark.parametrize("seed", range(5))
def test_the_store_is_measured_as_a_plain_comparison_does(
    ada: Account, ben: Account, space: EmbeddingSpace, seed: int
) -> None:
    random = Random(seed)
    rows = []
    for owner in [ada] * random.randint(2, 9) + [ben] * random.randint(2, 9):
        vector = [random.uniform(-1, 1) for _ in range(3)]
        remembers(space, *vector, owner=owner)
        rows.append((owner.pk, vector))

    found = measure_store(space)

    pairs = [cosine(one, other) for (_, one), (_, other) in combinations(rows, 2)]
    nearest = [
        max(cosine(one, other) for j, (owner, other) in enumerate(rows) if owner == mine and i != j)
        for i, (mine, one) in enumerate(rows)
    ]
    assert found.sampled == len(rows)
    assert list(found.pairs) == pytest.approx(sorted(pairs), abs=5e-3)
    assert list(found.nearest) == pytest.approx(sorted(nearest), abs=5e-3)


def test_what_is_archived_or_of_another_model_is_not_measured(
    ada: Account, space: EmbeddingSpace, server: FakeServer, use: Use
) -> None:
    remembers(space, 1, 0, owner=ada)
    remembers(space, 1, 0, owner=ada, status=Memory.Status.ARCHIVED)
    use(server, model="other")
    remembers(EmbeddingSpace.objects.row_of(active_space()), 1, 0, owner=ada)

    found = measure_store(space)

    assert (found.sampled, len(found.pairs), len(found.nearest)) == (1, 0, 0)


def test_a_large_store_is_sampled(
    ada: Account, space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embeddings.measuring.SAMPLE", 4)
    monkeypatch.setattr("embeddings.measuring.ANCHORS", 2)
    for number in range(8):
        remembers(space, 1, number, owner=ada)

    first, second = measure_store(space), measure_store(space)

    assert (first.sampled, len(first.pairs), len(first.nearest)) == (4, 6, 2)
    assert np.array_equal(first.pairs, second.pairs)
