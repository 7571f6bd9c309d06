"""What is committed: no machine's paths in it, lock files that agree, wrappers that can be run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import house_rules as rules  # type: ignore[import-not-found]  # beside this file; pytest finds it
import pytest

ROOT = Path(__file__).parents[2]


def committed_or_about_to_be() -> Iterator[tuple[str, str]]:
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("not a git clone: nothing tells which files are committed")
    command = [
        "git",
        "-c",
        f"safe.directory={ROOT}",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for place in filter(None, listing.split("\0")):
        file = ROOT / place
        content = file.read_bytes() if file.is_file() else b"\0"
        if b"\0" not in content:
            yield place, content.decode("utf-8")


def pins(lock: str) -> dict[str, str]:
    """Requirement (with its marker) to version."""
    text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    found = re.findall(r"^([\w.-]+)==([^\s;\\]+)([^\\\n]*)", text, re.MULTILINE)
    return {f"{name}{marker.rstrip()}": version for name, version, marker in found}


def test_no_text_names_a_machine() -> None:
    files = list(committed_or_about_to_be())
    assert "pyproject.toml" in {place for place, _ in files}
    assert rules.breaches(rules.text_names_no_machine, files) == []


def test_the_development_lock_holds_every_pin_of_the_run_lock() -> None:
    run, dev = pins("run"), pins("dev")
    assert run.items() <= dev.items()
    assert {"pytest", "ruff", "mypy"} <= dev.keys() - run.keys()


def test_the_next_lock_differs_in_spark_only() -> None:
    dev, coming = pins("dev"), pins("next")
    assert {name for name in dev.keys() & coming.keys() if dev[name] != coming[name]} <= {"pyspark", "py4j"}
    made_with = dict(re.findall(r"^(SPARK\w*) := (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert made_with == {"SPARK": dev["pyspark"], "SPARK_NEXT": coming["pyspark"]}


@pytest.mark.parametrize("lock", ["run", "dev", "next"])
def test_locks_have_hashes_and_no_address(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    requirements = re.split(r"\n(?=[a-z])", text[text.index("\n", text.index("make lock")) :].strip())
    assert len(requirements) == len(pins(lock))
    assert [line for line in requirements if "--hash=sha256:" not in line] == []
    assert re.findall(r"https?:|--(?:extra-)?index-url|--find-links|file:", text) == []


@pytest.mark.parametrize("script", [".ci/run", "conf/spark-submit.sh"])
def test_scripts_can_be_run(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    assert (ROOT / script).read_text(encoding="utf-8").startswith("#!/usr/bin/env bash\n")
