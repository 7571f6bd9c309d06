"""The likeliest mistakes: one sentence, the right exit code, no traceback, nothing written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import BIN, FLIGHTS, Ended, Shell

Run = Callable[..., Ended]


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """One bad input of each kind."""
    names = ["empty", "marked", "corrupt", "nested"]
    folders = {name: tmp_path / name for name in names}
    for folder in folders.values():
        folder.mkdir()
    (folders["marked"] / "_SUCCESS").touch()
    (folders["corrupt"] / "part.parquet").write_bytes(b"PAR1 this is no parquet PAR1")
    (folders["nested"] / "2013").mkdir()
    shutil.copy(next(FLIGHTS.glob("*/*.parquet")), folders["nested"] / "2013" / "part.parquet")
    (tmp_path / "plain.csv").write_text("a,b\n1,2\n")
    return {**folders, "absent": tmp_path / "plain.cvs", "csv": tmp_path / "plain.csv"}


@pytest.mark.parametrize(
    ("place", "code", "condition", "hint"),
    [
        ("absent", 3, "PATH_ABSENT", "plain.csv"),
        ("empty", 3, "PATH_EMPTY", ""),
        ("marked", 3, "PATH_ONLY_MARKERS", "_SUCCESS"),
        ("corrupt", 3, "FILE_CORRUPT", "part.parquet"),
        ("nested", 3, "", "2013"),
    ],
)
def test_bad_inputs(
    saltpan: Run, places: dict[str, Path], tmp_path: Path, place: str, code: int, condition: str, hint: str
) -> None:
    ended = saltpan("topn", "--input", places[place], "--score", "v", "--output", tmp_path / "out")
    assert (ended.code, ended.out) == (code, "")
    (sentence,) = [line for line in ended.err.splitlines() if line.startswith("ERROR")]
    assert condition in sentence
    assert hint in sentence
    assert "Traceback" not in ended.err
    assert not (tmp_path / "out").exists()
    assert ended.record is not None
    assert ended.record["outcome"]["exit_code"] == code


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--score", "distnce"], 3, "did you mean `distance`"),
        (["--score", "sum(distance)"], 2, "SQL"),
        (["--score", "distance +"], 2, "SQL"),
        (["--score", "distnce + 1"], 3, "distance"),
        (["--score", "distance", "--where", "nope > 1"], 3, "nope"),
        (["--score", "distance", "--group-by", "dest"], 2, "SQL"),
        (["--score", "distance", "--strategy", "sort", "--ties", "all"], 2, "STRATEGY_UNSUITABLE"),
        (["--score", "distance", "--profile", "yran"], 2, "expected one of"),
        (["--score", "distance / (distance - distance)"], 3, "DIVIDE"),
    ],
)
def test_bad_words_that_only_the_engine_can_judge(
    saltpan: Run, tmp_path: Path, words: list[str], code: int, sentence: str
) -> None:
    ended = saltpan("topn", "--input", FLIGHTS, *words, "--output", tmp_path / "out")
    assert ended.code == code, ended.err
    assert sentence.lower() in ended.err.lower()
    assert "Traceback" not in ended.err
    assert "at org.apache" not in ended.err
    assert list(tmp_path.glob("*out*")) == []
    assert len(ended.err.splitlines()) <= 8, ended.err


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["run", "tpn"], 2, "did you mean `topn`"),
        (["rnu", "topn"], 2, "did you mean `run`"),
        (["run", "./nowhere.py"], 3, "[PATH_ABSENT] job file `nowhere.py`"),
        (["run", "topn", "--scoer", "v"], 2, "did you mean `--score`"),
    ],
)
def test_wrong_commands(shell: Shell, words: list[str], code: int, sentence: str) -> None:
    ended = shell([BIN / "saltpan", *words])
    assert (ended.code, ended.out) == (code, "")
    assert sentence in ended.err
    assert "Traceback" not in ended.err


def test_no_java(saltpan: Run, shell: Shell) -> None:
    ended = saltpan("topn", "--input", FLIGHTS, "--score", "distance", PATH=str(shell.folder), JAVA_HOME="")
    assert ended.code == 4
    assert "[JAVA_UNSUITABLE]" in ended.err
    assert "Traceback" not in ended.err


def test_a_secret_is_nowhere(saltpan: Run, shell: Shell) -> None:
    ended = saltpan(
        "topn", "--input", FLIGHTS, "--score", "nope", "--conf", "spark.my.password=hunter2",
        "--conf", "spark.my.url=jdbc:x://h/d?user=u&password=hunter2", "-v",
    )  # fmt: skip
    assert ended.code == 3
    assert ended.record is not None
    assert "spark.my.password" in json.dumps(ended.record)
    assert "hunter2" not in ended.err + ended.out + json.dumps(ended.record)
    assert not any("hunter2" in path.read_text() for path in shell.folder.rglob("*") if path.is_file())


def test_a_run_record_that_cannot_be_written(saltpan: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = saltpan("topn", "--input", FLIGHTS, "--score", "distance", "--runs-dir", tmp_path / "file")
    assert ended.code == 2
    assert "--runs-dir" in ended.err
