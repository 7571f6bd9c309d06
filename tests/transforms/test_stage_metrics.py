"""What Spark's status store tells of stages; the pages of this session are off."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from common.engine import stage_metrics
from common.engine.local_session import ClassicEngine
from common.engine.stage_metrics import StageTasks, stage_mark, stages_since, task_seconds
from common.runs.levels import stages_recorded
from common.runs.record import RunRecord, load_record


@pytest.fixture
def not_adaptive(spark: SparkSession) -> Iterator[None]:
    """As many tasks as the plan says."""
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    yield
    spark.conf.unset("spark.sql.adaptive.enabled")


def consume(df: DataFrame) -> None:
    df.write.format("noop").mode("overwrite").save()


def stages_of(spark: SparkSession, df: DataFrame) -> tuple[StageTasks, ...]:
    mark = stage_mark(spark)
    consume(df)
    stages = stages_since(spark, mark)
    assert stages is not None
    return stages


def skewed(spark: SparkSession) -> DataFrame:
    """A thousand rows in four partitions: 900 of one key, 60 and 40 of two others."""
    key = F.when(F.col("id") < 900, "a").when(F.col("id") < 960, "b").otherwise("c")
    return spark.range(0, 1000, 1, 4).select(key.alias("key"), "id")


@pytest.mark.usefixtures("not_adaptive")
def test_tasks_and_rows_of_a_shuffle(spark: SparkSession) -> None:
    written, read = stages_of(spark, skewed(spark).repartition(64, "key"))
    assert (written.task_count, len(written.task_seconds)) == (4, 4)
    assert (written.shuffle_read_rows, written.shuffle_read_bytes) == ((0,) * 4, (0,) * 4)
    assert (read.task_count, len(read.task_seconds)) == (64, 64)
    # Of 64 tasks three have rows, unless two keys meet in one.
    rows = sorted(count for count in read.shuffle_read_rows if count)
    assert rows in ([40, 60, 900], [100, 900], [60, 940], [40, 960])
    assert sum(read.shuffle_read_bytes) == written.shuffle_write_bytes > 1000
    assert sorted(zip(read.shuffle_read_rows, read.shuffle_read_bytes, strict=True)) == sorted(
        zip(sorted(read.shuffle_read_rows), sorted(read.shuffle_read_bytes), strict=True)
    ), "rows and bytes stand beside each other"
    assert (written.failed_tasks, read.failed_tasks, read.shuffle_write_bytes) == (0, 0, 0)
    assert read.stage_id > written.stage_id
    assert written.cpu_seconds > 0


def test_the_task_that_sleeps_is_seen(spark: SparkSession) -> None:
    def slowly(batches: Iterator[object]) -> Iterator[object]:
        for batch in batches:
            if min(batch.column("id").to_pylist()) == 0:  # type: ignore[attr-defined]
                time.sleep(0.7)
            yield batch

    mark = stage_mark(spark)
    consume(spark.range(0, 40, 1, 4).mapInArrow(slowly, "id long"))
    (seconds,) = task_seconds(spark, mark).values()
    assert len(seconds) == 4
    assert seconds[0] >= 0.7, "a task cannot take less than it slept"


def test_marks_separate_what_ran(spark: SparkSession) -> None:
    before = stage_mark(spark)
    consume(spark.range(0, 10, 1, 2))
    between = stage_mark(spark)
    consume(spark.range(0, 10, 1, 5))
    after = stage_mark(spark)
    counts = [[it.task_count for it in stages_since(spark, mark) or ()] for mark in (before, between, after)]
    assert counts == [[2, 5], [5], []]


def test_a_broadcast_in_another_thread_counts(spark: SparkSession) -> None:
    few = spark.range(0, 30, 1, 7).withColumn("other", F.col("id") * 2)
    stages = stages_of(spark, spark.range(0, 10, 1, 2).join(F.broadcast(few), "id"))
    assert sorted(it.task_count for it in stages) == [2, 7]


def test_the_runs_own_words_name_a_stage(spark: SparkSession) -> None:
    spark.sparkContext.setJobDescription("skew-join: salt")
    try:
        (stage,) = stages_of(spark, spark.range(1))
    finally:
        spark.sparkContext.setJobDescription(None)  # type: ignore[arg-type]
    assert stage.name == "skew-join: salt"


def test_bytes_of_files(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lines.csv").write_text("1234567\n" * 1000)
    (stage,) = stages_of(spark, spark.read.schema("n int").csv(str(tmp_path)))
    assert stage.input_bytes == 8000


def test_a_task_that_fails_is_counted_and_has_no_time(spark: SparkSession) -> None:
    mark = stage_mark(spark)
    wrong = F.when(F.col("id") == 3, F.raise_error(F.lit("planted"))).otherwise("fine")
    with pytest.raises(Exception, match="planted"):
        consume(spark.range(0, 4, 1, 4).select(wrong))
    (stage,) = stages_since(spark, mark) or ()
    assert (stage.task_count, stage.failed_tasks) == (4, 1)
    assert len(stage.task_seconds) <= 3, "those beside it may have been stopped"


def test_what_spark_does_not_have_is_no_failure(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mark = stage_mark(spark)
    consume(spark.range(1))
    monkeypatch.setattr(stage_metrics, "_GETTERS", ("aMetricOfSomeOtherRelease",))
    with caplog.at_level(logging.DEBUG, "saltpan.engine"):
        assert stages_since(spark, mark) is None
    assert [it.getMessage().partition(":")[0] for it in caplog.records] == ["no evidence of stages"]
    assert stages_since(spark, None) is None
    assert task_seconds(spark, mark) == {}


@pytest.mark.usefixtures("not_adaptive")
def test_a_run_records_the_stages_of_its_answer_only(spark: SparkSession, tmp_path: Path) -> None:
    record = RunRecord.start("skew-join", runs_dir=tmp_path)
    skewed(spark).collect()
    with stages_recorded(ClassicEngine(spark, "existing"), record):
        consume(skewed(spark).repartition(3, "key"))
    skewed(spark).count()
    content = load_record(record.finish())
    assert [it["tasks"] for it in content["stages"]] == [4, 3]
    assert content["stages"][1]["shuffle_bytes"]["total"] == content["stages"][0]["shuffle_write_bytes"]
    assert list(content["replayed_seconds"]) == ["2", "16", "100"]
    work = sum(it["seconds"]["total"] for it in content["stages"])
    longest = sum(it["seconds"]["max"] for it in content["stages"])
    replayed = content["replayed_seconds"]
    assert longest <= replayed["2"] + 0.001 <= work + 0.002
    assert replayed["100"] == pytest.approx(longest, abs=0.001), "as many cores as tasks"
