"""Top-N as an aggregation: each task keeps n rows per partition in a bounded heap, which then are merged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.internal import InternalFunction
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    TimestampType,
)

from common.core.errors import StrategyError
from common.transforms.columns import named, unordered
from common.transforms.topn_rows import Nulls, Order, RankedRows, TopN, ranked_rows

_BEST = "_saltpan_best"


@dataclass(frozen=True)
class _Key:
    """A struct field that is smaller for what ranks first, NULL before all else."""

    name: str
    column: Column


def aggregate_top_n(df: DataFrame, spec: TopN) -> DataFrame:
    """The n best rows by a bounded aggregation with partial results on the map side.

    Args:
        df: Rows to rank, read once.
        spec: What is asked; it must cut ties.

    Returns:
        The output columns plus `spec.rank_column: int`. Row order is undefined.

    Raises:
        StrategyError: `spec` keeps ties, a descending score is of a type that has no opposite (text, binary,
            intervals, nested), or an output column has no order.
        ColumnMissingError, ColumnTypeError, ParameterError: as the other strategies.

    Plan:
        Lazy. One aggregation by the partition columns: a task holds n rows of each partition that it meets,
        as objects on the heap (beyond 128 partitions Spark sorts them first); only those are shuffled, and
        each partition's n are merged in one task. Guidelines D4, D5.
    """
    if spec.ties != "first":
        _refuse(f"ties={spec.ties}")
    ranked = ranked_rows(df, spec)
    bad = unordered(ranked.rows, names=ranked.output)
    if bad:
        _refuse(f"`{bad[0]}`, which has no order")
    keys = _keys(ranked, spec)
    values = [named(name).alias(f"v{at}") for at, name in enumerate(ranked.output)]
    entry = F.struct(*(key.column.alias(key.name) for key in keys), *values)
    # min_by and max_by take a number from Spark 4.2 on; this is what both rest on, and 4.1 has it too.
    best = InternalFunction.collect_top_k(entry, max(spec.n, 1), reverse=True)
    groups = ranked.rows.groupBy(*map(named, ranked.partition_by)).agg(F.sort_array(best).alias(_BEST))
    if spec.n == 0:
        groups = groups.where(F.lit(False))
    placed = groups.select(F.posexplode(named(_BEST)).alias("place", "entry"))
    columns = [F.col(f"entry.v{at}").alias(name) for at, name in enumerate(ranked.output)]
    return placed.select(*columns, (F.col("place") + 1).cast("int").alias(spec.rank_column))


def _keys(ranked: RankedRows, spec: TopN) -> list[_Key]:
    keys = []
    for at, (name, order) in enumerate(ranked.scores):
        kind = ranked.rows.schema[name].dataType
        keys += [
            _Key(f"k{at}{part}", column) for part, column in _score(named(name), kind, order, spec.nulls)
        ]
    return [*keys, *(_Key(f"t{at}", named(name)) for at, name in enumerate(ranked.tie_break))]


def _score(score: Column, kind: DataType, order: Order, nulls: Nulls) -> list[tuple[str, Column]]:
    """What sorts upwards as the score does in its order: where NULL goes, where NaN goes, the value."""
    missing = score.isNotNull() if nulls == "first" else score.isNull()
    if order == "asc":
        return [("n", missing), ("v", score)]
    parts = [("n", missing)]
    if isinstance(kind, (FloatType, DoubleType)):  # NaN, the largest, has no opposite
        parts.append(("f", ~F.isnan(score)))
    return [*parts, ("v", _opposite(score, kind))]


def _opposite(score: Column, kind: DataType) -> Column:
    """A value that falls as the score rises, without overflow."""
    turns: list[tuple[type[DataType], Callable[[Column], Column]]] = [
        (IntegralType, F.bitwise_not),
        (BooleanType, lambda value: ~value),
        (DateType, lambda value: F.bitwise_not(F.unix_date(value))),
        (TimestampType, lambda value: F.bitwise_not(F.unix_micros(value))),
        (DecimalType, F.negate),
        (FloatType, F.negate),
        (DoubleType, F.negate),
    ]
    for type_, turn in turns:
        if isinstance(kind, type_):
            return turn(score)
    return _refuse(f"a descending score of {kind.simpleString()}")


def _refuse(got: str) -> Column:
    raise StrategyError(
        "strategy",
        "aggregate",
        expected="cut ties, and rows and scores that can be compared both ways",
        got=got,
        hint="use window, or auto",
    )
