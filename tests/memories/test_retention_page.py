"""The page on which administrators set how memories fade, and the curves that follow what is typed."""

import json
import re
from typing import Any, Protocol

import pytest
from django.test import Client

from memories.config import RETENTION, load_document, retention_policy, save, save_section
from memories.importance import VERBAL_SCALE
from memories.models import Account, ConfigEvent, ConfigSection
from memories.policy import BOUNDS, DEFAULT_POLICY, LEVELS, from_document, to_document
from tests.factories import AccountFactory

PAGE, CURVES = "/settings/retention", "/settings/retention/curves"
HTMX = {"HX-Request": "true"}


class Answer(Protocol):
    content: bytes


@pytest.fixture
def root(db: None) -> Account:
    account: Account = AccountFactory.create(is_staff=True)
    return account


@pytest.fixture
def page(client: Client, root: Account) -> Client:
    """A browser in which an administrator is signed in."""
    client.force_login(root)
    return client


def sent(**changes: Any) -> dict[str, Any]:
    """What the browser sends when the page is opened now, and these fields are changed."""
    half_lives = {f"halfLife{level}": DEFAULT_POLICY.half_life(level) for level in LEVELS}
    numbers = {"vitalityFloor": 10, "graceDays": 14, "dailyDeletionLimit": 5}
    form = {"enabled": "on", "revision": load_document()[1], **half_lives, **numbers} | changes
    return {name: value for name, value in form.items() if value is not None}


def stored() -> list[Any]:
    return [*ConfigSection.objects.order_by("name").values(), *ConfigEvent.objects.order_by("pk").values()]


def text(answer: Answer) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.content.decode()))


def field(answer: Answer, name: str) -> str:
    """Return the input of that name, as it is in the page."""
    found = re.search(rf'<input [^>]*name="{name}"[^>]*>', answer.content.decode())
    assert found, name
    return found[0]


def value(answer: Answer, name: str) -> str:
    found = re.search(r'value="([^"]*)"', field(answer, name))
    return found[1] if found else ""


@pytest.mark.parametrize("address", [PAGE, CURVES, f"{PAGE}?defaults=1"])
def test_a_stranger_is_sent_to_sign_in_and_then_to_the_page(client: Client, db: None, address: str) -> None:
    answer = client.get(address)

    assert (answer.status_code, answer["Location"]) == (302, f"/sign-in?next={PAGE}")


def test_a_fragment_asked_for_by_a_stranger_sends_the_whole_window_to_sign_in(
    client: Client, db: None
) -> None:
    answer = client.get(CURVES, headers=HTMX)

    assert (answer.status_code, answer.content) == (200, b"")
    assert answer["HX-Redirect"] == f"/sign-in?next={PAGE}"


@pytest.mark.parametrize("address", [PAGE, CURVES])
def test_a_member_who_is_no_administrator_is_refused(client: Client, ada: Account, address: str) -> None:
    client.force_login(ada)
    before = stored()

    answers = [client.get(address), client.post(address, sent(vitalityFloor=20))]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert "your account may not do this" in text(answers[0])
    assert stored() == before


def test_only_administrators_see_the_way_there(client: Client, root: Account, ada: Account) -> None:
    client.force_login(ada)
    for_members = client.get("/memories").content.decode()
    client.force_login(root)

    assert f'href="{PAGE}"' not in for_members
    assert f'href="{PAGE}"' in client.get("/memories").content.decode()


def test_a_form_without_its_token_is_refused(root: Account) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(root)
    before = stored()

    assert client.post(PAGE, sent(vitalityFloor=20)).status_code == 403
    assert stored() == before


def test_each_setting_is_shown_with_its_value_its_default_and_its_bounds(page: Client, root: Account) -> None:
    change = {"halfLifeByImportance": {"4": 12.25}, "vitalityFloor": 20, "dailyDeletionLimit": 7}
    save(by=root, changes={RETENTION: change}, revision=load_document()[1])

    answer = page.get(PAGE)

    assert [value(answer, name) for name in ("halfLife3", "halfLife4")] == ["7", "12.25"]
    assert value(answer, "vitalityFloor") == "20"
    assert value(answer, "graceDays") == "14"
    assert value(answer, "dailyDeletionLimit") == "7"
    assert "checked" in field(answer, "enabled")
    bounds = BOUNDS["halfLifeByImportance"]
    for level in LEVELS:
        default = f"{bounds.low:g} to {bounds.high:g} days, by default {DEFAULT_POLICY.half_life(level):g}."
        assert f"{VERBAL_SCALE[level]} {default}" in text(answer)
    assert "1 to 90 of 100, by default 10." in text(answer)
    assert "0 to 365 days, by default 14." in text(answer)
    assert "1 to 200 memories, by default 5." in text(answer)


def test_each_field_names_its_help_and_its_error_to_a_screen_reader(page: Client) -> None:
    answer = page.post(PAGE, sent(halfLife5="x"))

    content = answer.content.decode()
    assert 'aria-describedby="id_halfLife5_helptext id_halfLife5_error"' in field(answer, "halfLife5")
    assert 'aria-invalid="true"' in field(answer, "halfLife5")
    for name in ("halfLife5_helptext", "halfLife5_error", "graceDays_helptext", "enabled_helptext"):
        assert content.count(f'id="id_{name}"') == 1


def test_saving_puts_every_value_in_force_and_into_the_trail(page: Client, root: Account) -> None:
    changes = {"enabled": None, "halfLife1": "0.5", "halfLife10": "365", "vitalityFloor": "12.5"}

    answer = page.post(PAGE, sent(**changes, graceDays="0", dailyDeletionLimit="200"), follow=True)

    policy = retention_policy()
    assert answer.redirect_chain == [(PAGE, 302)]
    assert "Saved." in text(answer)
    assert (policy.enabled, policy.floor) == (False, 12.5)
    assert (policy.grace_days, policy.daily_deletion_limit) == (0, 200)
    assert policy.half_lives == (0.5, *DEFAULT_POLICY.half_lives[1:9], 365)
    assert ConfigEvent.objects.latest("pk").actor == f"user:{root.pk}"
    assert value(answer, "graceDays") == "0"


def test_saving_what_is_shown_changes_no_stored_value(page: Client, root: Account) -> None:
    policy = from_document({"halfLifeByImportance": {str(level): 1 / 3 + level for level in LEVELS}})
    save(by=root, changes={RETENTION: to_document(policy)}, revision=load_document()[1])
    shown = page.get(PAGE)
    names = re.findall(r'<input type="text" name="(\w+)"', shown.content.decode())

    page.post(PAGE, sent(**{name: value(shown, name) for name in names}))

    assert len(names) == 13
    assert retention_policy() == policy
    event = ConfigEvent.objects.latest("pk")
    assert json.dumps(event.after, sort_keys=True) == json.dumps(event.before, sort_keys=True)


@pytest.mark.parametrize(("typed", "days"), [("9999", 365), ("-3", 0), ("1e300", 365), ("365", 365)])
def test_grace_out_of_bounds_becomes_the_nearest_bound(page: Client, typed: str, days: float) -> None:
    answer = page.post(PAGE, sent(graceDays=typed))

    assert answer.status_code == 302
    assert retention_policy().grace_days == days


NUMBERS = ["halfLife1", "halfLife10", "vitalityFloor", "graceDays", "dailyDeletionLimit"]
NO_NUMBERS = ["", " ", "x", "nan", "inf", "-Infinity", "1e999", "1,5", "9" * 5000, "1\x00", "0x10"]
OUT_OF_BOUNDS = [
    ("halfLife1", "0.09"),
    ("halfLife10", "365.1"),
    ("halfLife2", "0"),
    ("halfLife2", "-1"),
    ("halfLife2", "1e300"),
    ("vitalityFloor", "0.99"),
    ("vitalityFloor", "90.01"),
    ("dailyDeletionLimit", "0"),
    ("dailyDeletionLimit", "201"),
    ("dailyDeletionLimit", "2.5"),
    ("dailyDeletionLimit", "9" * 400),
]


@pytest.mark.parametrize(
    ("name", "typed"),
    OUT_OF_BOUNDS + [(name, typed) for name in NUMBERS for typed in (*NO_NUMBERS, None)],
)
def test_a_bad_value_is_an_error_at_its_field_and_nothing_is_saved(
    page: Client, name: str, typed: str | None
) -> None:
    before = stored()

    answer = page.post(PAGE, sent(**{name: typed}, halfLife7=44))

    content = answer.content.decode()
    assert answer.status_code == 200
    assert re.findall(r'class="errorlist" id="id_(\w+)_error"', content) == [name]
    assert "Nothing was saved." in text(answer)
    assert value(answer, "halfLife7") == "44"
    assert stored() == before


def test_an_empty_form_has_an_error_at_every_number(page: Client) -> None:
    before = stored()

    answer = page.post(PAGE, {})

    assert answer.status_code == 200
    assert answer.content.decode().count('class="errorlist"') == 13
    assert stored() == before


def test_what_was_typed_comes_back_as_text_and_not_as_markup(page: Client) -> None:
    evil = '"><script>alert(1)</script>'

    answer = page.post(PAGE, sent(halfLife1=evil, revision=evil, drawn=evil))

    assert "<script>alert" not in answer.content.decode()


def test_a_page_that_was_open_while_somebody_saved_overwrites_nothing(page: Client, root: Account) -> None:
    form = sent(halfLife2="9", halfLife3="8", vitalityFloor="30")
    change = {"enabled": False, "halfLifeByImportance": {"2": 4.5, "3": 8}}
    save(by=root, changes={RETENTION: change}, revision=load_document()[1])
    before = stored()

    answer = page.post(PAGE, form)

    assert answer.status_code == 409
    assert stored() == before
    assert "Nothing was saved." in text(answer)
    assert [value(answer, name) for name in ("halfLife2", "halfLife3", "vitalityFloor")] == ["9", "8", "30"]
    for name, remark in (("halfLife2", "4.5"), ("vitalityFloor", "10"), ("enabled", "off")):
        note = re.search(rf'id="id_{name}_helptext">(.*?)</p>', answer.content.decode(), re.DOTALL)
        assert note
        assert f"In force now: {remark}." in note[1]
    assert text(answer).count("In force now") == 3
    assert value(answer, "revision") == str(load_document()[1])


def test_saving_again_after_a_conflict_is_deliberate_and_works(page: Client, root: Account) -> None:
    form = sent(halfLife2="9")
    save(by=root, changes={RETENTION: {"vitalityFloor": 33}}, revision=load_document()[1])
    conflict = page.post(PAGE, form)

    answer = page.post(PAGE, form | {"revision": value(conflict, "revision")})

    assert answer.status_code == 302
    assert (retention_policy().half_life(2), retention_policy().floor) == (9, 10)


def test_a_conflict_over_other_settings_is_a_conflict_too(page: Client, root: Account) -> None:
    form = sent(halfLife2="9")
    save(by=root, changes={"brain.limits": {"memoryRecallCount": 7}}, revision=load_document()[1])

    answer = page.post(PAGE, form)

    assert answer.status_code == 409
    assert text(answer).count("In force now") == 1
    assert retention_policy() == DEFAULT_POLICY


@pytest.mark.parametrize("revision", [None, "", "x", "-1", "1.0", "²", "9" * 400, "\x00"])
def test_a_form_without_a_revision_that_exists_saves_nothing(page: Client, revision: str | None) -> None:
    before = stored()

    answer = page.post(PAGE, sent(halfLife2="9", revision=revision))

    assert answer.status_code == 409
    assert stored() == before


def test_errors_leave_the_revision_that_was_read(page: Client, root: Account) -> None:
    form = sent(halfLife2="x")
    save(by=root, changes={RETENTION: {"vitalityFloor": 33}}, revision=load_document()[1])

    answer = page.post(PAGE, form)
    again = page.post(PAGE, form | {"halfLife2": "9", "revision": value(answer, "revision")})

    assert again.status_code == 409
    assert retention_policy().floor == 33


def test_the_defaults_fill_the_form_and_save_nothing(page: Client, root: Account) -> None:
    change = {"enabled": False, "vitalityFloor": 33, "halfLifeByImportance": {"3": 99}}
    save(by=root, changes={RETENTION: change}, revision=load_document()[1])
    before = stored()

    answer = page.get(f"{PAGE}?defaults=1")

    assert (value(answer, "vitalityFloor"), value(answer, "halfLife3")) == ("10", "7")
    assert "checked" in field(answer, "enabled")
    assert "not saved yet" in text(answer)
    assert json.loads(value(answer, "drawn").replace("&quot;", '"')) == to_document(DEFAULT_POLICY)
    assert stored() == before


def break_half_lives(root: Account, table: dict[str, Any]) -> None:
    document = to_document(DEFAULT_POLICY) | {"halfLifeByImportance": table}
    save_section(name=RETENTION, document=document, revision=load_document()[1], by=root)


@pytest.mark.parametrize("broken", [None, 0, -1, "x", [], "NaN", True])
def test_a_stored_half_life_that_cannot_be_used_asks_to_be_filled_in(
    page: Client, root: Account, broken: Any
) -> None:
    break_half_lives(root, {str(level): level for level in LEVELS} | {"3": broken})

    answer = page.get(PAGE)

    assert answer.status_code == 200
    assert (value(answer, "halfLife2"), value(answer, "halfLife3")) == ("2", "")
    assert text(answer).count("The stored value cannot be used. Fill this in.") == 1
    assert answer.content.decode().count('<polyline class="curve ') == 2 * 9
    assert "not known" in text(answer)
    assert page.post(PAGE, sent(halfLife3="4")).status_code == 302
    assert retention_policy().half_life(3) == 4


def test_a_policy_without_any_half_life_can_be_repaired(page: Client, root: Account) -> None:
    break_half_lives(root, {})

    shown = page.get(PAGE)
    fragment = page.get(CURVES, {"halfLife1": "x"}, headers=HTMX)
    conflict = page.post(PAGE, sent(revision=1))
    saved = page.post(PAGE, sent())

    assert text(shown).count("Fill this in.") == 10
    assert fragment.status_code == 200
    assert text(conflict).count("In force now: nothing usable.") == 10
    assert saved.status_code == 302
    assert retention_policy() == DEFAULT_POLICY


def test_a_preview_draws_what_was_typed_and_saves_nothing(page: Client) -> None:
    before = stored()

    answer = page.post(PAGE, sent(preview="1", halfLife1="200", graceDays="9999"))

    assert answer.status_code == 200
    assert "not saved yet" in text(answer)
    assert (value(answer, "halfLife1"), value(answer, "graceDays")) == ("200", "9999")
    assert "200 days" in text(answer)
    assert "grace ends after 365 days" in text(answer)
    assert stored() == before


def test_a_preview_of_a_bad_value_is_an_error_at_its_field(page: Client) -> None:
    answer = page.post(PAGE, sent(preview="1", halfLife1="x"))

    assert 'id="id_halfLife1_error"' in answer.content.decode()


def rows(answer: Answer) -> list[tuple[str, ...]]:
    table = re.search(r"<tbody>(.*)</tbody>", answer.content.decode(), re.DOTALL)
    assert table
    cells = [re.findall(r"<td[^>]*>\s*(.*?)\s*</td>", row, re.DOTALL) for row in table[1].split("<tr>")[1:]]
    return [tuple(row) for row in cells]


def test_the_curves_follow_what_is_typed_and_save_nothing(page: Client) -> None:
    before = stored()

    answer = page.get(CURVES, sent(halfLife5="42", vitalityFloor="25", graceDays="0"), headers=HTMX)

    assert answer.status_code == 200
    assert "<html" not in answer.content.decode()
    assert rows(answer)[:2] == [("1 day", "2 days"), ("3 days", "4 days")]
    assert rows(answer)[4] == ("42 days", "43 days")
    assert "HX-Request" in answer["Vary"]
    assert stored() == before


def test_the_table_tells_what_the_page_draws(page: Client) -> None:
    assert rows(page.get(PAGE)) == [
        ("1 day", "15 days"),
        ("3 days", "15 days"),
        ("7 days", "17 days"),
        ("14 days", "33 days"),
        ("21 days", "49 days"),
        ("30 days", "70 days"),
        ("45 days", "105 days"),
        ("60 days", "140 days"),
        ("90 days", "209 days"),
        ("180 days", "418 days"),
    ]


def test_while_retention_is_off_no_memory_ever_goes(page: Client) -> None:
    answer = page.get(CURVES, sent(enabled=None), headers=HTMX)

    assert {may_go for _, may_go in rows(answer)} == {"never"}
    assert "turned off" in text(answer)


@pytest.mark.parametrize("typed", ["", "x", "nan", "1e999", "0", "366", "9" * 5000])
def test_a_bad_value_keeps_the_last_valid_one_drawn_and_says_so(page: Client, typed: str) -> None:
    drawn = value(page.get(CURVES, sent(halfLife5="42"), headers=HTMX), "drawn").replace("&quot;", '"')

    answer = page.get(CURVES, sent(halfLife5=typed, halfLife6="50", drawn=drawn), headers=HTMX)

    assert answer.status_code == 200
    assert [half_life for half_life, _ in rows(answer)[4:6]] == ["42 days", "50 days"]
    assert "Not a value yet: Level 5." in text(answer)


NOT_DRAWN = [None, "", "x", "[]", "7", "[" * 100_000, '{"halfLifeByImportance": {"5": -1}}']


@pytest.mark.parametrize("drawn", NOT_DRAWN)
def test_without_a_last_valid_value_the_one_in_force_is_drawn(page: Client, drawn: str | None) -> None:
    answer = page.post(PAGE, sent(preview="1", halfLife5="x", drawn=drawn))

    assert rows(answer)[4] == ("21 days", "49 days")


def test_the_curves_asked_for_with_nothing_typed_are_those_in_force(page: Client) -> None:
    answer = page.get(CURVES, headers=HTMX)

    assert answer.status_code == 200
    assert rows(answer)[4][0] == "21 days"


def test_the_curves_alone_are_no_page(page: Client) -> None:
    assert page.get(CURVES)["Location"] == PAGE
    assert page.post(CURVES, sent(), headers=HTMX).status_code == 405
    assert page.put(PAGE).status_code == 405


def test_the_page_has_one_script_of_its_own_and_nothing_inline(page: Client) -> None:
    content = page.get(PAGE).content.decode()

    scripts = re.findall(r"<script[^>]*>[^<]*", content)
    assert scripts == ['<script src="/static/elowen/js/htmx.min.js" defer>']
    assert " style=" not in content
    assert "<style" not in content
    assert not re.search(r"\son\w+=", content)
    assert "<script" not in page.get("/memories").content.decode()


def test_every_id_is_there_once_and_every_reference_leads_to_one(page: Client) -> None:
    content = page.post(PAGE, sent(halfLife5="x", vitalityFloor="")).content.decode()
    ids = re.findall(r'\sid="([^"]*)"', content)

    named = re.findall(r'(?:for|aria-labelledby|aria-describedby)="([^"]*)"', content)

    assert len(ids) == len(set(ids))
    assert {name for names in named for name in names.split()} <= set(ids)
