"""What each strategy of Top-N makes Spark do."""

from __future__ import annotations

from functools import partial

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from common.engine.plans import Join, read_plan
from common.transforms.topn import sort_top_n, window_top_n
from common.transforms.topn_aggregate import aggregate_top_n
from common.transforms.topn_prune import prune_top_n
from common.transforms.topn_rows import TopN

WITHIN = TopN("v", n=3, partition_by=("k",))
pruned = partial(prune_top_n, one_in=4)


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    place = str(tmp_path_factory.mktemp("plans") / "rows")
    wide = [(F.col("id") % 5).alias("k"), F.col("id").alias("v"), (F.col("id") / 2).alias("d")]
    spark.range(60).select(*wide, F.lit("wide").alias("text")).write.parquet(place)
    return spark.read.parquet(place)


def test_a_bounded_sort_shuffles_no_input(rows: DataFrame) -> None:
    plan = read_plan(sort_top_n(rows, TopN("v", n=3)))
    assert (plan.joins, plan.python_nodes) == ((), ())
    assert "TakeOrderedAndProject" in {node.name for node in plan.nodes}


def test_a_window_shuffles_once(rows: DataFrame) -> None:
    plan = read_plan(window_top_n(rows, WITHIN))
    assert (len(plan.exchanges), len(plan.windows), plan.joins) == (1, 1, ())
    assert "WindowGroupLimit" in {node.name for node in plan.nodes}, "each task drops what ranks below n"


def test_salts_are_one_shuffle_more(rows: DataFrame) -> None:
    plan = read_plan(window_top_n(rows, WITHIN, salts=4))
    assert (len(plan.exchanges), len(plan.windows)) == (2, 2)


def test_bounds_come_from_few_columns_and_are_broadcast(rows: DataFrame) -> None:
    plan = read_plan(pruned(rows, WITHIN))
    assert plan.joins == (Join("BroadcastHashJoin", "LeftOuter"),)
    assert (len(plan.broadcasts), plan.has_cartesian, plan.python_nodes) == (1, False, ())
    schemas = sorted((scan.read_schema for scan in plan.scans), key=len)
    assert len(schemas) == 2
    assert "text" not in schemas[0]
    assert "text" in schemas[1]


def test_one_bound_is_a_subquery_that_reads_the_score_alone(rows: DataFrame) -> None:
    plan = read_plan(pruned(rows, TopN("v", n=3)))
    assert plan.joins == ()
    assert "struct<v:bigint>" in {scan.read_schema for scan in plan.scans}
    wide = [scan for scan in plan.scans if "text" in scan.read_schema]
    assert any("GreaterThanOrEqual(v" in item for scan in wide for item in scan.pushed_filters)


@pytest.mark.parametrize(("nan", "pushed"), [("largest", False), ("drop", True)])
def test_a_bound_of_floats_is_pushed_only_where_nan_is_dropped(
    rows: DataFrame, nan: str, pushed: bool
) -> None:
    plan = read_plan(pruned(rows, TopN("d", n=3, nan=nan)))  # type: ignore[arg-type]
    wide = [scan for scan in plan.scans if "text" in scan.read_schema]
    assert any("GreaterThanOrEqual(d" in item for scan in wide for item in scan.pushed_filters) is pushed


def test_an_aggregation_is_partial_before_its_shuffle(rows: DataFrame) -> None:
    plan = read_plan(aggregate_top_n(rows, WITHIN))
    assert (len(plan.exchanges), plan.windows, plan.python_nodes) == (1, (), ())
    assert [node.name for node in plan.nodes].count("ObjectHashAggregate") == 2
