"""What keeps the project's shape: documented settings, visible models, migrations that stand alone."""

import ast
import re
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin

ROOT = Path(settings.BASE_DIR)
APPS = ("memories", "embeddings", "recall", "maintenance")
VARIABLE = re.compile(r"""env_\w+\(\s*["'](\w+)["']|required_secret\(\s*["'](\w+)["']""")


def test_every_environment_variable_is_documented() -> None:
    source = (ROOT / "elowen" / "settings.py").read_text(encoding="utf-8")
    names = {first or second for first, second in VARIABLE.findall(source)}
    guide = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")

    assert "ELOWEN_DATA" in names
    assert sorted(name for name in names if name not in guide) == []


def test_every_model_is_in_the_admin() -> None:
    # A row with a composite key cannot be shown there; the memory's own page tells its index state.
    invisible = {
        "memories.BodyHash",
        "memories.ProjectMember",
        "embeddings.MemoryEmbedding",
        "recall.MemoryWord",
    }
    ours = {model._meta.label for app in APPS for model in apps.get_app_config(app).get_models()}
    shown = {model._meta.label for model in admin.site._registry}

    assert ours - shown - invisible == set()


@pytest.mark.parametrize(
    "path", sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("*/migrations/0*.py"))
)
def test_migrations_import_nothing_of_ours(path: str) -> None:
    source = (ROOT / path).read_text(encoding="utf-8")

    assert not re.findall(rf"^\s*(?:from|import) (?:{'|'.join(APPS)}|elowen)\b.*", source, re.MULTILINE)


def test_the_usual_function_is_short() -> None:
    lengths = [
        (node.end_lineno or 0) - node.lineno + 1
        for app in (*APPS, "elowen")
        for path in (ROOT / app).rglob("*.py")
        if "migrations" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]

    assert sorted(lengths)[len(lengths) // 2] < 10
