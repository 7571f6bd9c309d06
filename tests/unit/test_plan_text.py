"""Plans from text, as Spark 4.1 prints it."""

from __future__ import annotations

import pytest

from common.core.errors import EngineError
from common.engine.plans import Join, parse_plan

ADAPTIVE = """\
== Physical Plan ==
AdaptiveSparkPlan (9)
+- Project (8)
   +- SortMergeJoin LeftOuter (7)
      :- Sort (3)
      :  +- Exchange (2)
      :     +- Scan parquet  (1)
      +- Sort (6)
         +- Exchange (5)
            +- Scan csv  (4)


(1) Scan parquet
Output [2]: [k#7L, v#8L]
Batched: true
Location: InMemoryFileIndex [file:/data/of/mine/t]
PartitionFilters: [isnotnull(p#9), (p#9 = x)]
PushedFilters: [IsNotNull(k), In(v, [1,2])]
ReadSchema: struct<k:bigint,v:bigint>

(2) Exchange
Input [2]: [k#7L, v#8L]
Arguments: hashpartitioning(k#7L, 3), ENSURE_REQUIREMENTS, [plan_id=125]

(3) Sort
Input [2]: [k#7L, v#8L]
Arguments: [k#7L ASC NULLS FIRST], false, 0

(4) Scan csv
Output [2]: [k#10L, w#11]
Batched: false
Location: InMemoryFileIndex [hdfs://host/data/c]
ReadSchema: struct<k:bigint,w:string>

(5) Exchange
Input [2]: [k#10L, w#11]
Arguments: hashpartitioning(k#10L, 3), ENSURE_REQUIREMENTS, [plan_id=126]

(6) Sort
Input [2]: [k#10L, w#11]
Arguments: [k#10L ASC NULLS FIRST], false, 0

(7) SortMergeJoin
Left keys [1]: [k#7L]
Right keys [1]: [k#10L]
Join type: LeftOuter
Join condition: None

(8) Project
Output [3]: [k#7L, v#8L, w#11]
Input [4]: [k#7L, v#8L, k#10L, w#11]

(9) AdaptiveSparkPlan
Output [3]: [k#7L, v#8L, w#11]
Arguments: isFinalPlan=false

"""

FINAL = """\
== Physical Plan ==
AdaptiveSparkPlan (12)
+- == Final Plan ==
   ResultQueryStage (6), Statistics(sizeInBytes=8.0 EiB)
   +- * BroadcastHashJoin Inner BuildRight (5)
      :- * Scan ExistingRDD (1)
      +- BroadcastQueryStage (4), Statistics(sizeInBytes=1024.0 KiB, rowCount=5)
         +- BroadcastExchange (3)
            +- ReusedExchange (2)
+- == Initial Plan ==
   SortMergeJoin Inner (11)
   :- Sort (8)
   :  +- Exchange (7)
   :     +- Scan ExistingRDD (1)
   +- Sort (10)
      +- Exchange (9)


(1) Scan ExistingRDD [codegen id : 1]
Arguments: [a#1]

(2) ReusedExchange [Reuses operator id: 7]
Output [1]: [a#1]

(3) BroadcastExchange
Arguments: IdentityBroadcastMode, [plan_id=1]

(4) BroadcastQueryStage
Arguments: 3

(5) BroadcastHashJoin [codegen id : 4]
Join type: Inner

(6) ResultQueryStage
Arguments: 5

(7) Exchange
Arguments: hashpartitioning(a#1, 3)

(12) AdaptiveSparkPlan
Arguments: isFinalPlan=true
"""

SUBQUERY = """\
== Physical Plan ==
* Filter (2)
+- * Scan parquet  (1)


(1) Scan parquet
ReadSchema: struct<k:bigint>

(2) Filter [codegen id : 1]
Condition : (k#1 = Subquery subquery#6, [id=#47])

===== Subqueries =====

Subquery:1 Hosting operator id = 2 Hosting Expression = Subquery subquery#6, [id=#47]
Exchange (4)
+- Scan csv  (3)


(3) Scan csv
ReadSchema: struct<w:string>

(4) Exchange
Arguments: SinglePartition

Subquery:2 Hosting operator id = 1 Hosting Expression = Subquery subquery#6, [id=#49]
Exchange (4)
+- Scan csv  (3)
"""

SIMPLE = """\
== Physical Plan ==
*(5) HashAggregate(keys=[k#7L], functions=[count(1)])
+- *(5) SortMergeJoin [k#7L], [k#655L], Inner
   :- *(2) Sort [k#7L ASC NULLS FIRST], false, 0
   :  +- Exchange hashpartitioning(k#7L, 3), ENSURE_REQUIREMENTS, [plan_id=828]
   :     +- *(1) Filter (k#7L = first
second)
   +- *(4) Sort [k#655L ASC NULLS FIRST], false, 0
      +- ReusedExchange [k#655L], Exchange hashpartitioning(k#7L, 3), ENSURE_REQUIREMENTS, [plan_id=828]
"""

COMET = """\
== Physical Plan ==
CometColumnarToRow (7)
+- CometSort (6)
   +- CometSortMergeJoin Inner (5)
      :- CometExchange (2)
      :  +- CometScan [native_iceberg_compat] parquet (1)
      +- CometColumnarExchange (4)
         +- CometNativeScan parquet (3)


(1) CometScan [native_iceberg_compat] parquet
ReadSchema: struct<k:bigint>

(3) CometNativeScan parquet
ReadSchema: struct<k:bigint>
"""


def test_a_formatted_plan_gives_its_nodes_in_order() -> None:
    plan = parse_plan(ADAPTIVE)
    assert [node.name for node in plan.nodes] == [
        "AdaptiveSparkPlan",
        "Project",
        "SortMergeJoin",
        "Sort",
        "Exchange",
        "Scan",
        "Sort",
        "Exchange",
        "Scan",
    ]
    assert [node.depth for node in plan.nodes] == [0, 1, 2, 3, 4, 5, 3, 4, 5]
    assert plan.nodes[2].children == (3, 6)
    assert plan.nodes[5].children == ()


def test_a_formatted_plan_tells_joins_scans_and_what_is_still_open() -> None:
    plan = parse_plan(ADAPTIVE)
    assert plan.joins == (Join("SortMergeJoin", "LeftOuter"),)
    assert plan.scans[0].source == "parquet"
    assert plan.scans[0].pushed_filters == ("IsNotNull(k)", "In(v, [1,2])")
    assert plan.scans[0].partition_filters == ("isnotnull(p#9)", "(p#9 = x)")
    assert plan.scans[0].read_schema == "struct<k:bigint,v:bigint>"
    assert plan.scans[1].pushed_filters == ()
    assert not plan.is_final
    assert plan.summary() == "2 shuffles, 1 SortMergeJoin, 2 sorts, no Python"


def test_the_final_plan_replaces_the_initial_one() -> None:
    plan = parse_plan(FINAL)
    assert plan.is_final
    assert plan.joins == (Join("BroadcastHashJoin", "Inner"),)
    assert (len(plan.exchanges), len(plan.broadcasts), len(plan.reused_exchanges)) == (0, 1, 1)
    assert plan.scans == ()
    assert plan.nodes[1].name == "ResultQueryStage"
    assert plan.nodes[2].children == (3, 4)


def test_a_subquery_printed_twice_counts_once() -> None:
    plan = parse_plan(SUBQUERY)
    assert len(plan.exchanges) == 1
    assert [scan.source for scan in plan.scans] == ["parquet", "csv"]
    assert [node.depth for node in plan.nodes] == [0, 1, 0, 1]


def test_a_simple_plan_is_read_as_well_with_markers_and_line_breaks() -> None:
    plan = parse_plan(SIMPLE)
    assert [node.name for node in plan.nodes] == [
        "HashAggregate",
        "SortMergeJoin",
        "Sort",
        "Exchange",
        "Filter",
        "Sort",
        "ReusedExchange",
    ]
    assert plan.nodes[4].detail == "(k#7L = first\nsecond)"
    assert plan.joins == (Join("SortMergeJoin", "Inner"),)
    assert len(plan.exchanges) == 1


def test_accelerated_nodes_count_as_what_they_replace() -> None:
    plan = parse_plan(COMET)
    assert (len(plan.exchanges), len(plan.sorts), len(plan.scans)) == (2, 1, 2)
    assert plan.joins == (Join("SortMergeJoin", "Inner"),)
    assert plan.scans[0].source == "parquet"
    assert plan.python_nodes == ()


@pytest.mark.parametrize(
    "name",
    [
        "BatchEvalPython",
        "ArrowEvalPython",
        "MapInArrow",
        "MapInPandas",
        "FlatMapGroupsInPandas",
        "FlatMapGroupsInArrow",
        "FlatMapCoGroupsInPandas",
        "ArrowAggregatePython",
        "ArrowWindowPython",
        "BatchEvalPythonUDTF",
        "TransformWithStateInPySpark",
    ],
)
def test_every_operator_that_calls_python_is_named(name: str) -> None:
    plan = parse_plan(f"== Physical Plan ==\n{name} (2)\n+- Scan ExistingRDD (1)\n\n\n(1) Scan ExistingRDD\n")
    assert [node.name for node in plan.python_nodes] == [name]
    assert plan.summary().endswith(f"1 {name}")


def test_a_cartesian_product_is_told() -> None:
    plan = parse_plan("== Physical Plan ==\nCartesianProduct Inner (3)\n:- A (1)\n+- B (2)\n\n")
    assert plan.has_cartesian
    assert not parse_plan(ADAPTIVE).has_cartesian


def test_the_normalised_text_holds_no_ids_and_no_places() -> None:
    text = parse_plan(ADAPTIVE).normalised()
    assert "hashpartitioning(k#, 3), ENSURE_REQUIREMENTS, [plan_id=#]" in text
    assert "InMemoryFileIndex [PATH]" in text
    assert "/data" not in text
    other = ADAPTIVE.replace("k#7L", "k#99L").replace("plan_id=125", "plan_id=1").replace("/data/of", "/x/y")
    assert parse_plan(other).normalised() == text
    assert parse_plan(ADAPTIVE.replace("(k#7L, 3)", "(k#7L, 4)")).normalised() != text


@pytest.mark.parametrize("text", ["", "== Parsed Logical Plan ==\n'Project [*]\n", "no plan at all"])
def test_text_without_a_plan_is_an_error(text: str) -> None:
    with pytest.raises(EngineError, match="expected a physical plan"):
        parse_plan(text)
