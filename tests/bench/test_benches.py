"""Each benchmark at a tiny size, so that it still runs when it is wanted. Nothing here is timed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

CONVERSATION = {
    "sample_id": "kitchen",
    "conversation": {
        "session_1_date_time": "a morning in May",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "I drink green tea before work."},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "My cello lessons are on Thursday."},
            {"speaker": "Ada", "dia_id": "D1:3", "text": "The build server got a new disk."},
        ],
    },
    "observation": {"session_1_observation": {"Ada": [["Ada drinks green tea.", "D1:1"]]}},
    "qa": [
        {"question": "What does Ada drink?", "category": 4, "evidence": ["D1:1"]},
        {"question": "When does Ben play the cello?", "category": 2, "evidence": ["D1:2"]},
        {"question": "What does Ben drink?", "category": 5, "evidence": ["D1:1"]},
    ],
}


def last_line_of(module: str, *args: str) -> Any:
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    run = subprocess.run(
        [sys.executable, "-m", module, *args],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def test_the_recall_benchmark_runs_and_agrees_with_its_oracle() -> None:
    results = last_line_of("bench.recall", "--rows", "60", "--dims", "16", "--rounds", "1")

    assert [(one["rows"], one["dims"], one["mismatches"]) for one in results] == [(60, 16, 0)]
    assert results[0]["recall_ms"] > 0


def test_the_locomo_benchmark_finds_what_was_said(tmp_path: Path) -> None:
    data = tmp_path / "tiny.json"
    data.write_text(json.dumps([CONVERSATION]), encoding="utf-8")

    result = last_line_of("bench.locomo", str(data), "--searchable", "1")

    assert (result["texts"], result["questions"]) == (3, 2)  # the adversarial question is left out
    assert result["quality"]["retrieve"]["all"]["recall@5"] == 1
    assert result["commit_to_searchable_ms"]["p50"] > 0


def test_the_sweep_benchmark_looks_at_all_and_never_takes_too_many() -> None:
    sizes = {"--memories": 600, "--accounts": 12, "--rounds": 1, "--limit": 8, "--calls": 10}
    result = last_line_of("bench.sweep", *(str(word) for pair in sizes.items() for word in pair))

    scan, swept, evict = result["scan"], result["sweep"], result["evict"]
    assert (scan["disagreements"], scan["due"]) == (0, swept["eligible"])
    assert (swept["scanned"], swept["evicted"], swept["failed"]) == (600, swept["expected"], 0)
    assert swept["evicted"] + swept["limited"] == swept["eligible"]
    for one in (evict["one"], evict["four_apart"], evict["four_together"]):
        assert one["evicted"] + one["limited"] + one["failed"] == one["calls"]
    assert [evict[name]["calls"] for name in ("one", "four_apart", "four_together")] == [10, 40, 10]
    assert (swept["accounts_over_limit"], evict["accounts_over_limit"]) == (0, 0)


def test_the_switch_benchmark_sees_every_path_and_no_error() -> None:
    result = last_line_of("bench.switch", "--memories", "460", "--clients", "2", "--warm", "1")

    assert (result["before"]["errors"], result["during"]["errors"]) == (0, 0)
    assert result["before"]["share"] == {"semantic": 1.0}
    assert set(result["during"]["share"]) <= {"semantic", "keyword"}
    assert result["texts_per_s"] > 0
