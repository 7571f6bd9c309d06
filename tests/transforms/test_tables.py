from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import DataFrame, SparkSession

from common.core.errors import (
    ColumnMissingError,
    FormatError,
    PathAbsentError,
    PathEmptyError,
    SchemaConflictError,
)
from common.engine.facts import sampled_facts
from common.engine.listing import list_input
from common.engine.tables import read_input
from common.settings.inputs import InputRequest
from common.tuning.facts import KeySample


def read(spark: SparkSession, *paths: object, **fields: Any) -> DataFrame:
    request = InputRequest("input", tuple(str(path) for path in paths), **fields)
    return read_input(spark, list_input(request))


def write(path: Path, columns: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".orc":
        orc.write_table(pa.table(columns), path)
    else:
        pq.write_table(pa.table(columns), path)


def rows(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in df.collect()), key=repr)


@pytest.mark.parametrize(
    "name",
    [
        "a,b",
        "a{b,c}",
        "a b",
        "a%20b",
        "a+b",
        "a#b",
        "ü漢",
        "a\\b",
        "a[1]",
        "a*b",
        "a?b",
        "a\nb",
        "e\u0301",
        "a=b",
        "1:2",
    ],
)
def test_every_name_is_only_a_name(spark: SparkSession, tmp_path: Path, name: str) -> None:
    for beside in ("axb", "a1", "ab"):
        write(tmp_path / f"{beside}.parquet", {"n": [0]})
    if ":" not in name:
        write(tmp_path / f"{name}.parquet", {"n": [7]})
        assert rows(read(spark, tmp_path / f"{name}.parquet")) == [(7,)]
    write(tmp_path / "folders" / name / "k=1" / "f.parquet", {"n": [8]})
    write(tmp_path / "folders" / name / "k=2" / "f.parquet", {"n": [9]})
    assert rows(read(spark, tmp_path / "folders" / name)) == [(8, 1), (9, 2)]


def test_the_first_day_of_a_partitioned_folder(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "day=2020-01-01").mkdir()
    pq.write_table(pa.table({"i": [1]}), tmp_path / "day=2020-01-01" / "f.parquet")
    df = read(spark, tmp_path)
    assert df.dtypes == [("i", "bigint"), ("day", "date")]
    assert [tuple(row) for row in df.collect()] == [(1, date(2020, 1, 1))]


@pytest.mark.parametrize("ending", ["parquet", "orc"])
def test_partition_columns_are_typed_and_last(spark: SparkSession, tmp_path: Path, ending: str) -> None:
    write(tmp_path / f"day=2013-06-01/hour=7/f.{ending}", {"n": [1, 2], "s": ["x", None]})
    write(tmp_path / f"day=__HIVE_DEFAULT_PARTITION__/hour=8/f.{ending}", {"n": [3], "s": ["y"]})
    df = read(spark, tmp_path)
    assert df.dtypes == [("n", "bigint"), ("s", "string"), ("day", "date"), ("hour", "bigint")]
    assert rows(df) == [(1, "x", date(2013, 6, 1), 7), (2, None, date(2013, 6, 1), 7), (3, "y", None, 8)]


def test_declared_types_win_over_those_of_files_and_folders(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "k=007/f.parquet", {"n": [1], "x": [0], "d": ["2013-01-01"]})
    write(tmp_path / "k=8/f.parquet", {"n": pa.array([2], pa.int16()), "d": ["2013-01-02"]})
    df = read(spark, tmp_path, schema="D DATE, k INT, n STRING")
    assert df.dtypes == [("D", "date"), ("n", "string"), ("k", "int")]
    assert rows(df) == [(date(2013, 1, 1), "1", 7), (date(2013, 1, 2), "2", 8)]


def test_a_declared_type_that_a_value_does_not_fit_stops(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "f.parquet", {"n": ["1", "12x"]})
    with pytest.raises(Exception, match="12x"):
        read(spark, tmp_path, schema="n INT").collect()


def test_nested_types_are_declared_by_field_names(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "f.parquet", {"s": [{"a": 1, "b": "x"}], "n": [1]})
    assert rows(read(spark, tmp_path, schema="s STRUCT<b: STRING, a: BIGINT>")) == [(("x", 1),)]


def test_files_with_columns_in_another_order(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"n": [1], "m": [10]})
    write(tmp_path / "b.parquet", {"M": [20], "n": [2]})
    assert rows(read(spark, tmp_path)) == [(1, 10), (2, 20)]


def test_merged_columns_when_the_user_asks(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"n": [1]})
    write(tmp_path / "b.parquet", {"n": [2], "m": [20]})
    with pytest.raises(SchemaConflictError, match="no m"):
        read(spark, tmp_path)
    assert rows(read(spark, tmp_path, options={"mergeSchema": "true"})) == [(1, None), (2, 20)]


def test_a_column_of_files_and_of_folders(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "n=5/f.parquet", {"n": [1], "m": [2]})
    with pytest.raises(SchemaConflictError, match="`n`"):
        read(spark, tmp_path)
    assert rows(read(spark, tmp_path, schema="n INT, m INT")) == [(2, 5)]


def test_globs_several_paths_and_bases_are_one_input(spark: SparkSession, tmp_path: Path) -> None:
    for base, day in (("x", 1), ("x", 2), ("y", 3)):
        write(tmp_path / f"{base}/day={day}/f.parquet", {"n": [day * 10]})
    assert rows(read(spark, tmp_path / "x", tmp_path / "y")) == [(10, 1), (20, 2), (30, 3)]
    assert rows(read(spark, tmp_path / "x/day=[12]")) == [(10, 1), (20, 2)]
    assert rows(read(spark, tmp_path / "?/day=*/*.parquet")) == [(10, 1), (20, 2), (30, 3)]
    assert rows(read(spark, tmp_path / "x/day=1")) == [(10,)]
    assert rows(
        read(
            spark,
            tmp_path / "x/day=1",
            tmp_path / "x/day=*/f.parquet",
            options={"basePath": str(tmp_path / "x")},
        )
    ) == [(10, 1), (20, 2)]


def test_markers_are_skipped(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).coalesce(1).write.parquet(str(tmp_path / "out"))
    assert (tmp_path / "out/_SUCCESS").exists()
    assert rows(read(spark, tmp_path / "out")) == [(0,), (1,), (2,)]


def test_json(spark: SparkSession, tmp_path: Path) -> None:
    for zip_code, text in (("007", '{"a": 1}\n'), ("8", '{"a": 2, "b": "x"}\n')):
        (tmp_path / f"zip={zip_code}").mkdir()
        (tmp_path / f"zip={zip_code}/f.json").write_text(text)
    df = read(spark, tmp_path)
    assert df.dtypes == [("a", "bigint"), ("b", "string"), ("zip", "string")]
    assert rows(df) == [(1, None, "007"), (2, "x", "8")]
    (tmp_path / "empty.json").touch()
    with pytest.raises(PathEmptyError, match="--input-schema"):
        read(spark, tmp_path / "empty.json")
    (tmp_path / "empty.json").unlink()
    assert rows(read(spark, tmp_path, schema="b STRING, zip INT")) == [("x", 8), (None, 7)]


def test_json_that_is_malformed_stops_or_is_dropped_whatever_is_selected(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "f.json").write_text('{"a": 1, "b": 1}\n{"a": 2, "b": "x"}\n{"a": 3\n')
    with pytest.raises(Exception, match="MALFORMED_RECORD"):
        read(spark, tmp_path, schema="a INT, b INT").collect()
    df = read(spark, tmp_path, schema="a INT, b INT", options={"mode": "DROPMALFORMED"})
    assert [df.count(), rows(df.select("a")), rows(df)] == [1, [(1,)], [(1, 1)]]


def test_text(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "day=2013-01-01").mkdir()
    (tmp_path / "day=2013-01-01/a.txt").write_text("to be, or\n\nnot\n")
    assert rows(read(spark, tmp_path)) == sorted(
        [(text, date(2013, 1, 1)) for text in ("to be, or", "", "not")], key=repr
    )
    with pytest.raises(ColumnMissingError, match="line"):
        read(spark, tmp_path, schema="line STRING")


def test_tables_and_the_nearest_names(spark: SparkSession) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS input_db")
    try:
        spark.sql("CREATE TABLE input_db.flights USING parquet AS SELECT '5' AS n, 'x' AS s")
        assert rows(read(spark, "table:input_db.flights")) == [("5", "x")]
        assert rows(read(spark, "table:input_db.flights", schema="n INT")) == [(5,)]
        with pytest.raises(ColumnMissingError, match="absent"):
            read(spark, "table:input_db.flights", schema="absent INT")
        for name, near in (
            ("input_db.fligths", "input_db.flights"),
            ("input_dbs.flights", "input_db.flights"),
        ):
            with pytest.raises(PathAbsentError, match=f"did you mean `{near}`"):
                read(spark, f"table:{name}")
    finally:
        spark.sql("DROP DATABASE input_db CASCADE")


def test_an_unlisted_input_is_read_by_the_engine_alone(spark: SparkSession, tmp_path: Path) -> None:
    from common.engine.listing import Listing

    (tmp_path / "a b.csv").write_text("zip,n\n007,1\n")
    request = InputRequest("input", (f"file://{tmp_path}/*.csv",), schema="n INT, zip STRING")
    df = read_input(spark, Listing(request, "csv", is_listed=False))
    assert rows(df) == [(1, "007")]
    with pytest.raises(FormatError, match="--input-format"):
        read_input(spark, Listing(request, "auto", is_listed=False))


def test_a_sample_by_the_engine(spark: SparkSession) -> None:
    df = spark.sql("SELECT * FROM VALUES ('a', 1), ('a', 1), (NULL, 2), ('a', 3) AS t(k, n)").coalesce(1)
    assert sampled_facts(df, ["K"]) == KeySample(("K",), 4, 2, "a", 0.75, (3, 1), 1, 0.25, ((("a",), 3),))
    assert sampled_facts(df, ["k", "n"]) == KeySample(
        ("k", "n"), 4, 3, "a, 1", 0.5, (2, 1, 1), 2, 0.25, ((("a", "1"), 2),)
    )
    assert sampled_facts(df, ["k"], row_limit=2) == KeySample(
        ("k",), 2, 1, "a", 1.0, (2,), 0, top_keys=((("a",), 2),), is_clustered=True
    )
    assert sampled_facts(df.where("n > 5"), ["k"]) is None
    with pytest.raises(ColumnMissingError):
        sampled_facts(df, ["absent"])


def test_what_is_read_stays_lazy(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "f.parquet", {"n": [1]})
    df = read(spark, tmp_path)
    shutil.rmtree(tmp_path)
    with pytest.raises(Exception, match=r"f\.parquet|does not exist|FILE_NOT_EXIST"):
        df.collect()
