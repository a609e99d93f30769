"""The settings document: every limit with its default and bounds, one revision, all of a change or none."""

from typing import Any

import pytest

from memories.models import Account, ConfigEvent, ConfigSection
from recall.config import limits_under, load_limits
from tests.conftest import Api
from tests.factories import AccountFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(db: None) -> Account:
    account: Account = AccountFactory.create(is_staff=True)
    return account


def test_the_document_has_each_limit_with_its_default_and_bounds(api: Api, ada: Account) -> None:
    document = api(ada).get("/api/config").json()

    for name, setting in limits_under({}).items():
        part = setting.section.partition(".")[0]
        assert document[part]["limits"][name] == setting.default
        assert document["defaults"][part]["limits"][name] == setting.default
        assert document["bounds"][part]["limits"][name] == [setting.low, setting.high]


def test_a_change_of_several_sections_is_in_force_and_in_the_trail(api: Api, root: Account) -> None:
    client = api(root)
    read = client.get("/api/config")
    change = {
        "runtime": {"memoryRetention": {"graceDays": 3}, "limits": {"memorySemanticFloorPerMille": 250}},
        "brain": {"limits": {"memoryRecallCount": 7}},
    }

    saved = client.patch("/api/config", change, format="json", HTTP_IF_MATCH=read["ETag"])

    assert saved.status_code == 200
    assert saved["ETag"] == f'"{saved.json()["revision"]}"' != read["ETag"]
    assert saved.json()["runtime"]["limits"]["memoryParaphrasePerMille"] == 900
    assert (load_limits().floor, load_limits().count) == (0.25, 7)
    assert ConfigEvent.objects.filter(actor=f"user:{root.pk}").count() == 3


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"brain": {"limits": {"memoryRecallCount": 0}}}, "memoryRecallCount"),
    ({"brain": {"limits": {"memoryRecallCount": 51}}}, "memoryRecallCount"),
    ({"brain": {"limits": {"memorySemanticFloorPerMille": 1}}}, "memorySemanticFloorPerMille"),
    ({"runtime": {"limits": {"unknown": 1}}}, "unknown"),
    ({"runtime": {"limits": {"memorySemanticFloorPerMille": "5"}}}, "runtime"),
    ({"runtime": {"limits": {"memorySemanticFloorPerMille": True}}}, "runtime"),
    ({"runtime": {"limits": []}}, "runtime"),
    ({"brain": {"limits": {}, "unknown": 1}}, "brain"),
    ({"embedding": {}}, "embedding"),
]


@pytest.mark.parametrize(("change", "field"), REFUSED)
def test_a_limit_out_of_bounds_changes_nothing(
    api: Api, root: Account, change: dict[str, Any], field: str
) -> None:
    before = list(ConfigSection.objects.values())
    revision = api(root).get("/api/config").json()["revision"]

    sound = {"revision": revision, "runtime": {"memoryRetention": {"graceDays": 3}}}
    answer = api(root).patch("/api/config", sound | change, format="json")

    assert answer.status_code == 400
    assert field in answer.json()["errors"]
    assert list(ConfigSection.objects.values()) == before


def test_a_stored_limit_out_of_bounds_counts_as_not_set(api: Api, root: Account) -> None:
    ConfigSection.objects.update_or_create(
        name="brain.limits", defaults={"document": {"memoryRecallCount": 500, "memoryRecallBytes": "x"}}
    )

    limits = api(root).get("/api/config").json()["brain"]["limits"]

    assert limits == {"memoryRecallCount": 10, "memoryRecallBytes": 20_000}


@pytest.mark.parametrize("tag", ['"abc"', "*", '"999"', '""', '"-1"', 'W/"1"'])
def test_a_tag_of_another_revision_is_stale(api: Api, root: Account, tag: str) -> None:
    change = {"brain": {"limits": {"memoryRecallCount": 7}}}

    answer = api(root).patch("/api/config", change, format="json", HTTP_IF_MATCH=tag)

    assert (answer.status_code, answer.json()["code"]) == (409, "stale")
    assert answer.json()["current"]["brain"]["limits"]["memoryRecallCount"] == 10


def test_administration_needs_a_key_that_may_write(api: Api, root: Account) -> None:
    reader = api(root, scopes=("read",))

    assert reader.get("/api/accounts").status_code == 403
    assert reader.patch("/api/config", {"revision": 1}, format="json").status_code == 403
    assert reader.get("/api/config").status_code == 200
