"""What comes from the environment: read with care, documented, and given to each command."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from elowen.launch import give_secret_key
from elowen.lib import env
from elowen.lib.env import BadEnvironment

ROOT = Path(__file__).resolve().parents[2]
INTERNAL = {"ELOWEN_RUN", "ELOWEN_BOOTSTRAPPED"}


@pytest.mark.parametrize(
    ("value", "found"),
    [("1", True), ("Yes", True), (" on ", True), ("0", False), ("", False), ("FALSE", False)],
)
def test_bool_reads_the_usual_words(monkeypatch: pytest.MonkeyPatch, value: str, found: bool) -> None:
    monkeypatch.setenv("ELOWEN_X", value)

    assert env.env_bool("ELOWEN_X") is found


@pytest.mark.parametrize("value", ["maybe", "2", "yes please"])
def test_bool_refuses_other_words(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ELOWEN_X", value)

    with pytest.raises(BadEnvironment, match=f"ELOWEN_X is '{value}'; set it to 1 or 0"):
        env.env_bool("ELOWEN_X")


@pytest.mark.parametrize(("value", "found"), [("1", 1), (" 9 ", 9)])
def test_int_within_its_bounds(monkeypatch: pytest.MonkeyPatch, value: str, found: int) -> None:
    monkeypatch.setenv("ELOWEN_X", value)

    assert env.env_int("ELOWEN_X", 5, low=1, high=9) == found


@pytest.mark.parametrize("value", ["0", "10", "-1", "1.5", "", "five", "²"])
def test_int_refuses_what_is_outside_or_no_number(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ELOWEN_X", value)

    with pytest.raises(BadEnvironment, match="a whole number from 1 to 9"):
        env.env_int("ELOWEN_X", 5, low=1, high=9)


def test_list_drops_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELOWEN_X", " a, ,b,")

    assert env.env_list("ELOWEN_X", "default") == ["a", "b"]


def test_choice_names_what_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELOWEN_X", "c")

    with pytest.raises(BadEnvironment, match="one of a, b"):
        env.env_choice("ELOWEN_X", "a", ("a", "b"))


def test_secret_comes_from_the_value_or_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert env.env_secret("ELOWEN_X") is None
    (tmp_path / "secret").write_text("from a file\n")
    monkeypatch.setenv("ELOWEN_X_FILE", str(tmp_path / "secret"))
    assert env.env_secret("ELOWEN_X") == "from a file"

    monkeypatch.setenv("ELOWEN_X", "direct")
    with pytest.raises(BadEnvironment, match="keep one of them"):
        env.env_secret("ELOWEN_X")


def test_a_secret_file_that_is_missing_is_named_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELOWEN_X_FILE", "/nowhere/secret")

    with pytest.raises(BadEnvironment, match="ELOWEN_X_FILE cannot be read"):
        env.env_secret("ELOWEN_X")


def test_database_url_in_all_its_parts() -> None:
    found = env.database_from_url("postgresql://me%40x:p%3Aw@[::1]:6000/my%20db?sslmode=require")

    assert found["USER"] == "me@x"
    assert found["PASSWORD"] == "p:w"
    assert (found["HOST"], found["PORT"], found["NAME"]) == ("::1", "6000", "my db")
    assert found["OPTIONS"] == {"sslmode": "require"}


def test_database_url_with_a_socket_folder() -> None:
    assert env.database_from_url("postgresql://me@/db?host=%2Frun%2Fa%20b")["HOST"] == "/run/a b"


@pytest.mark.parametrize("url", ["", "mysql://host/name", "postgresql://host", "name"])
def test_database_url_that_is_none(url: str) -> None:
    with pytest.raises(BadEnvironment, match="DATABASE_URL must look like"):
        env.database_from_url(url)


# --- What each command is given ---


def test_the_secret_key_is_made_once_and_for_its_owner_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("ELOWEN_SECRET_KEY", "ELOWEN_SECRET_KEY_FILE"):
        monkeypatch.setenv(name, "")  # and put back at the end, whatever is set meanwhile
    folder = tmp_path / "new" / "var"

    give_secret_key(folder)
    first = (folder / "secret-key").read_text()
    monkeypatch.setenv("ELOWEN_SECRET_KEY_FILE", "")
    give_secret_key(folder)

    assert (folder / "secret-key").read_text() == first
    assert len(first) >= 50
    assert os.environ["ELOWEN_SECRET_KEY_FILE"] == str(folder / "secret-key")
    assert stat.S_IMODE((folder / "secret-key").stat().st_mode) == 0o600


def test_a_key_of_ones_own_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ELOWEN_SECRET_KEY", "mine")

    give_secret_key(tmp_path)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("ELOWEN_DEBUG", "perhaps", "ELOWEN_DEBUG is 'perhaps'; set it to 1 or 0."),
        ("DATABASE_URL", "sqlite:///x", "DATABASE_URL must look like postgresql://"),
        ("ELOWEN_EMBEDDER", "latin", "set it to one of english, multilingual"),
    ],
)
def test_a_bad_value_ends_a_command_with_one_sentence(name: str, value: str, sentence: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "check"],
        capture_output=True,
        text=True,
        env=os.environ | {name: value},
    )

    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_every_variable_is_documented_and_every_documented_one_is_read() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "elowen").rglob("*.py"))
    read = set(re.findall(r'"(ELOWEN_[A-Z_]+|DATABASE_URL)"', code)) - INTERNAL
    table = re.findall(r"^\| `([A-Z_]+)`", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)

    assert len(table) == len(set(table))
    assert {name.removesuffix("_FILE") for name in read} == set(table)


def test_the_example_names_only_variables_that_exist() -> None:
    table = (ROOT / "docs" / "operations.md").read_text()
    shown = re.findall(r"^#? ?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)

    assert shown
    assert not [name for name in shown if f"`{name.removesuffix('_FILE')}`" not in table]
