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

    def placed(side: Side) -> DataFrame:
        places = F.array_position(
            F.array(*typed_keys(each, kinds=side.kinds)), key_struct(side.keys, kinds=side.kinds)
        )
        asked = side.rows.where(is_among(side.keys, keys, kinds=side.kinds))
        return asked.select(places.alias("place"))

    texts = F.array(*(F.array(*map(F.lit, key)) for key in each))
    counted = _both_sides(placed(sides.left), placed(sides.right))
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
    """The rows of each key among the wanted ones, side by side."""
    names = [f"k{at}" for at in range(len(sides.left.keys))]

    def keyed(side: Side) -> DataFrame:
        # All keys with a NULL are one: neither they nor their number need to be known.
        null = any_null(side.keys)
        pairs = zip(side.keys, names, strict=True)
        return wanted(side).select(*(F.when(~null, named(key)).alias(name) for key, name in pairs))

    is_key = ~any_null(names)
    text = F.array(*(named(name).cast("string") for name in names))
    hashed = key_hash(zip(map(named, names), sides.left.kinds, strict=True))
    return _both_sides(keyed(sides.left), keyed(sides.right)).select(
        F.when(is_key, text).alias(COLUMNS.key),
        F.when(is_key, hashed).alias(COLUMNS.key_hash),
        COLUMNS.left_rows,
        COLUMNS.right_rows,
    )


def _both_sides(left: DataFrame, right: DataFrame) -> DataFrame:
    """How many rows of each side every value has; of one shuffle, by plain columns, which Comet does too."""
    one, none = (F.lit(count).cast("bigint") for count in (1, 0))
    ours = left.select("*", one.alias(COLUMNS.left_rows), none.alias(COLUMNS.right_rows))
    theirs = right.select("*", none.alias(COLUMNS.left_rows), one.alias(COLUMNS.right_rows))
    counts = (F.sum(name).alias(name) for name in (COLUMNS.left_rows, COLUMNS.right_rows))
    return ours.union(theirs).groupBy(*left.columns).agg(*counts)
