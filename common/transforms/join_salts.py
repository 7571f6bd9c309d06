"""Salts: a hot key becomes several, on one side by splitting its rows, on the other by replicating them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from common.core.errors import ParameterError
from common.transforms.columns import named
from common.transforms.join_sides import Side


def salted(side: Side, name: str, *, split: Mapping[int, int], copied: Mapping[int, int]) -> Side:
    """The rows with a salt that goes into the join key beside the other side's.

    Args:
        side: One side of a join.
        name: Of the new column.
        split: Keys by hash, and into how many parts their rows are split: each row is in one, by its content,
            so that a retry finds it in the same one (SPARK-38160). Equal rows are never parted.
        copied: Keys by hash, and how often their rows are replicated: once for each part of the other side.

    Returns:
        The side with `name: int`, from 0; rows of other keys once, with 0.

    Raises:
        ParameterError: a count below 1.

    Plan:
        Lazy and narrow. Guideline K7.
    """
    part = F.pmod(row_hash(side.rows), _count(side, split)).cast("int") if split else F.lit(0)
    if not copied:
        return Side(side.rows.withColumn(name, part), side.keys)
    copies = F.sequence(F.lit(0), (_count(side, copied) - 1).cast("int"))
    salts = F.when(side.hash.isin(sorted(copied)), copies).otherwise(F.array(part))
    return Side(side.rows.withColumn(name, F.explode(salts)), side.keys)


def row_hash(df: DataFrame) -> Column:
    """A bigint of a row's content, maps and variants left out: they have no hash."""
    return F.xxhash64(
        *(named(it.name) for it in df.schema.fields if not _has_map(it.dataType.simpleString()))
    )


def _has_map(kind: str) -> bool:
    return "map<" in kind or "variant" in kind


def _count(side: Side, parts: Mapping[int, int]) -> Column:
    """How many parts a row's key has: a function of its hash, so the same on both sides."""
    if min(parts.values()) < 1:
        raise ParameterError("salts", str(min(parts.values())), expected="a whole number >= 1", got="less")
    keys: dict[int, list[int]] = {}
    for key, count in parts.items():
        keys.setdefault(count, []).append(key)
    found = F.lit(1)
    for count, those in sorted(keys.items()):
        found = F.when(side.hash.isin(sorted(those)), F.lit(count)).otherwise(found)
    return found
