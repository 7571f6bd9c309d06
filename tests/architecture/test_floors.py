"""The import-linter contracts of pyproject.toml: the code keeps them, and each catches its breach."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = ("core", "settings", "tuning", "transforms", "engine", "runs")
BREACHES = [
    ("core", "import common.settings"),
    ("settings", "import common.tuning"),
    ("transforms", "import common.tuning"),
    ("tuning", "import common.transforms"),
    ("tuning", "import common.engine"),
    ("engine", "import common.runs"),
    ("runs", "import jobs"),
    ("core", "import pyspark.sql"),
    ("settings", "def f():\n    import pyarrow"),
    ("tuning", "import pandas"),
    ("transforms", "import common.settings"),
    ("transforms", "import pydantic"),
    ("core", "import cyclopts"),
]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    # Without -P, the folder the command runs in is first on sys.path: the skeleton's packages win.
    call = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    command = [sys.executable, "-c", call]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def contracts() -> str:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return text[text.index("[tool.importlinter]") :].partition("\n[tool.pytest")[0]


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    for package in ("common", "jobs", *(f"common/{floor}" for floor in FLOORS)):
        (tmp_path / package).mkdir(parents=True, exist_ok=True)
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "common" / "cli.py").touch()
    (tmp_path / "pyproject.toml").write_text(contracts())
    return tmp_path


def test_the_code_keeps_the_contracts() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    kept = re.search(r"Contracts: (\d+) kept, 0 broken", result.stdout)
    assert kept
    assert int(kept.group(1)) == contracts().count("[[tool.importlinter.contracts]]")


def test_imports_that_go_down_are_kept(skeleton: Path) -> None:
    (skeleton / "jobs" / "a.py").write_text("import common.runs, common.core, pyspark")
    (skeleton / "common" / "transforms" / "a.py").write_text("import common.core, pyspark")
    result = lint(skeleton)
    assert result.returncode == 0, result.stdout + result.stderr


def test_each_breach_is_found(skeleton: Path) -> None:
    for number, (floor, source) in enumerate(BREACHES):
        (skeleton / "common" / floor / f"breach{number}.py").write_text(source)
    result = lint(skeleton)
    assert result.returncode == 1, result.stdout + result.stderr
    missed = []
    for number, (floor, source) in enumerate(BREACHES):
        # External packages are one node each.
        target = source.partition("import ")[2].removeprefix("pyspark.sql") or "pyspark"
        if f"common.{floor}.breach{number} -> {target}" not in result.stdout:
            missed.append((floor, source))
    assert missed == [], result.stdout
