"""Counters on a cluster where tasks fail, are copied, and lose their shuffle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RIGHT = {"rows": 100, "total": 4950, "largest": 99}  # of the numbers below 100
PYTHON = {**RIGHT, "parities": 2}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("counters")
    probe = [sys.executable, ROOT / "tests" / "e2e" / "counters_probe.py", folder]
    done = subprocess.run(probe, capture_output=True, text=True, timeout=180, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads((folder / "told.json").read_text())


def test_the_faults_have_happened(told: Any) -> None:
    assert told["markers"] == ["copied.once", "failed.once", "lost.once", "slow.once"]


@pytest.mark.parametrize("fault", ["fail_and_wait", "fetch_failure"])
def test_numbers_are_exact_under_faults(told: Any, fault: str) -> None:
    found = told[fault]
    assert found["answer"] == 100
    assert found["tasks"]["values"] == found["rows"]["values"] == PYTHON
    assert found["sql"]["values"] == RIGHT


def test_a_lost_shuffle_shows_beside_the_exact_numbers(told: Any) -> None:
    found = told["fetch_failure"]
    assert found["plain"] == found["tasks"]["naive"]["rows"] == found["sql"]["naive"]["rows"] == 200
    assert found["tasks"]["why"] == "4 tasks of this action ran again"
    assert found["sql"]["why"] == "4 partitions were read 8 times"


def test_a_task_that_fails_first_counts_once(told: Any) -> None:
    """Case e2."""
    assert told["rdd"] == [10, 10, ""]


def test_no_tally_travels_to_the_workers(told: Any) -> None:
    """Case e3: a zero that is the driver's value yields 32 for 12; ours the two rows of the last action."""
    assert told["zero"] == [32, 2, 12]
