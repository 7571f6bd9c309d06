"""Counters on one frame after another: what Spark observes wrongly comes out right. 100 rows sum to 4,950."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from common.core.errors import ColumnTypeError, NotRunError, ParameterError
from common.engine.counted_rows import RowCounters, python_counters
from common.engine.counters import Counters
from common.engine.task_counters import TaskCounters
from common.runs.aftermath import settle
from common.runs.job import Counted, Job
from common.runs.record import RunRecord
from common.settings.job import JobSettings
from common.transforms.counters import Counter
from common.transforms.tallies import Tally

DECLARED = (Counter("rows"), Counter("even", "count", "id % 2 = 0"), Counter("total", "sum", "id"))
RIGHT = {"rows": 100, "even": 50, "total": 4950}
Use = Callable[[DataFrame], Any]


def shuffled(spark: SparkSession) -> DataFrame:
    return spark.range(0, 100, 1, 4).repartition(3, "id")


def never(df: DataFrame) -> None:
    """Nothing runs."""


# How a counted frame is used; how often Spark has observed each row: None where it has not observed at all.
USES: list[tuple[str, Use, float | None]] = [
    ("once", lambda df: df.count(), 1),
    ("twice", lambda df: (df.count(), df.count()), 1),
    ("sorted", lambda df: df.orderBy("id").collect(), 2),
    ("joined with itself", lambda df: df.join(df.withColumnRenamed("id", "i"), F.expr("id = i")).count(), 1),
    ("left out", lambda df: df.where("false").count(), None),
    ("a subquery", lambda df: df.sparkSession.range(1).where(df.agg(F.max("id")).scalar() > 0).count(), None),
]


@pytest.mark.parametrize(("_what", "use", "times"), USES, ids=[what for what, _, _ in USES])
def test_sql_counters_are_right_however_the_frame_is_used(
    spark: SparkSession, _what: str, use: Use, times: float | None
) -> None:
    counters = Counters(*DECLARED)
    use(counters.attach(shuffled(spark)))
    reading = counters.settle()
    assert reading.values == RIGHT
    naive = {name: None if times is None else value * times for name, value in RIGHT.items()}
    assert reading.naive == naive
    assert bool(reading.why) == (times != 1)
    assert counters.read() == reading


def test_a_part_of_the_rows_is_counted_anew_when_the_run_knows_of_it(spark: SparkSession) -> None:
    counters = Counters(*DECLARED)
    answer = counters.attach(spark.range(0, 100, 1, 4))
    assert len(answer.take(30)) == 30
    part = counters.read().values["rows"]
    assert 30 <= part < 100
    counters.distrust("the first rows were read")
    with pytest.raises(NotRunError, match="got the first rows were read"):
        counters.read()
    assert counters.settle().values == RIGHT
    assert counters.settle().differing["rows"] == {
        "naive": part,
        "added": part - 100,
        "why": "the first rows were read",
    }


def test_before_the_action_they_say_not_run(spark: SparkSession) -> None:
    sql, tasks, rows = Counters(*DECLARED), TaskCounters(spark, Counter("rows")), RowCounters(Counter("rows"))
    frame, passing = shuffled(spark), passing_rows()
    for counters in (sql, tasks, rows):
        with pytest.raises(NotRunError, match=r"COUNTER_NOT_RUN.*got not run.*run the action first"):
            counters.value("rows")
    answer = rows.map_in_arrow(tasks.map_in_arrow(sql.attach(frame), passing, frame.schema), passing, IDS)
    for counters in (sql, tasks, rows):
        with pytest.raises(NotRunError, match="got not run"):
            counters.read()
    assert answer.count() == 100
    assert [counters.value("rows") for counters in (sql, tasks, rows)] == [100, 100, 100]
    for taken in (lambda: sql.attach(frame), lambda: rows.map_in_arrow(frame, passing, IDS)):
        with pytest.raises(ParameterError, match="got those of a frame"):
            taken()


def test_kinds_and_types(spark: SparkSession) -> None:
    rows = [
        (1, "2.50", date(2026, 1, 3), "a"),
        (None, "0.25", None, "a"),
        (2**62, "-1.00", date(2025, 7, 1), None),
    ]
    frame = spark.createDataFrame(rows, "n BIGINT, text STRING, day DATE, word STRING").repartition(2)
    counters = Counters(
        Counter("whole", "sum", F.col("n") * F.lit(1)),
        Counter("money", "sum", "CAST(text AS DECIMAL(10, 2))"),
        Counter("first_day", "min", "day"),
        Counter("last_word", "max", F.col("word")),
        Counter("words", "distinct", "word"),
        Counter("no_word", "count", "word IS NULL"),
    )
    counted = counters.attach(frame)
    assert counted.columns == frame.columns
    assert sorted(map(str, counted.collect())) == sorted(map(str, frame.collect()))
    assert counters.read().values == {
        "whole": 2**62 + 1,
        "money": Decimal("1.75"),
        "first_day": date(2025, 7, 1),
        "last_word": "a",
        "words": 1,
        "no_word": 1,
    }
    of_none = Counters(*DECLARED, Counter("least", "min", "id"))
    of_none.attach(spark.range(5).where("id > 9")).collect()
    assert of_none.read().values == {"rows": 0, "even": 0, "total": 0, "least": None}
    with pytest.raises(ColumnTypeError, match="whose sum is exact, got double"):
        Counters(Counter("total", "sum", "n / 2")).attach(frame)
    with pytest.raises(ParameterError, match="an expression whose max is counted"):
        Counters(Counter("most", "max")).attach(frame)


IDS = StructType([StructField("id", LongType())])


def passing_rows() -> Any:
    """A function of its own, since workers cannot import this module."""

    def passing(batches: Iterator[pa.RecordBatch], tally: Tally) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            tally.add("rows", batch.num_rows)
            yield batch

    return passing


def test_python_counters_by_rows_leave_the_answer_alone(spark: SparkSession) -> None:
    """What Connect uses; on classic Spark the same."""
    assert isinstance(python_counters(spark, Counter("rows")), TaskCounters)
    with patch("common.engine.counted_rows.is_connect", return_value=True):
        counters = python_counters(spark, Counter("rows"), Counter("batches", "max"))
    assert isinstance(counters, RowCounters)

    def odd(batches: Iterator[pa.RecordBatch], tally: Tally) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            tally.add("rows", batch.num_rows)
            kept = [number for number in batch.column(0).to_pylist() if number % 2 and number < 50]
            if kept:
                yield pa.RecordBatch.from_pydict({"id": kept})

    frame = spark.range(0, 100, 1, 5)  # of the last two parts nothing is kept
    answer = counters.map_in_arrow(frame.union(frame), odd, IDS)
    assert answer.columns == ["id"]
    assert sorted(row[0] for row in answer.orderBy("id").collect()) == sorted([*range(1, 50, 2)] * 2)
    assert counters.read().values["rows"] == 200


def test_python_counters_count_a_frame_once_that_a_plan_has_twice(spark: SparkSession) -> None:
    tasks, rows = TaskCounters(spark, Counter("rows")), RowCounters(Counter("rows"))
    passing = passing_rows()
    counted = rows.map_in_arrow(tasks.map_in_arrow(spark.range(0, 100, 1, 4), passing, IDS), passing, IDS)
    assert counted.union(counted).count() == 200
    assert [tasks.read().values["rows"], tasks.read().naive["rows"]] == [100, 200]
    assert rows.settle().values == {"rows": 100}
    assert counted.where("id < 10").count() == 10
    assert [tasks.read().values["rows"], tasks.read().naive["rows"]] == [100, 300]
    assert tasks.read().why == "1 earlier action ran the same rows"


def test_a_pruned_or_repeated_column_of_python_does_not_change_the_numbers(spark: SparkSession) -> None:
    """Cases e1 and e6: the answer, what a plain accumulator in a UDF says, and both kinds of counters."""
    frame, passing = spark.range(1, 5, 1, 2), passing_rows()
    plain = spark.sparkContext.accumulator(0)

    @F.udf("bigint", useArrow=False)
    def increased(number: int) -> int:
        plain.add(1)
        return number + 1

    def counted(use: Use) -> list[Any]:
        tasks, sql = TaskCounters(spark, Counter("rows")), Counters(Counter("rows"))
        rows = tasks.map_in_arrow(frame, passing, IDS)
        before = plain.value
        answer = use(sql.attach(rows.withColumn("more", increased("id"))))
        return [answer, plain.value - before, tasks.value("rows"), sql.settle().values["rows"]]

    assert counted(lambda df: df.count()) == [4, 0, 4, 4]
    assert counted(lambda df: df.count() + df.count()) == [8, 0, 4, 4]
    assert counted(lambda df: df.select("more").where("more > 2").count()) == [3, 4, 4, 4]


class Counting(Job[JobSettings]):
    """A job whose counters the tests read."""

    settings = JobSettings


def test_a_run_records_right_numbers_and_the_naive_ones_beside(spark: SparkSession, tmp_path: Any) -> None:
    record = RunRecord.start("counting", runs_dir=tmp_path)
    counters = Counters(*DECLARED, Counter("last", "max", "DATE'2026-01-01' + INT(id)"))
    answer = counters.attach(shuffled(spark)).orderBy("id")
    answer.collect()
    found = settle(Counting(), Counted(answer, counters), JobSettings(), record)
    assert found == {**RIGHT, "last": date(2026, 4, 10)}
    assert record.counters == {**RIGHT, "last": "2026-04-10"}
    why = "3 partitions were read 6 times"
    assert record.miscounted == {
        "rows": {"naive": 200, "added": 100, "why": why},
        "even": {"naive": 100, "added": 50, "why": why},
        "total": {"naive": 9900, "added": 4950, "why": why},
    }
    record.finish()


def test_an_observation_that_spark_has_left_out_does_not_fail_the_run(
    spark: SparkSession, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    record, seen = RunRecord.start("counting", runs_dir=tmp_path), Observation()
    answer = shuffled(spark).observe(seen, F.count(F.lit(1)).alias("rows")).where("false")
    assert answer.count() == 0
    with caplog.at_level("WARNING", logger="saltpan.run"):
        assert settle(Counting(), Counted(answer, seen), JobSettings(), record) == {}
    assert "not counted" in caplog.text
    apart = Counted(answer, seen, counts=spark.range(1).selectExpr("100 AS rows"))
    assert settle(Counting(), apart, JobSettings(), record) == {"rows": 100}
