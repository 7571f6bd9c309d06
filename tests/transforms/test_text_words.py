# ruff: noqa: RUF001  text in many scripts
"""Word counts by every strategy: the hard cases, byte for byte the same answer."""

from __future__ import annotations

import bz2
import gzip
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from common.core.errors import (
    ColumnMissingError,
    ColumnTypeError,
    StrategyError,
    SuiteError,
    ValueMalformedError,
)
from common.engine.failures import translated
from common.engine.text_counts import count_ranges, text_ranges
from common.runs import Inputs, ReadInputs
from common.runs.inputs import not_read
from common.transforms.words_rules import WordRules
from common.tuning.facts import Facts, InputFacts
from jobs.word_count import Settings
from tests.frames import frame, no_actions, rows_of
from tests.word_cases import JOB, WAYS, Case, write

TOKENS = {
    "bom1.txt": b"\xef\xbb\xbfhi ho",
    "bom2.txt": b"\xef\xbb\xbfhi ho",
    "case.txt": "İ Straße STRASSE ΟΔΟΣ οδος".encode(),
    "lines.txt": b"a\nb\r\nc\rd",
    "quotes.txt": "don't don’t rock'n'roll 'quoted' a\u00a0b a\u3000b x\u200by".encode(),
    "scripts.txt": "שלום voilà 你好 42".encode(),
    "separators.txt": "x\u0085y\u2028z".encode(),
}
EXPECTED: Mapping[str, Mapping[str, int]] = {
    "bom1.txt": {"hi": 1, "ho": 1},
    "bom2.txt": {"hi": 1, "ho": 1},
    "case.txt": {"i\u0307": 1, "straße": 1, "strasse": 1, "οδος": 2},
    "lines.txt": {"a": 1, "b": 1, "c": 1, "d": 1},
    "quotes.txt": {"don't": 2, "rock'n'roll": 1, "quoted": 1, "a": 2, "b": 2, "x\u200by": 1},
    "scripts.txt": {"שלום": 1, "voilà": 1, "你好": 1, "42": 1},
    "separators.txt": {"x": 1, "y": 1, "z": 1},
}
ODD_NAMES = ("a b.txt", "c,d.txt", "g[1].txt", "h%20i.txt", "p+q.txt", "ü漢.txt")


@pytest.fixture
def case(spark: SparkSession, tmp_path: Path) -> Case:
    folder = tmp_path / "in"
    folder.mkdir()
    return Case(spark, folder)


def test_cases_b1_to_b9_by_file(case: Case) -> None:
    hidden = {"_b.txt": b"two", ".c.txt": b"three", "sub/_d.txt": b"four"}
    more = {**dict.fromkeys(ODD_NAMES, b"w"), "sub/b.txt": b"x", "zero.txt": b"", **hidden}
    write(case.folder, {**TOKENS, **more})
    (case.folder / "empty").mkdir()
    expected = {**EXPECTED, **{name: {"w": 1} for name in ODD_NAMES}, "sub/b.txt": {"x": 1}}
    wanted = sorted(
        (
            (f"{case.folder}/{name}", word, count)
            for name, words in expected.items()
            for word, count in words.items()
        ),
        key=repr,
    )
    for way, found in case.all_ways(by="file", recursive=True):
        assert found == wanted, way
    assert list(not_read(case.listing(Settings(recursive=True)))) == [
        "not read, since hidden: "
        + ", ".join(f"{case.folder}/{name}" for name in (".c.txt", "_b.txt", "sub/_d.txt"))
    ]


def test_documents_are_files_and_the_best_come_with_their_rank(case: Case) -> None:
    write(
        case.folder,
        {"a.txt": b"one two two", "b.txt": b"two\nthree three\n", "zero.txt": b"", "sub/c.txt": b"one"},
    )
    for way, found in case.all_ways(document_frequency=True):
        assert found == [("one", 1, 1), ("three", 2, 1), ("two", 3, 2)], way
    best = [("three", 2, 1, 2), ("two", 3, 2, 1)]
    assert case.rows("sql", document_frequency=True, top=5, min_count=2) == best
    assert case.rows("ranges", top=1, by="FILE".lower()) == [
        (f"{case.folder}/a.txt", "two", 2, 1), (f"{case.folder}/b.txt", "three", 2, 1)
    ]  # fmt: skip


def test_ties_are_cut_by_the_word(case: Case) -> None:
    write(case.folder, {"a.txt": "b a é Z \U0001f600 \uff21 b2".encode()})
    for way, found in case.all_ways(top=3, case="keep"):
        assert [(word, rank) for word, _, rank in found] == [("Z", 1), ("a", 2), ("b", 3)], way


def test_partition_folders_can_be_counted_by(case: Case) -> None:
    files = {
        "day=1/a.txt": b"x y",
        "day=1/b.txt": b"x",
        "day=2/a.txt": b"x",
        "day=__HIVE_DEFAULT_PARTITION__/c.txt": b"z",
    }
    write(case.folder, files)
    expected = [(1, "x", 2, 2), (1, "y", 1, 1), (2, "x", 1, 1), (None, "z", 1, 1)]
    for way, found in case.all_ways(by="DAY", document_frequency=True):
        assert found == expected, way
    with pytest.raises(
        ColumnMissingError, match=r"`dya`: expected a column of the input, or `file`.*mean `day`"
    ):
        case.rows("ranges", by="dya")


@pytest.mark.parametrize("name", ["value", "File"])
def test_partition_folders_may_be_called_as_sparks_columns_or_ours(case: Case, name: str) -> None:
    write(case.folder, {f"{name}=a/1.txt": b"x y", f"{name}=b/2.txt": b"x"})
    for way in WAYS:
        assert case.rows(way, document_frequency=True) == [("x", 2, 2), ("y", 1, 1)], way
    one, two = (f"{case.folder}/{name}={file}" for file in ("a/1.txt", "b/2.txt"))
    first, second = (one, two) if name == "File" else ("a", "b")  # `--by file` is the path
    for way in ("ranges", "sql"):
        assert case.rows(way, by=name) == [(first, "x", 1), (first, "y", 1), (second, "x", 1)], way


def test_bytes_that_are_no_text_are_replaced_and_counted(case: Case) -> None:
    bad = b"ok \xff\xfe\n\xe6\xbc \xc3(\nfine \xed\xa0\x80 \xef\xbf\xbd\n"
    write(case.folder, {"bad.txt": bad, "good.txt": "fine \ufffd".encode()})
    text = bad.decode("utf-8", "replace")
    replaced = text.count("\ufffd") - 1  # one was in the text
    words = Counter([*text.split(), "fine", "\ufffd"])
    for way in WAYS:
        with no_actions() if way != "rdd" else translated():
            rows, counted = case.build(way, tokenizer="whitespace", on_decode_error="replace")
        assert sorted(rows_of(rows)) == sorted(words.items()), way
        assert counted is not None
        assert counted.observation.settle().values == {"undecodable": replaced}, way


def test_bytes_that_are_no_text_stop_the_run(case: Case) -> None:
    write(case.folder, {"a.txt": b"fine\n", "bad.txt": b"fine\nfine \xff\n"})
    bad = f"{case.folder}/bad.txt"
    with pytest.raises(ValueMalformedError) as caught:
        case.rows("ranges")
    assert (caught.value.name, caught.value.got) == (bad, "other bytes at byte 10")
    for way in WAYS[1:]:
        with pytest.raises(ValueMalformedError, match="bytes that are not UTF-8 in ") as caught:
            case.rows(way)
        assert bad in str(caught.value), way
    write(case.folder, {"bad.txt": b"fine", "a.txt": b"fine"})
    for way in WAYS:
        rows, counted = case.build(way, on_decode_error="replace")
        assert rows_of(rows) == [("fine", 2)], way
        assert counted is not None
        assert counted.observation.settle().values == {"undecodable": 0}, way


def test_packed_files_count_as_what_they_hold(case: Case) -> None:
    text = b"one two\r\ntwo\n"
    zstd = bytes(pa.compress(text, codec="zstd", asbytes=True))
    packed = {"a.gz": gzip.compress(text) * 2, "b.bz2": bz2.compress(text) * 2, "c.zst": zstd * 2}
    write(case.folder, {**packed, "d.csv": text, "e": text})
    for way, found in case.all_ways():
        assert found == [("one", 8), ("two", 16)], way


def test_other_encodings_are_read_by_the_workers_only(case: Case) -> None:
    write(case.folder, {"a.txt": "Привет, мир\r\nпривет\r".encode("cp1251") * 5})
    assert case.rows("ranges", encoding="windows-1251", split_bytes=40) == [("мир", 5), ("привет", 10)]
    for way in WAYS[1:]:
        with pytest.raises(
            StrategyError, match="expected text in utf-8, which is what Spark reads, got cp1251"
        ):
            case.rows(way, encoding="cp1251")
    write(case.folder, {"a.txt": "\ufeffhi ho\nhi".encode("utf-16-be")})
    assert case.rows("ranges", encoding="utf-16", split_bytes=1) == [("hi", 2), ("ho", 1)]
    settings = Settings(encoding="utf-16")
    plain = JOB.plain(ReadInputs(case.spark, {"input": case.listing(settings)}), settings)
    assert sorted(rows_of(plain)) == [("hi", 2), ("ho", 1)]


def test_ranges_of_a_few_bytes_in_tasks_of_their_own(case: Case) -> None:
    write(case.folder, {"a.txt": "\ufeffa é漢 \r\nbb,cc-dd don’t\ra\r\n".encode(), "b.txt": b"a"})
    expected = {"a": 3, "bb": 1, "cc-dd": 1, "don't": 1, "é漢": 1}
    assert dict(case.rows("ranges", split_bytes=6)) == expected


def test_counts_of_many_tasks_merge_by_bucket(case: Case) -> None:
    lines = [f"w{number % 97} x{number}\n".encode() for number in range(500)]
    write(case.folder, {"a.txt": b"".join(lines), "b.txt": b"w1 \xff \xff"})
    expected = Counter(word.decode() for line in lines for word in line.split())
    expected["w1"] += 1
    ranges = text_ranges(case.spark, case.listing(Settings()), split_bytes=1_000)
    for buckets in (1, 5, 1024):
        counts = count_ranges(ranges, WordRules(), on_decode_error="replace", buckets=buckets)
        found = rows_of(counts)
        assert sorted(found, key=repr) == sorted([*expected.items(), (None, 2)], key=repr), buckets


def test_nothing_to_read_is_no_words(case: Case) -> None:
    write(case.folder, {"a.txt": b"", "b.txt": b""})
    assert case.rows("ranges", top=3) == []
    write(case.folder, {"a.txt": b"\r\n \n"})
    for way, found in case.all_ways():
        assert found == [], way


TABLE = [
    (1, "one two two", "g"),
    (2, None, "g"),
    (3, "two", "h"),
    (4, "", "h"),
    (5, "three\none", None),
    (3, "two", "h"),
]


@pytest.mark.parametrize(("strategy", "partitions"), [("arrow", 1), ("arrow", 3), ("sql", 2), ("rdd", 2)])
def test_a_column_of_a_table(spark: SparkSession, strategy: Any, partitions: int) -> None:
    df = frame(spark, TABLE, "id INT, text STRING, `gr p` STRING", partitions=partitions)

    def rows(inputs: Inputs, **asked: Any) -> list[tuple[Any, ...]]:
        settings = Settings(column="text", strategy=strategy, document_frequency=True, **asked)
        decision = JOB.plan(Facts({"input": _table_facts()}, capabilities=frozenset({"rdd"})), settings)
        answer = JOB.build(inputs, settings, decision)
        assert isinstance(answer, DataFrame)
        return sorted(rows_of(answer), key=repr)

    assert rows({"input": df}) == [("one", 2, 2), ("three", 1, 1), ("two", 4, 3)]
    assert rows({"input": df}, by="gr p") == [
        ("g", "one", 1, 1), ("g", "two", 2, 1), ("h", "two", 2, 2), (None, "one", 1, 1), (None, "three", 1, 1)
    ]  # fmt: skip
    assert rows({"input": df.limit(0)}, by="id") == []


def _table_facts() -> InputFacts:
    return InputFacts("input", "parquet", ("in",), file_count=1, size_bytes=100, is_reachable=True)


@pytest.mark.parametrize(
    ("asked", "kind", "message"),
    [
        ({"column": "txt"}, ColumnMissingError, "did you mean `text`"),
        ({"column": "id"}, ColumnTypeError, r"`id`: expected text \(STRING\), got int"),
        ({"column": "text", "by": "grp"}, ColumnMissingError, "did you mean `gr p`"),
    ],
)
def test_columns_that_are_not_there(
    spark: SparkSession, asked: dict[str, Any], kind: type[SuiteError], message: str
) -> None:
    settings = Settings(**asked)
    decision = JOB.plan(Facts({"input": _table_facts()}), settings)
    with no_actions(), pytest.raises(kind, match=message):
        JOB.build({"input": frame(spark, TABLE, "id INT, text STRING, `gr p` STRING")}, settings, decision)
