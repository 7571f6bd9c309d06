"""What lookups ask of Spark: facts are never shuffled for a broadcast, and only their keys go to Python."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import DataFrame, SparkSession

from common.engine.broadcast_tables import broadcast_table
from common.engine.plans import Join, read_plan
from common.transforms.lookup import answer
from common.transforms.lookup_dimension import prepared_dimension
from common.transforms.lookup_hits import found_hits, joined_hits, variable_rows
from common.transforms.lookup_sides import LookupSides, lookup_sides
from common.transforms.lookup_spec import LookupSpec

ON = (("k", "k"),)
TAKE = (("v", ""), ("w", ""))


@pytest.fixture
def inputs(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Rows too many for Spark to broadcast by itself."""
    facts = spark.range(10_000_000).selectExpr("id % 1000 AS k", "id AS x", "id AS y")
    return facts, spark.range(10_000_000).selectExpr("id AS k", "id AS v", "id AS w")


def prepared(inputs: tuple[DataFrame, DataFrame], spec: LookupSpec) -> tuple[LookupSides, DataFrame]:
    sides = lookup_sides(*inputs, spec)
    return sides, prepared_dimension(sides, spec, has_duplicates=False)


@pytest.mark.parametrize("broadcast", [True, False])
def test_a_broadcast_moves_no_facts(inputs: tuple[DataFrame, DataFrame], broadcast: bool) -> None:
    spec = LookupSpec(ON, TAKE, duplicates="first", order=("v",))
    plan = read_plan(answer(joined_hits(*prepared(inputs, spec), broadcast=broadcast), spec))
    join = "BroadcastHashJoin" if broadcast else "SortMergeJoin"
    assert plan.joins == (Join(join, "LeftOuter"),)
    assert (len(plan.exchanges), len(plan.broadcasts)) == ((0, 1) if broadcast else (2, 0))
    assert not plan.python_nodes


@pytest.mark.parametrize("expand", [False, True])
def test_only_keys_go_to_python_and_only_once(
    spark: SparkSession, inputs: tuple[DataFrame, DataFrame], expand: bool
) -> None:
    facts, dimension = inputs
    text = (
        facts.withColumn("k", facts["k"].cast("string")),
        dimension.withColumn("k", dimension["k"].cast("string")),
    )
    for (left, right), is_text in (((facts, dimension), False), (text, True)):
        spec = LookupSpec(ON, TAKE, duplicates="expand" if expand else "fail")
        sides, rows = prepared((left, right), spec)
        with broadcast_table(variable_rows(sides, rows).limit(0), workers=1, max_bytes=1000) as table:
            plan = read_plan(answer(found_hits(sides, rows, table.variable), spec))
        (node,) = plan.python_nodes
        (call,) = re.findall(r"find\((.*)\)#\d+\]", node.field("Arguments"))
        # The key; or its hash, which the JVM computes, and the key.
        assert set(re.findall(r"(\w+)#", call)) == {"k"}
        assert ("xxhash64" in call) == is_text
        assert not plan.exchanges
        assert not plan.joins
