# ruff: noqa: RUF001  text in many scripts
"""The word count end to end: real processes, files as they come, mistakes as people make them."""

from __future__ import annotations

import csv
import gzip
import io
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.e2e.conftest import BIN, ROOT, Ended, Shell

Run = Callable[..., Ended]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Cases b1, b2, b6, b7, b8 and b9 in one folder."""
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / "empty").mkdir()
    contents = {
        "a b.txt": b"\xef\xbb\xbfhi ho",
        "c,d.txt": "don't don’t\r\n'quoted' a\u00a0b\ra\u3000b".encode(),
        "g[1].gz": gzip.compress("שלום voilà 你好 42 hi".encode()),
        "zero.txt": b"",
        "_b.txt": b"two",
        ".c.txt": b"three",
        "sub/b.txt": b"hi",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


def rows_of(ended: Ended) -> list[list[str]]:
    return list(csv.reader(io.StringIO(ended.out)))[1:]


def test_a_folder_as_it_comes(saltpan: Run, texts: Path) -> None:
    ended = saltpan("word-count", "--input", texts, "--verify", "--format", "csv")
    assert ended.code == 0, ended.err
    assert rows_of(ended) == [
        [word, count]
        for word, count in [
            ("a", "2"), ("b", "2"), ("don't", "2"), ("hi", "2"), ("42", "1"), ("ho", "1"), ("quoted", "1"),
            ("voilà", "1"), ("שלום", "1"), ("你好", "1"),
        ]
    ]  # fmt: skip
    assert f"input: not read, since hidden: {texts}/.c.txt, {texts}/_b.txt\n" in ended.err
    assert f"(--recursive reads them): {texts}/empty, {texts}/sub\n" in ended.err
    assert "decision: arrow: the workers cut and count words in Arrow" in ended.err
    assert "one task for each packed file, which cannot be split (g[1].gz)" in ended.err
    assert "verified: 10 rows equal the plain plan's by fingerprint" in ended.err
    assert ended.record is not None
    (strategy,) = [item for item in ended.record["decisions"] if item["about"] == "strategy"]
    assert strategy["evidence"]["read"] == "ranges"
    assert strategy["evidence"]["files"] == 4
    (recorded,) = ended.record["inputs"]
    assert recorded["skipped"] == [f"{texts}/.c.txt", f"{texts}/_b.txt"]
    assert recorded["passed_over"] == [f"{texts}/empty", f"{texts}/sub"]


def test_spark_submit_of_a_column_with_a_tokenizer_of_ones_own(
    submit: Run, shell: object, tmp_path: Path
) -> None:
    folder = tmp_path / "else where"  # where the process runs
    (folder / "my_words.py").write_text("def cut(line):\n    return line.split(';')\n")
    (tmp_path / "rows.csv").write_text("id,text\n1,one;two;two\n2,\n3,two\n")
    ended = submit(
        ROOT / "jobs" / "word_count.py", "--input", tmp_path / "rows.csv", "--column", "text",
        "--tokenizer", "my_words:cut", "--document-frequency", "--top", "5", "--format", "csv",
    )  # fmt: skip
    assert (ended.code, rows_of(ended)) == (0, [["two", "3", "2", "1"], ["one", "1", "1", "2"]]), ended.err
    assert "Spark reads the rows for them: the text is in column text" in ended.err


def test_a_column_of_a_parquet_table_by_jieba_with_words_of_ones_own(saltpan: Run, tmp_path: Path) -> None:
    texts = ["李小福是创新办主任", "李小福 李小福 T恤", "云计算 OK", None]
    pq.write_table(pa.table({"stars": [5, 5, 1, 5], "text": texts}), tmp_path / "reviews.parquet")
    names = tmp_path / "names.txt"
    names.write_text("\ufeff云计算 5\r\n李小福 2 nr\r\n创新办 3 i\r\nT恤 3 n\r\n", encoding="utf-8")
    ended = saltpan(
        "word-count", "--input", tmp_path / "reviews.parquet", "--column", "text", "--by", "stars",
        "--tokenizer", "cjk", "--user-dictionary", names, "--min-length", "2", "--document-frequency",
        "--top", "2", "--verify", "--format", "csv",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert ended.out.splitlines() == [
        "stars,word,count,documents,rank", "1,ok,1,1,1", "1,云计算,1,1,2", "5,李小福,3,2,1", "5,主任,1,1,2"
    ]  # fmt: skip
    assert (
        "names.txt: 1 of its words are never found, since jieba cuts Chinese characters only: T恤"
        in ended.err
    )
    assert "verified: 4 rows equal" in ended.err


SLOW = """
import os, pathlib, time

def cut(line):
    pathlib.Path({marker!r}).write_text(str(os.getpid()))
    time.sleep(100)
    return [line]
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_whatever_ends_the_run_the_former_output_stays_and_the_workers_go(
    saltpan: Run, shell: Shell, tmp_path: Path, number: int, code: int
) -> None:
    marker, out = tmp_path / "worker", tmp_path / "out"
    (shell.folder / "slow_words.py").write_text(SLOW.format(marker=str(marker)))
    (tmp_path / "a.txt").write_text("one two two")
    out.mkdir()
    former = {"_SUCCESS": "", "part-00000.csv": "word,count\n"}
    for name, text in former.items():
        (out / name).write_text(text)
    flags = ["word-count", "--input", tmp_path / "a.txt", "--output", out, "--mode", "overwrite"]
    command = [str(word) for word in (BIN / "saltpan", "run", *flags, "--tokenizer", "slow_words:cut")]
    process = subprocess.Popen(
        command, cwd=shell.folder, env=shell.environ, stderr=subprocess.PIPE, text=True
    )
    try:
        _wait_until(lambda: process.poll() is not None or (marker.exists() and bool(marker.read_text())))
        os.kill(process.pid, number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code, err
    assert "Traceback" not in err
    assert {path.name: path.read_text() for path in out.iterdir()} == former
    _wait_until(lambda: not Path("/proc", marker.read_text()).exists())
    if number == signal.SIGKILL:  # nobody was left to tidy up; the next run does
        ended = saltpan(*flags, "--output-format", "csv")
        assert ended.code == 0, ended.err
        assert sorted("".join(path.read_text() for path in out.glob("*.csv")).split()) == [
            "one,1", "two,2", "word,count"
        ]  # fmt: skip
    assert list(tmp_path.glob(".out*")) == []


def _wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_bytes_that_are_no_text_stop_the_run_or_are_counted(saltpan: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"fine\nfine \xff\xfe\n")
    ended = saltpan("word-count", "--input", bad)
    assert (ended.code, ended.out) == (3, ""), ended.err
    (sentence,) = [line for line in ended.err.splitlines() if line.startswith("ERROR")]
    assert f"file `{bad}`: expected text in utf-8, got other bytes at byte 10. Hint" in sentence
    out = tmp_path / "out"
    ended = saltpan(
        "word-count",
        "--input",
        bad,
        "--on-decode-error",
        "replace",
        "--output",
        out,
        "--output-format",
        "csv",
    )
    assert ended.code == 0, ended.err
    assert "counted: undecodable 2\n" in ended.err
    assert ended.record is not None
    assert ended.record["counters"] == {"undecodable": 2}
    assert sorted("".join(path.read_text() for path in out.glob("*.csv")).split()) == ["fine,2", "word,count"]


def test_the_plan_is_explained_and_nothing_runs(saltpan: Run, texts: Path) -> None:
    ended = saltpan("word-count", "--input", texts / "*.txt", "--strategy", "sql", "--explain", "--top", "3")
    assert ended.code == 0, ended.err
    assert "because   as asked; built-in functions cut the rows into words" in ended.out
    assert ended.record is not None
    assert ended.record["rows_out"] is None


def test_mistakes_end_with_a_sentence_each_and_nothing_else(saltpan: Run, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\x7fELF\0")
    ended = saltpan("word-count", "--input", tmp_path / "binary")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err == (
        f"ERROR: [FORMAT_UNCLEAR] file `{tmp_path}/binary`: expected text in utf-8, got a NUL at byte 4. "
        "Hint: leave it out if it is binary, or name its encoding, such as --encoding utf-16.\n"
    )
    ended = saltpan(
        "word-count", "--input", "x", "--encoding", "utf-88", "--stop-words", "absent", "--by", "count"
    )
    assert (ended.code, ended.out) == (2, "")
    assert len(ended.err.splitlines()) == 3
    for said in (
        "[NAME_UNKNOWN] encoding `utf-88`",
        "absent (No such file",
        "column `count`: expected another",
    ):
        assert said in ended.err
