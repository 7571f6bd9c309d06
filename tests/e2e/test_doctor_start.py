"""A folder with a random.py: the sentence comes before any JVM, in the doctor's table and from a run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from common.engine.shadowing import BREAKING
from tests.e2e.conftest import BIN, FLIGHTS, ROOT, Shell

SENTENCE = "random.py (hides Python's own random)"
IN_MEMORY = {"encodings"}  # before Python looks into any folder
IMPORTS = """
import sys
import pyspark.daemon, pyspark.worker, pyspark.cloudpickle, pyspark.sql.pandas.types
import pandas, pyarrow, pyarrow.parquet
pyarrow.table({"a": [1]}).to_pandas().to_string()
from importlib.machinery import BuiltinImporter, FrozenImporter
names = {name.partition(".")[0] for name in sys.modules} & set(sys.stdlib_module_names)
print(*(name for name in names if not BuiltinImporter.find_spec(name) and not FrozenImporter.find_spec(name)))
"""


@pytest.fixture
def no_java(tmp_path: Path, shell: Shell) -> dict[str, str]:
    """A Java that is new enough, and that nobody may start."""
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/started'\nexit 1\n")
    program.chmod(0o755)
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.15"\n')
    (shell.folder / "random.py").write_text("raise SystemExit('a script of the user')\n")
    return {"JAVA_HOME": str(tmp_path / "java")}


@pytest.mark.parametrize(
    "words",
    [
        ["doctor", "start"],
        ["run", "topn", "--input", FLIGHTS, "--group-by", "dest", "--score", "count(*)", "--n", "3"],
    ],
    ids=["doctor", "run"],
)
def test_a_file_that_hides_a_library(
    shell: Shell, no_java: dict[str, str], tmp_path: Path, words: Sequence[object]
) -> None:
    ended = shell([BIN / "saltpan", *words], **no_java)
    said = ended.out if words[0] == "doctor" else ended.err
    assert ended.code == 4
    assert SENTENCE in " ".join(said.split())
    assert "Traceback" not in ended.err
    assert not (tmp_path / "started").exists()


def test_all_that_workers_import_is_known() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    imported = {name for name in done.stdout.split() if not name.startswith("_")}
    assert {"random", "socket", "csv"} <= imported
    assert imported - IN_MEMORY - BREAKING == set()
