"""Real processes of our own on the database of the test."""

import os
import re
import subprocess
import sys
from pathlib import Path

from django.db import connection

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 120


def python(code: str) -> subprocess.Popen[str]:
    """Start a process with Django set up. It says "ready" and runs the code after a line on its input."""
    prepared = f"import django; django.setup(); print('ready', flush=True); input()\n{code}"
    environment = os.environ | {"DATABASE_URL": database_url(), "DJANGO_SETTINGS_MODULE": "elowen.settings"}
    return subprocess.Popen(
        [sys.executable, "-c", prepared],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def go(*processes: subprocess.Popen[str]) -> None:
    """Wait until all are ready, and let them begin together."""
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()


def answer(process: subprocess.Popen[str]) -> str:
    """Wait for a process's end and return what it printed."""
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    return out


def database_url() -> str:
    name = str(connection.settings_dict["NAME"])
    return re.sub(r"/[^/?]+(\?|$)", rf"/{name}\1", os.environ["DATABASE_URL"], count=1)
