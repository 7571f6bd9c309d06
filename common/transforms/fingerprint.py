"""An order-free fingerprint of rows: equal for every partitioning, another for another multiset of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructType

from common.transforms.columns import named

# Types that xxhash64 takes as they are and that have one form per value; all others go through text.
_NUMBERS = frozenset({"byte", "short", "integer", "long", "decimal"})
_HASHABLE = _NUMBERS | {"string", "binary", "boolean", "date", "timestamp", "timestamp_ntz"}

ROW_COUNT = "row_count"
HASH_SUM = "hash_sum"


def fingerprint(df: DataFrame, *, columns: Sequence[str] | None = None) -> DataFrame:
    """Count the rows and add up their 64-bit hashes.

    Args:
        df: Any rows.
        columns: The columns that count, in this order; None for all.

    Returns:
        One row: `row_count: bigint`, `hash_sum: decimal(38,0)` (0 for no rows).

    Plan:
        Lazy. One pass and a global aggregate of two numbers per task. XXH64 over canonical values: NULL is
        a value of its own at every place, -0.0 is 0.0, all NaN are one NaN.
    """
    parts = [part for name in (df.columns if columns is None else columns) for part in _canonical(df, name)]
    row_hash = F.xxhash64(*(parts or [F.lit(0)])).cast("decimal(38,0)")
    total = F.coalesce(F.sum(row_hash), F.lit(0)).cast("decimal(38,0)")
    return df.agg(F.count(F.lit(1)).alias(ROW_COUNT), total.alias(HASH_SUM))


def _canonical(df: DataFrame, name: str) -> tuple[Column, Column]:
    """The value and whether it is there: xxhash64 passes over NULLs, so (NULL, 1) would equal (1, NULL)."""
    value, kind = named(name), df.schema[name].dataType
    return value.isNull(), _hashable(value, kind)


def _hashable(value: Column, kind: DataType) -> Column:
    if isinstance(kind, (FloatType, DoubleType)):
        nan = F.lit(float("nan")).cast(kind)
        return F.when(F.isnan(value), nan).when(value == 0, F.lit(0.0).cast(kind)).otherwise(value)
    if isinstance(kind, (ArrayType, StructType, MapType)):
        # Text keeps the places of NULLs inside; a map's entries have no order of their own.
        canonical = F.array_sort(F.map_entries(value)) if isinstance(kind, MapType) else value
        return F.to_json(F.struct(canonical.alias("v")), {"ignoreNullFields": "false"})
    return (
        value
        if kind.typeName() in _HASHABLE or kind.typeName().startswith("interval")
        else value.cast("string")
    )


def float_differences(
    left: DataFrame, right: DataFrame, *, keys: Sequence[str], columns: Sequence[str], tolerance_ratio: float
) -> DataFrame:
    """Rows whose float columns differ by more than the tolerance, or that stand on one side only.

    Args:
        left: Rows with `keys` and `columns`.
        right: Rows of the same columns.
        keys: Columns compared exactly; NULL equals NULL. Rows of one key are paired in order of `columns`.
        columns: Float columns; equal when |a - b| <= tolerance_ratio * max(|a|, |b|), or both NULL, NaN or
            the same infinity.
        tolerance_ratio: Relative, >= 0.

    Returns:
        One row: `row_count: bigint`, the differing pairs.

    Plan:
        Lazy. Two shuffles and sorts by `keys`, one join; for the check of an answer, not for big data.
    """
    a, b = (
        _paired(side, keys=keys, columns=columns, prefix=prefix)
        for side, prefix in ((left, "l"), (right, "r"))
    )
    places = [named(f"l{i}").eqNullSafe(named(f"r{i}")) for i in range(len(keys) + 1)]
    joined = a.join(b, reduce(lambda x, y: x & y, places), "full")
    width = range(len(columns))
    same = [_close(named(f"lv{i}"), named(f"rv{i}"), tolerance_ratio=tolerance_ratio) for i in width]
    both = named("l0").isNotNull() & named("r0").isNotNull()
    return joined.where(~reduce(lambda x, y: x & y, same, both)).agg(F.count(F.lit(1)).alias(ROW_COUNT))


def _paired(df: DataFrame, *, keys: Sequence[str], columns: Sequence[str], prefix: str) -> DataFrame:
    window = Window.partitionBy(*map(named, keys)).orderBy(*map(named, columns))
    places = [named(name).alias(f"{prefix}{i}") for i, name in enumerate(keys, start=1)]
    values = [named(name).cast("double").alias(f"{prefix}v{i}") for i, name in enumerate(columns)]
    return df.select(F.row_number().over(window).alias(f"{prefix}0"), *places, *values)


def _close(a: Column, b: Column, *, tolerance_ratio: float) -> Column:
    size = F.greatest(F.abs(a), F.abs(b))
    # To Spark NaN is the greatest number and equal to itself, so it would be within any tolerance of NaN.
    within = (size < float("inf")) & (F.abs(a - b) <= size * tolerance_ratio)
    return F.coalesce(a.eqNullSafe(b) | within, F.lit(False))
