"""The one list of checks on the code itself; hooks and CI call `check_code` and have none of their own."""

import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

from elowen.postgres import remove_cluster, throw_away_cluster

ROOT = Path(__file__).resolve().parent.parent
MANAGE = [sys.executable, str(ROOT / "manage.py")]
BIN = Path(sys.executable).parent
CHECKS = {
    "style": [sys.executable, "-m", "ruff", "check", "."],
    "format": [sys.executable, "-m", "ruff", "format", "--check", "."],
    "types": [sys.executable, "-m", "mypy", "."],
    "imports": [str(BIN / "lint-imports"), "--no-cache"],
    "migrations": [*MANAGE, "makemigrations", "--check", "--dry-run"],
    "settings": [*MANAGE, "check", "--deploy", "--fail-level", "WARNING"],
}


def failures() -> list[str]:
    """Run every check, tell how each went, and return the names of those that failed."""
    cluster = throw_away_cluster()
    try:
        cluster.start()
        environment = os.environ | {
            "DATABASE_URL": cluster.url(),
            "ELOWEN_SECRET_KEY": secrets.token_urlsafe(48),
            "ELOWEN_HTTPS": "1",  # judge the settings as they are in public
        }
        return [name for name, command in CHECKS.items() if not passes(name, command, environment)]
    finally:
        remove_cluster(cluster)


def passes(name: str, command: list[str], environment: dict[str, str]) -> bool:
    start = time.monotonic()
    done = subprocess.run(  # noqa: S603 - our own list
        command, env=environment, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    verdict = "failed" if done.returncode else "ok"
    sys.stdout.write(f"{name:12}{verdict} ({time.monotonic() - start:.1f} s)\n")
    if done.returncode:
        sys.stdout.write(done.stdout)
    sys.stdout.flush()
    return not done.returncode
