"""Real errors of a real Spark, each as the suite says it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from common.core.errors import (
    ColumnMissingError,
    ColumnTypeError,
    ConfigurationError,
    EngineError,
    FileCorruptError,
    InstallationError,
    OutputExistsError,
    OutputUnwritableError,
    PathAbsentError,
    PathEmptyError,
    SchemaConflictError,
    SqlError,
    SuiteError,
    UnknownNameError,
    UsageError,
    ValueMalformedError,
)
from common.engine.failures import translated

Leaf = TypeVar("Leaf", bound=SuiteError)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    made = spark.createDataFrame([(1, "a", 0), (2, "b", 1)], "zip INT, name STRING, zero INT")
    made.createOrReplaceTempView("failures_rows")
    return made


def failure(kind: type[Leaf], action: Callable[[], object]) -> Leaf:
    with pytest.raises(kind) as caught, translated():
        action()
    assert type(caught.value) is kind
    text = str(caught.value)
    assert "\n" not in text
    assert "\tat " not in text
    assert "SQLSTATE" not in text
    return caught.value


def test_sql_that_does_not_parse(spark: SparkSession) -> None:
    error = failure(SqlError, lambda: spark.sql("select 1\nfrom )"))
    assert "syntax error at or near" in error.got
    assert "line 2, position" in error.got
    error = failure(SqlError, lambda: spark.read.schema("a INTT").csv("x"))
    assert (error.name, error.got) == ("a INTT", 'unsupported data type "INTT" at line 1, position 3')


def test_a_column_that_is_not_there(rows: DataFrame) -> None:
    error = failure(ColumnMissingError, lambda: rows.select("nam"))
    assert (error.name, error.hint) == ("nam", "did you mean `name`")
    error = failure(ColumnMissingError, lambda: rows.select("quite_other"))
    shown = (error.hint or "").removeprefix("there are ").split(", ")
    assert sorted(shown) == ["`name`", "`zero`", "`zip`"]


def test_a_function_that_is_not_there(rows: DataFrame) -> None:
    error = failure(SqlError, lambda: rows.select(F.expr("counnt(*)")))
    assert error.name == "counnt"
    assert (error.hint or "").startswith("did you mean `count`")


@pytest.mark.parametrize(
    ("action", "part"),
    [
        (lambda df: df.groupBy("zip").agg(F.expr("name")), "not participating in the GROUP BY"),
        (lambda df: df.sparkSession.sql("select zip, count(*) from failures_rows"), "GROUP BY"),
        (lambda df: df.where("count(*) > 1"), "contains invalid expressions: count(1)"),
        (lambda df: df.agg(F.expr("sum(count(*))")), "aggregate function in the argument of another"),
        (lambda df: df.where("zip + 1"), "is not a boolean"),
        (lambda df: df.join(df, df["zip"] == df["zip"]).select("name"), "ambiguous"),
        (lambda df: df.select(F.expr("rank()")), "OVER"),
    ],
)
def test_sql_that_does_not_fit_its_place(
    rows: DataFrame, action: Callable[[DataFrame], object], part: str
) -> None:
    assert part in str(failure(SqlError, lambda: action(rows)))


def test_types_that_do_not_fit(rows: DataFrame) -> None:
    error = failure(ColumnTypeError, lambda: rows.select(F.expr("array(1) + name")))
    assert error.name == "(array(1) + name)"
    assert "ARRAY<INT> and STRING" in error.got
    failure(ColumnTypeError, lambda: rows.select(F.expr("sum(array(1))")))


@pytest.mark.parametrize(
    ("expression", "name", "part"),
    [
        ("cast(concat('x', name) as int)", None, "try_cast"),
        ("cast(3000000000 + zip as int)", None, "try_cast"),
        ("zip / zero", "zip / zero", "try_divide"),
        ("zip % zero", "zip % zero", "expected a divisor other than 0, got 0"),
        ("cast(2147483647 as int) + zip", "cast(2147483647 as int) + zip", "try_add"),
        ("cast(10.34 + zip as decimal(5, 4))", "cast(10.34 + zip as decimal(5, 4))", "as Decimal(5, 4)"),
        ("to_timestamp(name, 'yyyy')", None, "try_to_timestamp"),
        ("to_date(name)", None, "expected DATE"),
        ("array(1)[zip + 3]", "array(1)[zip + 3]", "get(…) gives NULL there"),
        ("map(name, 1, name, 2)", None, "duplicate map key"),
        ("raise_error('not today')", None, "not today"),
    ],
)
def test_values_that_stop_a_query(rows: DataFrame, expression: str, name: str | None, part: str) -> None:
    shuffled = rows.repartition(2).select(F.expr(expression).alias("x"))
    error = failure(ValueMalformedError, shuffled.collect)
    assert part in str(error)
    assert name is None or error.name == name


def test_the_value_that_does_not_cast_is_named(rows: DataFrame) -> None:
    error = failure(ValueMalformedError, lambda: rows.where("zip = 2").select(F.expr("int(name)")).collect())
    assert (error.name, error.expected) == ("b", "INT")
    assert "int(name)" in error.got


def test_records_that_do_not_parse(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a b.csv"
    path.write_text("1,2\nx,3\n")
    read = spark.read.schema("a INT, b INT").option("mode", "FAILFAST").csv(str(path))
    error = failure(ValueMalformedError, read.collect)
    assert (error.name, error.got) == (str(path), "[null,3]")
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}\n{"a": \n')
    error = failure(
        ValueMalformedError, spark.read.schema("a INT").option("mode", "FAILFAST").json(str(path)).collect
    )
    assert error.name == str(path)


def test_options_that_the_format_cannot_take(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1\n")
    error = failure(UsageError, spark.read.schema("a INT").option("sep", "").csv(str(path)).collect)
    assert "Delimiter cannot be empty" in error.got


def parquet_file(folder: Path) -> Path:
    return next(folder.glob("*.parquet"))


@pytest.mark.parametrize("declared", [True, False])
def test_a_cut_parquet_file(spark: SparkSession, rows: DataFrame, tmp_path: Path, declared: bool) -> None:
    rows.coalesce(1).write.parquet(str(tmp_path / "whole"))
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(parquet_file(tmp_path / "whole").read_bytes()[:-20])
    reader = spark.read.schema(rows.schema) if declared else spark.read
    error = failure(FileCorruptError, lambda: reader.parquet(str(cut)).collect())
    assert error.name == str(cut)
    assert "is not a Parquet file" in error.got


def test_a_damaged_parquet_page(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(20_000).select(F.md5(F.col("id").cast("string")).alias("m")).coalesce(1).write.parquet(
        str(tmp_path / "whole")
    )
    content = bytearray(parquet_file(tmp_path / "whole").read_bytes())
    for position in range(4, 2_000):
        content[position] ^= 0x5A
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(bytes(content))
    error = failure(FileCorruptError, lambda: spark.read.parquet(str(bad)).agg(F.max("m")).collect())
    assert error.name == str(bad)


def test_a_cut_gzip_file_and_one_that_is_none(spark: SparkSession, tmp_path: Path) -> None:
    whole = gzip.compress("\n".join(str(number * 7919 % 100_003) for number in range(20_000)).encode())
    for name, content in (("cut.csv.gz", whole[: len(whole) // 2]), ("none.csv.gz", b"1\n2\n")):
        (tmp_path / name).write_bytes(content)
        read = spark.read.schema("a INT").csv(str(tmp_path / name)).agg(F.sum("a"))
        assert failure(FileCorruptError, read.collect).name == str(tmp_path / name)


def test_files_that_are_no_orc(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x.orc").write_text("nothing of the kind")
    error = failure(FileCorruptError, lambda: spark.read.orc(str(tmp_path / "x.orc")))
    assert error.name == str(tmp_path / "x.orc")


def test_paths_that_are_not_there(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    error = failure(PathAbsentError, lambda: spark.read.parquet(str(tmp_path / "nope")))
    assert error.name == str(tmp_path / "nope")
    rows.coalesce(1).write.parquet(str(tmp_path / "gone"))
    read = spark.read.parquet(str(tmp_path / "gone"))
    gone = parquet_file(tmp_path / "gone")
    gone.unlink()
    error = failure(PathAbsentError, read.collect)
    assert error.name == str(gone)
    (tmp_path / "empty").mkdir()
    failure(PathEmptyError, lambda: spark.read.parquet(str(tmp_path / "empty")))


def test_types_that_differ_between_files(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    rows.coalesce(1).write.parquet(str(tmp_path / "p"))
    error = failure(SchemaConflictError, spark.read.schema("zip STRING").parquet(str(tmp_path / "p")).collect)
    assert error.name == str(parquet_file(tmp_path / "p"))
    assert (error.expected, error.got) == ("`zip` as string", "INT32")
    rows.select("zip").write.parquet(str(tmp_path / "m" / "x=1"))
    rows.select(F.col("name").alias("zip")).write.parquet(str(tmp_path / "m" / "x=2"))
    merged = spark.read.option("mergeSchema", "true")
    error = failure(SchemaConflictError, lambda: merged.parquet(str(tmp_path / "m")))
    assert sorted(error.got.split(" and ")) == ["INT", "STRING"]


def test_names_of_the_catalog_of_formats_and_of_keys(spark: SparkSession, tmp_path: Path) -> None:
    assert failure(PathAbsentError, lambda: spark.table("some.nope")).name == "some.nope"
    assert failure(UnknownNameError, lambda: spark.read.format("foo").load(str(tmp_path))).name == "foo"
    error = failure(ConfigurationError, lambda: spark.conf.set("spark.sql.shuffle.partitions", "abc"))
    assert error.name == "spark.sql.shuffle.partitions"
    error = failure(ConfigurationError, lambda: spark.conf.set("spark.sql.warehouse.dir", "abc"))
    assert error.name == "spark.sql.warehouse.dir"


def test_outputs_that_exist_or_cannot_be_written(rows: DataFrame, tmp_path: Path) -> None:
    rows.write.parquet(str(tmp_path / "out"))
    error = failure(OutputExistsError, lambda: rows.write.parquet(str(tmp_path / "out")))
    assert error.name == str(tmp_path / "out")
    (tmp_path / "file").touch()
    error_of_folder = failure(OutputUnwritableError, lambda: rows.write.parquet(str(tmp_path / "file" / "x")))
    assert error_of_folder.name.startswith(str(tmp_path / "file"))


def test_a_bad_value_while_writing_is_told_as_such(rows: DataFrame, tmp_path: Path) -> None:
    bad = rows.select(F.expr("cast(name as int) as n"))
    assert failure(ValueMalformedError, lambda: bad.write.parquet(str(tmp_path / "o"))).name in {"a", "b"}


def test_python_functions_that_raise(spark: SparkSession, rows: DataFrame) -> None:
    def broken(value: int) -> int:
        raise ValueError(f"no {value}\nand more")

    error = failure(EngineError, rows.where("zip = 1").select(F.udf(broken, useArrow=False)("zip")).collect)
    assert error.got == "ValueError: no 1"
    assert error.name.startswith("broken (test_failures.py:")
    error = failure(EngineError, spark.sparkContext.parallelize([1], 1).map(broken).collect)
    assert error.got == "ValueError: no 1"


def test_a_module_that_workers_do_not_have(rows: DataFrame) -> None:
    def lacking(value: int) -> int:
        import no_such_module_anywhere  # type: ignore[import-not-found]

        return int(no_such_module_anywhere.f(value))

    assert (
        failure(InstallationError, rows.select(F.udf(lacking, useArrow=False)("zip")).collect).name
        == "no_such_module_anywhere"
    )


def test_a_worker_that_dies(rows: DataFrame) -> None:
    def die(value: int) -> int:
        import os

        os._exit(3)

    assert (
        failure(EngineError, rows.select(F.udf(die, useArrow=False)("zip")).collect).what == "Python worker"
    )


def test_the_suites_own_errors_come_back_from_workers(rows: DataFrame) -> None:
    def refuse(value: int) -> int:
        raise OfTheSuite

    class OfTheSuite(Exception):  # noqa: N818
        """Travels by value, so the worker needs no package of ours."""

        def __str__(self) -> str:
            return "[VALUE_MALFORMED] zip `1`: expected five digits, got one. Hint: pad it."

    error = failure(ValueMalformedError, rows.select(F.udf(refuse, useArrow=False)("zip")).collect)
    assert (error.what, error.name, error.expected, error.got) == ("zip", "1", "five digits", "one")
    assert error.hint == "pad it"


def test_a_job_that_is_cancelled(spark: SparkSession) -> None:
    started = threading.Event()

    def cancel() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not started.wait(0.05):
            if tracker.getActiveStageIds():
                spark.sparkContext.cancelAllJobs()
                return

    thread = threading.Thread(target=cancel)
    thread.start()
    slow = spark.range(2, numPartitions=2).select(F.udf(lambda value: __import__("time").sleep(30))("id"))
    error = failure(EngineError, slow.collect)
    started.set()
    thread.join(10)
    assert error.what == "Spark job"
    assert "cancelled" in error.got
