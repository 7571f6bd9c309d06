"""Top-N by bounds: which rows are sampled must never show in the answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from common.core.errors import ParameterError, StrategyError
from common.engine.topn_heap import heap_top_n
from common.transforms.topn import sort_top_n, window_top_n
from common.transforms.topn_aggregate import aggregate_top_n
from common.transforms.topn_prune import prune_top_n
from common.transforms.topn_rows import TopN
from tests.frames import frame, no_actions, rows_of, shown

Strategy = Callable[[DataFrame, TopN], DataFrame]
NAN = float("nan")
PRUNED = [partial(prune_top_n, one_in=one_in) for one_in in (1, 2, 7)]


@pytest.mark.parametrize("strategy", [sort_top_n, window_top_n, heap_top_n, aggregate_top_n, *PRUNED])
@pytest.mark.parametrize(("n", "expected"), [(1, ["NaN"]), (2, ["NaN", 6.0])])
def test_a10_nan_that_statistics_leave_out(
    spark: SparkSession, tmp_path: Path, strategy: Strategy, n: int, expected: list[object]
) -> None:
    pq.write_table(pa.table({"v": [NAN, 1.0, 5.0, 6.0]}), tmp_path / "f.parquet", row_group_size=2)
    df = spark.read.parquet(str(tmp_path / "f.parquet"))
    rows = sorted(rows_of(strategy(df, TopN("v", n=n))), key=lambda row: row[1])
    assert [shown(value) for value, _ in rows] == expected


@pytest.mark.parametrize("strategy", [window_top_n, aggregate_top_n, *PRUNED])
def test_a10_within_partitions(spark: SparkSession, tmp_path: Path, strategy: Strategy) -> None:
    table = pa.table({"g": [1, 1, 1, 1, 2, 2], "v": [NAN, 1.0, 5.0, 6.0, 7.0, 8.0]})
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=2)
    df = spark.read.parquet(str(tmp_path / "f.parquet"))
    rows = rows_of(strategy(df, TopN("v", n=1, partition_by=("g",))))
    assert sorted((g, shown(v)) for g, v, _ in rows) == [(1, "NaN"), (2, 8.0)]


def test_ten_thousand_rows_in_groups_of_every_size(spark: SparkSession) -> None:
    # Group g holds g rows, v = 0 … g-1: its three best are g-1, g-2, g-3.
    rows = [(group, value) for group in range(1, 141) for value in range(group)]
    df = frame(spark, rows, "g INT, v INT", partitions=5)
    expected = [(g, v, g - v) for g, v in rows if v >= g - 3]
    for one_in, bound_limit in ((1, 100_000), (3, 100_000), (3, 10), (50, 1)):
        answer = prune_top_n(df, TopN("v", n=3, partition_by=("g",)), one_in=one_in, bound_limit=bound_limit)
        assert sorted(rows_of(answer)) == sorted(expected)


@pytest.mark.parametrize("partition_by", [(), ("g",)])
@pytest.mark.parametrize("nulls", ["first", "last", "drop"])
def test_scores_that_are_all_null(spark: SparkSession, partition_by: tuple[str, ...], nulls: str) -> None:
    df = frame(spark, [("a", None, 1), ("a", None, 2)], "g STRING, v DOUBLE, w INT")
    spec = TopN("v", n=1, partition_by=partition_by, nulls=nulls)  # type: ignore[arg-type]
    expected = [] if nulls == "drop" else [("a", None, 1, 1)]
    assert rows_of(prune_top_n(df, spec, one_in=1)) == expected


@pytest.mark.parametrize("one_in", [1, 2])
def test_keys_that_are_null_nan_or_signed_zero(spark: SparkSession, one_in: int) -> None:
    rows = [(None, 1), (None, 2), (NAN, 3), (NAN, 4), (0.0, 5), (-0.0, 6)]
    df = frame(spark, rows, "g DOUBLE, v INT", partitions=3)
    answer = prune_top_n(df, TopN("v", n=1, partition_by=("g",)), one_in=one_in)
    assert sorted(v for _, v, _ in rows_of(answer)) == [2, 4, 6]


def test_columns_with_the_names_of_its_own(spark: SparkSession) -> None:
    rows = [(1, 10, "x", "p"), (1, 20, "y", "q"), (2, 5, "z", "r")]
    df = frame(spark, rows, "key0 INT, bound INT, bounded STRING, Place STRING", partitions=2)
    answer = prune_top_n(df, TopN("bound", n=1, partition_by=("key0",)), one_in=1)
    assert sorted(rows_of(answer)) == [(1, 20, "y", "q", 1), (2, 5, "z", "r", 1)]


def test_a_score_that_is_computed(spark: SparkSession) -> None:
    df = frame(spark, [("a", 1, 9), ("b", 4, 3), ("c", 2, 2)], "k STRING, x INT, y INT", partitions=2)
    for partition_by in ((), ("k",)):
        spec = TopN("x * y AS area", n=1, partition_by=partition_by)
        answer = rows_of(prune_top_n(df, spec, one_in=1))
        best = [("b", 4, 3, 12, 1)]
        assert sorted(answer) == (best if not partition_by else [("a", 1, 9, 9, 1), *best, ("c", 2, 2, 4, 1)])


@pytest.mark.parametrize("values", [{"one_in": 0}, {"bound_limit": 0}])
def test_wrong_rates(spark: SparkSession, values: dict[str, int]) -> None:
    df = frame(spark, [(1,)], "v INT")
    with pytest.raises(ParameterError, match="whole number >= 1"), no_actions():
        prune_top_n(df, TopN("v"), **values)


def test_groups_are_refused(spark: SparkSession) -> None:
    df = frame(spark, [(1,)], "v INT")
    with pytest.raises(StrategyError, match="groups of v"), no_actions():
        prune_top_n(df, TopN("count(*)", group_by=("v",)))
