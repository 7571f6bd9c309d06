"""Top-N: the best rows of all, or of each partition, in an order that no partitioning can change."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from common.core.errors import StrategyError
from common.transforms.columns import is_orderable, named, unused
from common.transforms.topn_rows import RankedRows, TopN, ordering, ranked_rows

_RANKS = {"first": F.row_number, "all": F.rank, "dense": F.dense_rank}


def window_top_n(df: DataFrame, spec: TopN, *, salts: int = 1) -> DataFrame:
    """The n best rows by a ranking window: right for every kind of ties, with and without partitions.

    Args:
        df: Rows to rank.
        spec: What is asked.
        salts: Each partition is ranked in so many parts first, by content, of which each keeps its n best:
            a partition with most of the rows then keeps many tasks busy.

    Returns:
        The output columns plus `spec.rank_column: int`. Row order is undefined.

    Raises:
        ColumnMissingError: a named column is absent.
        ColumnTypeError: the score or a tie-break column has no order.
        ParameterError: a name would stand twice in the output.

    Plan:
        Lazy. One shuffle by `partition_by` after a partial limit per task (WindowGroupLimit); without
        `partition_by` the rows that survive it meet in one task. The largest partition is sorted in one
        task, which may spill. With `salts` one shuffle and sort more. Guidelines D5, K4.
    """
    ranked = ranked_rows(df, spec)
    rows = _best_of_parts(ranked, spec, salts) if salts > 1 and ranked.partition_by else ranked.rows
    return ranked_by_window(rows, ranked, spec)


def sort_top_n(df: DataFrame, spec: TopN) -> DataFrame:
    """The n best rows of all by a bounded sort: for one global ranking that keeps exactly n rows.

    Returns:
        The output columns plus `spec.rank_column: int`, in rank order while Spark keeps one partition.

    Raises:
        StrategyError: `spec` has partitions or keeps ties.
        ColumnMissingError: a named column is absent.
        ColumnTypeError: the score or a tie-break column has no order.

    Plan:
        Lazy. No shuffle of the input: each task keeps n rows in a heap, the driver's plan merges them in
        one task, which holds n rows at a time for each input task. Guidelines D4, D5.
    """
    if spec.partition_by or spec.ties != "first":
        asked = "partitions" if spec.partition_by else f"ties={spec.ties}"
        raise StrategyError(
            "strategy", "sort", expected="one ranking that cuts ties", got=asked, hint="use window, or auto"
        )
    ranked = ranked_rows(df, spec)
    return ranked_by_sort(ranked.rows, ranked, spec)


def ranked_by_window(rows: DataFrame, ranked: RankedRows, spec: TopN) -> DataFrame:
    """The output of the n best of `rows`, which hold at least all that can be among them."""
    window = Window.partitionBy(*map(named, ranked.partition_by)).orderBy(*ordering(ranked, spec))
    placed = rows.withColumn(spec.rank_column, _RANKS[spec.ties]().over(window))
    return _output(placed.where(named(spec.rank_column) <= spec.n), ranked, spec)


def _best_of_parts(ranked: RankedRows, spec: TopN, salts: int) -> DataFrame:
    """The n best of each part of each partition: whatever is among the n best of all is among those.

    A row that n others are before in its part has them before it in its partition, under every rule for ties.
    """
    rows = ranked.rows
    hashed = [name for name in rows.columns if is_orderable(rows.schema[name].dataType)]
    part, place = unused("part", rows.columns), unused("place", rows.columns)
    salted = rows.withColumn(part, F.pmod(F.xxhash64(*map(named, hashed)), F.lit(salts)))
    keys = map(named, (*ranked.partition_by, part))
    window = Window.partitionBy(*keys).orderBy(*ordering(ranked, spec))
    placed = salted.withColumn(place, _RANKS[spec.ties]().over(window))
    return placed.where(named(place) <= spec.n).select(*map(named, rows.columns))


def ranked_by_sort(rows: DataFrame, ranked: RankedRows, spec: TopN) -> DataFrame:
    """The same without partitions, exactly n rows."""
    best_first = ordering(ranked, spec)
    best = rows.orderBy(*best_first).limit(spec.n)
    return _output(
        best.withColumn(spec.rank_column, F.row_number().over(Window.orderBy(*best_first))), ranked, spec
    )


def _output(rows: DataFrame, ranked: RankedRows, spec: TopN) -> DataFrame:
    return rows.select(*map(named, ranked.output), named(spec.rank_column))
