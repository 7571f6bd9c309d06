"""Job files are found and understood without being run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from common.core.errors import PathAbsentError, UnknownNameError, UsageError
from common.runs.job_file import find_job

ROOT = Path(__file__).resolve().parents[2]

JOB = """
from common.runs import Job, JobSettings, run_job

class Settings(JobSettings):
    miles: int = 2500

class Long(Job[Settings]):
    "Long."
    settings = Settings
"""


@pytest.fixture
def job_path(tmp_path: Path) -> Path:
    path = tmp_path / "my job.py"
    path.write_text(JOB + 'if __name__ == "__main__":\n    raise SystemExit(run_job(Long()))\n')
    return path


def test_a_job_file_is_understood_and_not_run(job_path: Path) -> None:
    job = find_job(str(job_path))
    command = job.understand(["--miles", "7", "--input", "x"], environ={})
    assert command is not None
    assert (job.path, command.settings.model_dump()["miles"]) == (job_path.resolve(), 7)
    with pytest.raises(UsageError, match="did you mean `--miles`"):
        job.understand(["--miels", "7", "--input", "x"], environ={})
    assert str(job_path.parent) not in sys.path
    assert not (job_path.parent / "__pycache__").exists()


def test_a_job_of_the_suite() -> None:
    job = find_job("topn")
    assert job.path == ROOT / "jobs" / "topn.py"
    command = job.understand(["--input", "x", "--score", "-a"], environ={"SALTPAN_TOPN_N": "4"})
    assert command is not None
    assert command.origins["n"] == "SALTPAN_TOPN_N"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "expected a file with a job"),
        (JOB + "raise SystemExit(run_job(Long()))\n", "got a file that runs on import"),
        ("import nothing_of_this_name\n", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("def\n", "SyntaxError"),
    ],
)
def test_files_that_are_no_job(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "job.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=re.escape(words)):
        find_job(str(path))


def test_jobs_that_are_not_there(job_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean `topn`"):
        find_job("topm")
    with pytest.raises(PathAbsentError, match=r"did you mean `my job\.py`"):
        find_job(str(job_path.with_name("my jb.py")))
