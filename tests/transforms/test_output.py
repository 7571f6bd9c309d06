"""Rows written and printed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from common.engine.writer import OutputFormat, write_rows
from common.runs.job import Display
from common.runs.presentation import present
from common.transforms.topn import TopN, sort_top_n
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


def test_a7_the_written_order_is_the_ranks(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(1, "p"), (1, "q"), (2, "r"), (2, "s"), (3, "t"), (3, "u"), (3, "v")]
    df = frame(spark, rows, "k INT, name STRING", partitions=3, flip=True)
    best = sort_top_n(df, TopN(score="k", n=6, order="asc"))
    write_rows(best, str(tmp_path / "out"), file_format="parquet", order=["rank"])
    assert pq.read_table(tmp_path / "out")["name"].to_pylist() == list("pqrstu")


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (100, 100), (101, 20)])
def test_all_rows_or_the_first_and_the_count(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], count: int, shown: int
) -> None:
    df = spark.range(count).repartition(3)
    assert present(df, style="csv", display=Display(order=("id",))) == count
    out, err = capsys.readouterr()
    assert out.splitlines() == ["id", *map(str, range(shown))]
    assert (f"the first 20 of {count} rows" in err) is (shown < count)


def test_json_lines(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    df = frame(spark, [(math.nan, None)], "v DOUBLE, s STRING")
    present(df, style="json", display=Display())
    assert json.loads(capsys.readouterr().out) == {"v": "NaN", "s": None}
