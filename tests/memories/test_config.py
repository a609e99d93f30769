"""V8: one settings document with one revision, every change of it in the trail."""

from collections.abc import Callable
from functools import partial

import pytest
from django.db import IntegrityError, connection, transaction

from elowen.lib.errors import Invalid, Stale
from memories.config import (
    FIRST_REVISION,
    RETENTION,
    SECTIONS,
    load_document,
    load_section,
    retention_policy,
    save,
    save_section,
)
from memories.models import Account, ConfigEvent, ConfigSection
from memories.policy import DEFAULT_POLICY, clamp, to_document
from tests.factories import AccountFactory
from tests.threads import at_once

LIMITS = "runtime.limits"


@pytest.fixture
def _nothing_stored(db: None) -> None:
    """As after a flush; a new database has the retention block."""
    ConfigSection.objects.all().delete()


@pytest.mark.usefixtures("_nothing_stored")
def test_nothing_stored_reads_as_the_defaults() -> None:
    assert load_document() == ({}, FIRST_REVISION)
    assert load_section(RETENTION) == {}
    assert retention_policy() == DEFAULT_POLICY


@pytest.mark.usefixtures("_nothing_stored")
def test_saving_any_section_moves_the_revision_of_the_whole_document(ada: Account) -> None:
    second = save_section(name=LIMITS, document={"a": 1}, revision=FIRST_REVISION, by=ada)
    third = save_section(name="embedding", document={"b": 2}, revision=second, by=ada)

    sections, revision = load_document()

    assert (second, third, revision) == (FIRST_REVISION + 1, FIRST_REVISION + 2, FIRST_REVISION + 2)
    assert (sections[LIMITS], sections["embedding"]) == ({"a": 1}, {"b": 2})
    assert load_section(LIMITS) == {"a": 1}


@pytest.mark.parametrize("name", SECTIONS)
def test_a_change_is_in_the_trail_with_who_before_and_after(ada: Account, name: str) -> None:
    before, revision = load_section(name), load_document()[1]

    saved = save_section(name=name, document={"a": 1}, revision=revision, by=ada)

    event = ConfigEvent.objects.latest("pk")
    assert (event.section, event.revision, event.actor) == (name, saved, f"user:{ada.pk}")
    assert (event.before, event.after) == (before, {"a": 1})
    assert ConfigSection.objects.get(name=name).updated_at <= event.created_at


@pytest.mark.parametrize("offset", [-1, 1])
def test_a_revision_that_is_not_the_current_one_is_refused(ada: Account, offset: int) -> None:
    revision = load_document()[1]
    current = save_section(name=LIMITS, document={"a": 1}, revision=revision, by=ada)
    events = ConfigEvent.objects.count()

    with pytest.raises(Stale):
        save_section(name=RETENTION, document={"floor": 0}, revision=current + offset, by=ada)

    assert load_document()[1] == current
    assert ConfigEvent.objects.count() == events


def test_saving_nothing_at_a_stale_revision_is_stale_too(ada: Account) -> None:
    revision = load_document()[1]
    save(by=ada, changes={LIMITS: {"a": 1}}, revision=revision)

    with pytest.raises(Stale):
        save(by=ada, changes={}, revision=revision)


def test_a_change_keeps_what_it_does_not_name(ada: Account) -> None:
    save(by=ada, changes={LIMITS: {"a": 1}, RETENTION: {"vitalityFloor": 33}}, revision=load_document()[1])
    half_life = {"halfLifeByImportance": {"2": 5}}

    save(by=ada, changes={LIMITS: {"b": 2}, RETENTION: half_life}, revision=load_document()[1])

    assert load_section(LIMITS) == {"a": 1, "b": 2}
    assert retention_policy() == clamp(DEFAULT_POLICY, {"vitalityFloor": 33, **half_life})


def test_a_section_that_does_not_exist_is_refused(ada: Account) -> None:
    before = load_document()

    with pytest.raises(Invalid):
        save_section(name="runtime.secrets", document={}, revision=before[1], by=ada)

    assert load_document() == before


def test_a_change_that_cannot_be_recorded_is_not_made(ada: Account) -> None:
    before = load_document()
    with connection.cursor() as cursor:
        cursor.execute("alter table memories_configevent add constraint full_up check (id < 0) not valid")

    with pytest.raises(IntegrityError, match="full_up"):
        save_section(name=LIMITS, document={"a": 1}, revision=before[1], by=ada)

    assert load_document() == before


def test_the_stored_policy_is_the_one_in_force(ada: Account) -> None:
    policy = clamp(DEFAULT_POLICY, {"vitalityFloor": 33, "halfLifeByImportance": {"2": 5}, "enabled": False})

    save_section(name=RETENTION, document=to_document(policy), revision=load_document()[1], by=ada)

    assert retention_policy() == policy


@pytest.mark.parametrize("stored", ["null", "[]", '"off"', "7"])
def test_a_block_that_is_no_object_counts_as_nothing_stored(ada: Account, stored: str) -> None:
    save_section(name=RETENTION, document={"a": 1}, revision=load_document()[1], by=ada)
    with connection.cursor() as cursor:
        cursor.execute(
            "update memories_configsection set document = %s::jsonb where name = %s", [stored, RETENTION]
        )

    assert load_document()[0][RETENTION] == {}
    assert load_section(RETENTION) == {}
    assert retention_policy() == DEFAULT_POLICY


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("names", [[LIMITS] * 4, list(SECTIONS)])
@pytest.mark.parametrize("stored", [False, True])
def test_of_writers_at_once_one_wins_and_the_others_are_stale(names: list[str], *, stored: bool) -> None:
    account: Account = AccountFactory.create()
    if stored:
        save_section(name=LIMITS, document={}, revision=load_document()[1], by=account)
    revision, events = load_document()[1], ConfigEvent.objects.count()

    def save(name: str) -> str:
        try:
            save_section(name=name, document={"by": name}, revision=revision, by=account)
        except Stale:
            return "stale"
        return "saved"

    outcomes = at_once([partial(save, name) for name in names])

    assert sorted(outcomes) == ["saved", "stale", "stale", "stale"]
    assert load_document()[1] == revision + 1
    assert ConfigEvent.objects.count() == events + 1


def test_the_trail_of_settings_refuses_every_change(ada: Account) -> None:
    save_section(name=LIMITS, document={"a": 1}, revision=load_document()[1], by=ada)
    event = ConfigEvent.objects.latest("pk")

    def empty() -> None:
        with connection.cursor() as cursor:
            cursor.execute("alter table memories_configevent enable trigger keeps_all")
            cursor.execute("truncate memories_configevent")

    attempts: list[Callable[[], object]] = [
        event.delete,
        event.save,
        lambda: ConfigEvent.objects.update(actor="nobody"),
        empty,
    ]
    for attempt in attempts:
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            attempt()
