"""What joins under skew ask of Spark: hot keys move no rows, salts one shuffle of each side."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from common.engine.plans import Join, Plan, read_plan
from common.transforms.hot_keys import hot_key_counts
from common.transforms.join_sides import How, JoinSpec, joined_sides
from common.transforms.skew_join import Treatment, plain_join, skew_join

HOT = frozenset({1, 2})
SPLIT = dict.fromkeys(HOT, 4)


@pytest.fixture
def sides(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Rows too many for Spark to broadcast by itself."""
    left = spark.range(10_000_000).selectExpr("id % 1000 AS k", "id AS x")
    return left, spark.range(10_000_000).selectExpr("id AS k", "id AS y")


def plan_of(sides: tuple[DataFrame, DataFrame], treatment: Treatment | None, how: How = "inner") -> Plan:
    spec = JoinSpec((("k", "k"),), how)
    return read_plan(skew_join(*sides, spec, treatment) if treatment else plain_join(*sides, spec))


@pytest.mark.parametrize("treatment", [None, Treatment()])
def test_without_hot_keys_it_is_the_plain_join(
    sides: tuple[DataFrame, DataFrame], treatment: Treatment | None
) -> None:
    plan = plan_of(sides, treatment)
    assert (len(plan.exchanges), plan.joins) == (2, (Join("SortMergeJoin", "Inner"),))


def test_hot_keys_are_broadcast_and_the_others_shuffled(sides: tuple[DataFrame, DataFrame]) -> None:
    plan = plan_of(sides, Treatment(broadcast_right=HOT), "left")
    assert set(plan.joins) == {Join("BroadcastHashJoin", "LeftOuter"), Join("SortMergeJoin", "LeftOuter")}
    assert (len(plan.exchanges), len(plan.broadcasts)) == (2, 1)
    assert not plan.python_nodes
    assert not plan.has_cartesian


def test_salts_cost_no_shuffle_more(sides: tuple[DataFrame, DataFrame]) -> None:
    plan = plan_of(sides, Treatment(split_left=SPLIT))
    assert (len(plan.exchanges), plan.joins) == (2, (Join("SortMergeJoin", "Inner"),))
    assert len(plan.of("Generate")) == 1


def test_an_unmatched_row_is_found_by_keys_alone(sides: tuple[DataFrame, DataFrame]) -> None:
    plan = plan_of(sides, Treatment(broadcast_right=HOT), "right")
    assert Join("BroadcastHashJoin", "LeftAnti") in plan.joins
    # Two of the cold join, one of the hot keys of the left side, each once in every task.
    assert len(plan.exchanges) == 3


def test_null_keys_are_not_shuffled(sides: tuple[DataFrame, DataFrame]) -> None:
    plan = plan_of(sides, Treatment(nulls_apart=True), "left")
    assert len(plan.exchanges) == 2
    assert len(plan.of("Union")) == 1
    filters = [node.detail for node in plan.of("Filter")]
    assert any("isnull" in text for text in filters)


def test_hot_keys_are_counted_in_one_pass_over_the_keys(spark: SparkSession) -> None:
    # Keys that may be NULL, in no order that would spare a shuffle.
    left = spark.range(100).selectExpr("nullif(id % 10, 7) AS k", "id AS x")
    both = joined_sides(left, left, JoinSpec((("k", "k"),)))
    plan = read_plan(hot_key_counts(both, [("1",), ("2",)]))
    # Both sides meet in the shuffle of their few counted rows.
    assert len(plan.exchanges) == 1
    assert not plan.joins
