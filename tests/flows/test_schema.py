"""The OpenAPI document is valid, complete, and what the running service does."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.servers.basehttp import WSGIRequestHandler
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from memories.actions.keys import issue_key
from tests.factories import AccountFactory

EXAMPLES = 2
# A schema cannot say that a text is more than blanks, or that a made-up id is somebody's.
CHECKS = """
[checks]
positive_data_acceptance.enabled = false
"""


@pytest.mark.django_db
def test_the_document_is_valid_and_complete(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, api_version=None)


@pytest.mark.django_db
def test_the_document_and_its_page_are_open() -> None:
    client = Client()

    assert client.get("/api/schema").status_code == 200
    page = client.get("/api/docs")
    assert page.status_code == 200
    assert "unsafe-inline" not in client.get("/sign-in")["Content-Security-Policy"]


@pytest.mark.django_db(transaction=True)
def test_the_service_does_what_the_document_says(
    live_server: LiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The test server writes head and body apart: Nagle's algorithm would hold each answer for 40 ms.
    monkeypatch.setattr(WSGIRequestHandler, "disable_nagle_algorithm", True)
    secret = issue_key(account=AccountFactory.create(is_staff=True), name="schemathesis").secret
    (tmp_path / "schemathesis.toml").write_text(CHECKS)

    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "from schemathesis.cli import schemathesis; schemathesis()",
            "run",
            f"{live_server.url}/api/schema",
            f"--header=Authorization: Bearer {secret}",
            "--phases=examples,coverage,fuzzing",
            f"--max-examples={EXAMPLES}",
            "--seed=1",
            "--no-color",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
