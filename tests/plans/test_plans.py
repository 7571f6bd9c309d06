"""What Spark really plans, read back as data."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from common.engine.plans import Join, read_plan


@pytest.fixture(scope="module")
def facts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    place = str(tmp_path_factory.mktemp("plans") / "facts")
    rows = spark.range(60).select((F.col("id") % 5).alias("k"), F.col("id").alias("v"), F.lit("x").alias("p"))
    rows.write.partitionBy("p").parquet(place)
    return spark.read.parquet(place)


@pytest.fixture(scope="module")
def names(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    place = str(tmp_path_factory.mktemp("plans") / "names")
    spark.range(60).select((F.col("id") % 5).alias("k"), F.lit("n").alias("n")).write.csv(place)
    return spark.read.schema("k BIGINT, n STRING").csv(place)


def test_filters_that_reach_the_files(facts: DataFrame) -> None:
    (scan,) = read_plan(facts.where("k > 3 and p = 'x' and v in (1, 2)").select("v")).scans
    assert scan.source == "parquet"
    assert "GreaterThan(k,3)" in scan.pushed_filters
    assert "In(v, [1,2])" in scan.pushed_filters
    assert any("= x)" in condition for condition in scan.partition_filters)
    assert scan.read_schema == "struct<k:bigint,v:bigint>"


def test_an_aggregation_shuffles_once_and_a_global_order_once_more(facts: DataFrame) -> None:
    plan = read_plan(facts.groupBy("k").count().orderBy("k"))
    assert (len(plan.exchanges), len(plan.sorts), plan.python_nodes) == (2, 1, ())
    assert plan.summary() == "2 shuffles, 1 sort, no Python"


def test_the_first_rows_of_an_order_need_no_shuffle(facts: DataFrame) -> None:
    plan = read_plan(facts.orderBy("v").limit(3))
    assert (plan.exchanges, plan.sorts) == ((), ())
    assert plan.nodes[0].name == "TakeOrderedAndProject"


@pytest.mark.parametrize(
    ("hint", "how", "expected"),
    [
        ("broadcast", "inner", Join("BroadcastHashJoin", "Inner")),
        ("broadcast", "left", Join("BroadcastHashJoin", "LeftOuter")),
        ("merge", "left_anti", Join("SortMergeJoin", "LeftAnti")),
        ("merge", "full", Join("SortMergeJoin", "FullOuter")),
        ("shuffle_hash", "left_semi", Join("ShuffledHashJoin", "LeftSemi")),
    ],
)
def test_joins_by_strategy_and_type(
    facts: DataFrame, names: DataFrame, hint: str, how: str, expected: Join
) -> None:
    plan = read_plan(facts.join(names.hint(hint), "k", how))
    assert plan.joins == (expected,)
    assert len(plan.broadcasts) == (1 if hint == "broadcast" else 0)
    assert len(plan.exchanges) == (0 if hint == "broadcast" else 2)
    assert not plan.has_cartesian


def test_a_join_of_all_with_all(facts: DataFrame, names: DataFrame) -> None:
    plan = read_plan(facts.crossJoin(names.hint("shuffle_replicate_nl")))
    assert plan.has_cartesian
    plan = read_plan(facts.join(names.hint("broadcast"), facts["k"] < names["k"], "left"))
    assert plan.joins == (Join("BroadcastNestedLoopJoin", "LeftOuter"),)
    assert not plan.has_cartesian


def test_a_window_is_one_shuffle_and_a_sort(facts: DataFrame) -> None:
    ranked = facts.withColumn("r", F.row_number().over(Window.partitionBy("k").orderBy("v")))
    plan = read_plan(ranked)
    assert (len(plan.exchanges), len(plan.sorts), len(plan.windows)) == (1, 1, 1)


def test_python_is_seen(facts: DataFrame) -> None:
    plain = F.udf(lambda value: value, "long")
    plan = read_plan(facts.select(plain("k").alias("k"), "v").mapInArrow(lambda rows: rows, "k long, v long"))
    # Since 4.2 plain functions travel by Arrow as well.
    names = sorted(node.name for node in plan.python_nodes)
    assert names in (["BatchEvalPython", "MapInArrow"], ["ArrowEvalPython", "MapInArrow"])


def test_line_breaks_and_plan_like_text_in_literals_are_text(facts: DataFrame) -> None:
    value = "a\n(1) Scan parquet\n+- Sort (2)\n\n+- Exchange (9)"
    plan = read_plan(facts.where(F.concat(F.col("k"), F.lit("")) == F.lit(value)).select("v"))
    assert (plan.exchanges, plan.sorts) == ((), ())
    assert len(plan.scans) == 1
    assert plan.summary() == "no shuffle, no Python"


def test_wide_rows_are_not_cut(spark: SparkSession, tmp_path: Path) -> None:
    columns = [f"column_{number:03}" for number in range(120)]
    spark.range(3).select(*(F.col("id").alias(name) for name in columns)).write.parquet(
        str(tmp_path / "wide")
    )
    wide = spark.read.parquet(str(tmp_path / "wide")).where(" and ".join(f"{name} > 1" for name in columns))
    (scan,) = read_plan(wide).scans
    assert scan.read_schema == "struct<" + ",".join(f"{name}:bigint" for name in columns) + ">"
    assert len(scan.pushed_filters) == 240


def test_a_plan_that_ran_is_the_final_one(facts: DataFrame) -> None:
    totals = facts.groupBy("k").agg(F.sum("v").alias("s")).orderBy("k")
    assert not read_plan(totals).is_final
    assert [row["s"] for row in totals.collect()] == [sum(range(k, 60, 5)) for k in range(5)]
    plan = read_plan(totals)
    assert plan.is_final
    assert (len(plan.exchanges), len(plan.sorts)) == (2, 1)


def test_a_subquery_is_part_of_the_plan(spark: SparkSession, facts: DataFrame, names: DataFrame) -> None:
    most = names.agg(F.max("k").alias("most"))
    plan = read_plan(facts.where(F.col("v") == most.scalar()))
    assert sorted(scan.source for scan in plan.scans) == ["csv", "parquet"]
    assert len(plan.exchanges) == 1


def test_two_runs_of_a_query_have_one_normalised_plan(facts: DataFrame) -> None:
    first = read_plan(facts.groupBy("k").count())
    again = read_plan(facts.groupBy("k").count())
    assert first.text != again.text
    assert first.normalised() == again.normalised()
    assert read_plan(facts.groupBy("v").count()).normalised() != first.normalised()


def test_reading_a_plan_prints_nothing(facts: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    read_plan(facts.groupBy("k").count())
    assert capsys.readouterr().out == ""
