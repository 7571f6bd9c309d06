"""Rows written and printed."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from common.core.errors import ColumnTypeError
from common.engine.writer import OutputFormat, check_writable, write_rows
from common.runs.job import Display, Job
from common.runs.presentation import displayed, present
from common.settings.job import JobSettings
from common.transforms.topn import sort_top_n
from common.transforms.topn_rows import TopN
from tests.frames import frame, rows_of

ROWS = [(1, "a"), (2, None), (3, ""), (4, 'say "hi",\nthere')]
SCHEMA = "i INT, s STRING"


@pytest.mark.parametrize("file_format", ["parquet", "orc", "json"])
def test_written_rows_are_the_same_when_read(
    spark: SparkSession, tmp_path: Path, file_format: OutputFormat
) -> None:
    target = tmp_path / "with space"
    written = write_rows(frame(spark, ROWS, SCHEMA, partitions=2), str(target), file_format=file_format)
    again = spark.read.format(file_format).schema(SCHEMA).load(f"file://{target}")
    assert (written, sorted(rows_of(again))) == (4, ROWS)


def test_csv_keeps_null_apart_from_empty_and_quotes_by_rfc_4180(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(
        frame(spark, ROWS, SCHEMA), str(tmp_path / "out"), file_format="csv", file_count=1, order=["i"]
    )
    (part,) = (tmp_path / "out").glob("*.csv")
    assert part.read_text() == 'i,s\n1,a\n2,\n3,""\n4,"say ""hi"",\nthere"\n'


@pytest.mark.parametrize("count", [1, 3])
def test_the_number_of_files(spark: SparkSession, tmp_path: Path, count: int) -> None:
    rows = [(i, "x") for i in range(50)]
    df = frame(spark, rows, SCHEMA, partitions=5)
    assert write_rows(df, str(tmp_path / "out"), file_format="parquet", file_count=count) == 50
    assert len(list((tmp_path / "out").glob("*.parquet"))) == count


def test_an_empty_answer_keeps_its_schema(spark: SparkSession, tmp_path: Path) -> None:
    assert write_rows(frame(spark, [], SCHEMA), str(tmp_path / "out"), file_format="parquet") == 0
    assert pq.read_table(tmp_path / "out").schema.names == ["i", "s"]


def test_no_rows_in_several_sorted_files_are_none(spark: SparkSession, tmp_path: Path) -> None:
    """Only when it runs does Spark see that there is nothing to shuffle, and leaves the shuffle out."""
    nothing = spark.range(10).where("id > 99")
    target = str(tmp_path / "out")
    assert write_rows(nothing, target, file_format="parquet", file_count=3, order=["id"]) == 0
    assert spark.read.parquet(target).count() == 0


def test_a7_the_written_order_is_the_ranks(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(1, "p"), (1, "q"), (2, "r"), (2, "s"), (3, "t"), (3, "u"), (3, "v")]
    df = frame(spark, rows, "k INT, name STRING", partitions=3, flip=True)
    best = sort_top_n(df, TopN(score="k", n=6, order="asc"))
    write_rows(best, str(tmp_path / "out"), file_format="parquet", order=["rank"])
    assert pq.read_table(tmp_path / "out")["name"].to_pylist() == list("pqrstu")


INSTANT = "SELECT TIMESTAMP '2020-01-01 00:00:00.000001 America/New_York' AS t, 1 AS `a b.c`"


def test_microseconds_and_odd_names_survive_in_text_formats(spark: SparkSession, tmp_path: Path) -> None:
    for file_format in ("csv", "json"):
        target = tmp_path / file_format
        write_rows(spark.sql(INSTANT), str(target), file_format=file_format, order=["a b.c"])  # type: ignore[arg-type]
        (part,) = target.glob(f"*.{file_format}")
        assert "2020-01-01T05:00:00.000001Z" in part.read_text()


def test_instants_are_printed_in_the_session_s_zone(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        present(spark.sql(INSTANT), style="csv", display=Display())
    finally:
        monkeypatch.undo()
        time.tzset()
    assert capsys.readouterr().out.splitlines()[1] == "2020-01-01T05:00:00.000001Z,1"


@pytest.mark.parametrize(
    ("file_format", "sql", "named"),
    [
        ("csv", "SELECT 1 AS a, struct(1) AS s", "`s` is struct"),
        ("csv", "SELECT array(1) AS l", "`l` is array"),
        ("parquet", "SELECT NULL AS v", "`v` is void"),
    ],
)
def test_columns_that_a_format_cannot_hold_are_refused_before_anything_runs(
    spark: SparkSession, file_format: OutputFormat, sql: str, named: str
) -> None:
    with pytest.raises(ColumnTypeError, match=named):
        check_writable(spark.sql(sql), file_format=file_format)


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (100, 100), (101, 20)])
def test_all_rows_or_the_first_and_the_count(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], count: int, shown: int
) -> None:
    df = spark.range(count).repartition(3)
    assert present(df, style="csv", display=Display(order=("id",))) == count
    out, err = capsys.readouterr()
    assert out.splitlines() == ["id", *map(str, range(shown))]
    assert (f"the first 20 of {count} rows" in err) is (shown < count)


def test_columns_without_an_order_are_not_sorted_by(spark: SparkSession) -> None:
    class Sorting(Job[JobSettings]):
        def display(self, settings: JobSettings, columns: object) -> Display:
            return Display(("m", "n"), descending=("n",))

    df = spark.sql("SELECT map('a', 1) AS m, 1 AS n")
    assert displayed(Sorting(), JobSettings(), df) == Display(("n",), descending=("n",))


def test_json_lines(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    df = frame(spark, [(math.nan, None)], "v DOUBLE, s STRING")
    present(df, style="json", display=Display())
    assert json.loads(capsys.readouterr().out) == {"v": "NaN", "s": None}
