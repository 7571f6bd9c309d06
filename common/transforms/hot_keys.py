"""How many rows of each side the hot keys of a join have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from common.transforms.columns import named
from common.transforms.join_keys import any_null, is_among, key_hash, key_struct, text_hash, typed_keys
from common.transforms.join_sides import Side, Sides

# Items of the frequency sketch: an item of more than a thousandth of the rows is never missed.
_TRACKED = 10_000


class HotKeyColumns(NamedTuple):
    """The columns of `hot_key_counts`, in order."""

    key: str = "key"
    key_hash: str = "key_hash"
    left_rows: str = "left_rows"
    right_rows: str = "right_rows"


COLUMNS = HotKeyColumns()


def hot_key_counts(sides: Sides, candidates: Collection[Sequence[str]]) -> DataFrame:
    """Count the rows of some keys exactly, on both sides; those with a NULL in the key are one key more.

    Args:
        sides: The join.
        candidates: Keys as text; one that is no value of the key's type has no rows.

    Returns:
        One row per key that has rows: `key: array<string>` (NULL for the key that holds one),
        `key_hash: bigint`, `left_rows: bigint`, `right_rows: bigint`.

    Plan:
        Lazy. One pass over the key columns of each side, a partial aggregation in each task, a shuffle of a
        few rows. Guideline K6.
    """
    hashes = [text_hash(key, kinds=sides.left.kinds) for key in candidates]

    def wanted(side: Side) -> DataFrame:
        null = any_null(side.keys)
        return side.rows.where(null | side.hash.isin(hashes) if hashes else null)

    return _counted(sides, wanted)


def asked_key_counts(sides: Sides, keys: Sequence[Sequence[str]], *, limit: int = 100) -> DataFrame:
    """Count the rows of some keys, on both sides, under the text that they were asked by.

    Args:
        sides: The join.
        keys: Keys as text, in any spelling that their type reads: 007 is the number 7. At least one.
        limit: So many of them are counted each, all others together.

    Returns:
        As `hot_key_counts`, with `key_hash` NULL and one row per key that has rows; those beyond `limit` have
        one row, whose key is NULL. Of two spellings of one key the first has its rows.

    Plan:
        Lazy. As `hot_key_counts`. Guideline K2.
    """
    each = keys[:limit]

    def of_side(side: Side) -> DataFrame:
        places = F.array_position(
            F.array(*typed_keys(each, kinds=side.kinds)), key_struct(side.keys, kinds=side.kinds)
        )
        placed = side.rows.where(is_among(side.keys, keys, kinds=side.kinds)).select(places.alias("place"))
        return placed.groupBy("place").agg(F.count(F.lit(1)).alias(COLUMNS.left_rows))

    texts = F.array(*(F.array(*map(F.lit, key)) for key in each))
    counted = _both_sides(of_side(sides.left), of_side(sides.right), ("place",))
    return counted.select(
        F.get(texts, F.col("place").cast("int") - 1).alias(COLUMNS.key),
        F.lit(None).cast("bigint").alias(COLUMNS.key_hash),
        COLUMNS.left_rows,
        COLUMNS.right_rows,
    )


def hot_keys_by_sketch(sides: Sides, *, share: float, limit: int = 200) -> DataFrame:
    """Find the keys that hold a share of either side's rows, and count them exactly.

    Args:
        sides: The join.
        share: Of the rows of a side, 0.001 to 1.
        limit: At most so many keys of each side.

    Returns:
        As `hot_key_counts`.

    Plan:
        Lazy. Two passes over the key columns of each side: a sketch of frequent items (Misra and Gries, as
        Apache DataSketches has it), then the exact count. Guideline K6.
    """
    found = [_frequent(side, share=share, limit=limit) for side in (sides.left, sides.right)]
    items = F.broadcast(reduce(DataFrame.union, found).distinct())

    def wanted(side: Side) -> DataFrame:
        marked = side.rows.join(items, side.hash == F.col("item"), "left")
        return marked.where(any_null(side.keys) | F.col("item").isNotNull())

    return _counted(sides, wanted)


def _frequent(side: Side, *, share: float, limit: int) -> DataFrame:
    """The hashes of frequent keys: `item: bigint`."""
    keyed = side.rows.where(~any_null(side.keys)).select(side.hash.alias("item"))
    sketch = keyed.agg(
        F.expr(f"approx_top_k(item, {limit}, {_TRACKED})").alias("top"), F.count(F.lit(1)).alias("rows")
    )
    items = sketch.select("rows", F.inline("top"))
    return items.where(F.col("count") >= F.col("rows") * share).select("item")


def _counted(sides: Sides, wanted: Callable[[Side], DataFrame]) -> DataFrame:
    """The rows of each key among the wanted ones, by side, then side by side."""
    left, right = (_of_side(side, wanted(side)) for side in (sides.left, sides.right))
    return _both_sides(left, right, (COLUMNS.key, COLUMNS.key_hash))


def _both_sides(left: DataFrame, right: DataFrame, by: Sequence[str]) -> DataFrame:
    """Counts of `left_rows` of each side, side by side."""
    null = F.lit(None).cast("bigint")
    ours = left.withColumn(COLUMNS.right_rows, null)
    theirs = right.withColumnRenamed(COLUMNS.left_rows, COLUMNS.right_rows)
    both = ours.unionByName(theirs.withColumn(COLUMNS.left_rows, null))
    counts = (
        F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in (COLUMNS.left_rows, COLUMNS.right_rows)
    )
    return both.groupBy(*by).agg(*counts)


def _of_side(side: Side, rows: DataFrame) -> DataFrame:
    """`key, key_hash, left_rows` of one side."""
    null = any_null(side.keys)
    # All keys with a NULL are one: neither they nor their number need to be known.
    keys = [F.when(~null, named(name)).alias(f"k{at}") for at, name in enumerate(side.keys)]
    counted = (
        rows.select(*keys)
        .groupBy(*(f"k{at}" for at in range(len(keys))))
        .agg(F.count(F.lit(1)).alias(COLUMNS.left_rows))
    )
    names = [f"k{at}" for at in range(len(keys))]
    is_key = ~any_null(names)
    text = F.array(*(named(name).cast("string") for name in names))
    hashed = key_hash(zip(map(named, names), side.kinds, strict=True))
    return counted.select(
        F.when(is_key, text).alias(COLUMNS.key),
        F.when(is_key, hashed).alias(COLUMNS.key_hash),
        COLUMNS.left_rows,
    )
