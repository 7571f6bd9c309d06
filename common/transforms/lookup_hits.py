"""Facts beside what the dimension has for them: by a join, or by a broadcast variable in Python workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
)

from common.core.errors import StrategyError
from common.transforms.columns import named
from common.transforms.join_keys import any_null, canonical, key_hash, same_key
from common.transforms.lookup_dimension import NUMBER
from common.transforms.lookup_sides import LookupSides
from common.transforms.lookup_table import HASH, Layout, finder

# Whether a fact has a match; only facts without one, and the first row of each of the others, are `FIRST`.
FOUND, FIRST = "found", "first"
_HIT = "hit"
_WHOLE = (ByteType, ShortType, IntegerType, LongType)


@dataclass(frozen=True)
class Hits:
    """Facts with what was found.

    Attributes:
        rows: f0, f1, … and k0, k1, … of the facts, d0, d1, … of the dimension, `found: boolean`, and
            `first: boolean`, which is true once for each fact.
        sides: What they come from.
    """

    rows: DataFrame
    sides: LookupSides


def joined_hits(sides: LookupSides, dimension: DataFrame, *, broadcast: bool) -> Hits:
    """Find by Spark's left join.

    Args:
        sides: Both sides.
        dimension: As `prepared_dimension` makes it.
        broadcast: Send the dimension to every task; False leaves the kind of join to Spark.

    Plan:
        Lazy. A broadcast of the dimension and no shuffle of the facts; else at most one shuffle of each.
        Guidelines K3, K5.
    """
    right = dimension.withColumn(_HIT, F.lit(True))
    condition = same_key(sides.fact_keys, sides.dimension_keys)
    joined = sides.facts.join(F.broadcast(right) if broadcast else right, condition, "left")
    return _hits(sides, joined, F.coalesce(named(_HIT), F.lit(False)), has_number=NUMBER in right.columns)


def variable_rows(sides: LookupSides, dimension: DataFrame) -> DataFrame:
    """The dimension as a broadcast variable holds it: its hash first.

    Args:
        sides: Both sides.
        dimension: As `prepared_dimension` makes it.

    Raises:
        StrategyError: keys without a hash that goes by equality.

    Plan:
        Lazy and narrow.
    """
    return dimension.select(
        _hash(sides, sides.dimension_keys).alias(HASH), *map(named, layout_of(sides, dimension).keys),
        *(named(name) for name in dimension.columns if name not in sides.dimension_keys),
    )  # fmt: skip


def layout_of(sides: LookupSides, dimension: DataFrame) -> Layout:
    """What `variable_rows` puts where."""
    values = tuple(name for name in dimension.columns if name not in sides.dimension_keys)
    keys = () if _hash_is_key(sides) else sides.dimension_keys
    return Layout(keys, values, expands=NUMBER in dimension.columns)


def found_hits(sides: LookupSides, dimension: DataFrame, variable: Any) -> Hits:
    """Find in a broadcast variable, in Python workers.

    Args:
        sides: Both sides.
        dimension: As `prepared_dimension` makes it; only its columns matter here.
        variable: A broadcast variable of `variable_rows`.

    Raises:
        StrategyError: keys without a hash that goes by equality.

    Plan:
        Lazy. One Arrow UDF, to which only the hash and the keys of a fact go; no shuffle. Guideline D9.
    """
    layout = layout_of(sides, dimension)
    kind: DataType = StructType(
        [StructField(name, _nullable(dimension.schema[name].dataType)) for name in layout.values]
    )
    udf: Any = F.arrow_udf  # type: ignore[attr-defined]  # the stubs lack it
    find = udf(finder(variable, layout), ArrayType(kind) if layout.expands else kind)
    keys = [named(name) for name in sides.fact_keys] if layout.keys else []
    kinds = zip(keys, sides.kinds, strict=False)
    hit = find(_hash(sides, sides.fact_keys), *(canonical(key, kind) for key, kind in kinds))
    if layout.expands:
        rows = sides.facts.withColumn(_HIT, hit).select("*", F.inline_outer(named(_HIT))).drop(_HIT)
        return _hits(sides, rows, named(NUMBER).isNotNull(), has_number=True)
    rows = sides.facts.withColumn(_HIT, hit)
    values = [named(_HIT).getField(name).alias(name) for name in layout.values]
    rows = rows.select(*map(named, sides.facts.columns), *values, named(_HIT).isNotNull().alias(_HIT))
    return _hits(sides, rows, named(_HIT), has_number=False)


def _hits(sides: LookupSides, rows: DataFrame, found: Column, *, has_number: bool) -> Hits:
    taken = [named(f"d{at}") for at in range(len(sides.taken))]
    first = F.coalesce(named(NUMBER) == 1, F.lit(True)) if has_number else F.lit(True)
    own = map(named, sides.facts.columns)
    return Hits(rows.select(*own, *taken, found.alias(FOUND), first.alias(FIRST)), sides)


def _hash_is_key(sides: LookupSides) -> bool:
    """One whole number needs no hash, and no second comparison."""
    return len(sides.kinds) == 1 and isinstance(sides.kinds[0], _WHOLE)


def _hash(sides: LookupSides, names: tuple[str, ...]) -> Column:
    """NULL where a part of the key is."""
    if not sides.is_hashable:
        raise StrategyError(
            "strategy",
            "variable",
            expected="keys whose equal values have one hash",
            got=", ".join(kind.simpleString() for kind in sides.kinds),
            hint="use join or auto",
        )
    if _hash_is_key(sides):
        return named(names[0]).cast("bigint")
    hashed = key_hash(zip(map(named, names), sides.kinds, strict=True))
    return F.when(~any_null(names), hashed)


def _nullable(kind: DataType) -> DataType:
    """The type with NULL allowed everywhere, as Arrow from Python has it."""
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType))
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _nullable(field.dataType)) for field in kind.fields])
    return kind
