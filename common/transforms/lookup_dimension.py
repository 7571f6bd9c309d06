"""The dimension of a lookup: the versions that count, one row for each key, and what is wrong with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from common.core.errors import ColumnTypeError
from common.transforms.columns import is_orderable, named
from common.transforms.lookup_sides import LookupSides, key_text
from common.transforms.lookup_spec import LookupSpec, Validity

# Columns of the prepared dimension: q0, q1, … keys, d0, d1, … taken ones, and this when a key has many rows.
NUMBER = "n"
_DAYS = (DateType, TimestampType, TimestampNTZType)
_WORD_BYTES = 8
_NESTED_BYTES = 64


def valid_rows(sides: LookupSides, spec: LookupSpec) -> DataFrame:
    """The rows of the dimension that count on the day, with the columns of `LookupSides.dimension`.

    Raises:
        ColumnMissingError, ColumnTypeError: the validity columns are absent, or hold no days.

    Plan:
        Lazy; a filter.
    """
    if spec.validity is None:
        return sides.dimension
    start, end = _bounds(sides, spec.validity)
    return sides.dimension.where(_is_valid(start, end, spec.validity.as_of))


def _bounds(sides: LookupSides, validity: Validity) -> tuple[Column, Column]:
    names = (validity.valid_from, validity.valid_to)
    inner = sides.inner(names)
    for name, column in zip(names, inner, strict=True):
        kind = sides.dimension.schema[column].dataType
        if not isinstance(kind, _DAYS):
            expected, hint = "a date or a timestamp", "declare it: --dimension-schema 'valid_from DATE, …'"
            raise ColumnTypeError("column", name, expected=expected, got=kind.simpleString(), hint=hint)
    start, end = map(named, inner)
    return start, end


def _is_valid(start: Column, end: Column, day: dt.date) -> Column:
    at = F.lit(day)
    return (start.isNull() | (start <= at)) & (end.isNull() | (at < end))


def prepared_dimension(sides: LookupSides, spec: LookupSpec, *, has_duplicates: bool = True) -> DataFrame:
    """The dimension as facts meet it.

    Args:
        sides: Both sides.
        spec: What is asked.
        has_duplicates: False when it is known that no key has two rows, so that none need be chosen.

    Returns:
        q0, q1, …: keys, none NULL; d0, d1, …: the taken columns; with `expand` also `n`: int, which counts
        the rows of each key from 1. Otherwise each key is there once, unless duplicates are to fail the run.

    Plan:
        Lazy. One shuffle of the dimension by key, and a sort in it, where a row must be chosen or counted.
        Guideline D4.
    """
    rows = valid_rows(sides, spec)
    keys = [named(name) for name in sides.dimension_keys]
    number: list[Column] = []
    if spec.duplicates == "expand":
        order = Window.partitionBy(*keys).orderBy(*keys)
        number = [F.row_number().over(order).alias(NUMBER)]
    elif spec.duplicates in ("first", "last") and has_duplicates:
        order = Window.partitionBy(*keys).orderBy(*_order(sides, spec))
        rows = rows.withColumn(NUMBER, F.row_number().over(order)).where(named(NUMBER) == 1)
    taken = [named(column).alias(f"d{at}") for at, (column, _) in enumerate(sides.taken)]
    return rows.select(*keys, *taken, *number)


def _order(sides: LookupSides, spec: LookupSpec) -> list[Column]:
    first = sides.inner(spec.order)
    others = [f"c{at}" for at in range(len(sides.dimension_names)) if f"c{at}" not in first]
    kinds = {name: sides.dimension.schema[name].dataType for name in (*first, *others)}
    # What has no order, such as a map, has one as text.
    values = [named(name) if is_orderable(kinds[name]) else named(name).cast("string") for name in kinds]
    last = spec.duplicates == "last"
    return [value.desc_nulls_last() if last else value.asc_nulls_last() for value in values]


def dimension_summary(sides: LookupSides, spec: LookupSpec) -> DataFrame:
    """What is known of the dimension before facts meet it: one row.

    Returns:
        `rows: bigint` that count and have a whole key, `keys: bigint`, `duplicates: bigint` rows besides the
        first of each key, `duplicate_keys: bigint`, `decoded_bytes: bigint` of keys and taken columns in
        memory, `most: struct<n, key>` and `first, last: struct<key, n>` of keys with several rows, as text.

    Plan:
        Lazy. One pass over keys and taken columns, one shuffle by key.
    """
    rows = valid_rows(sides, spec)
    widths = [named(name) for name in (*sides.dimension_keys, *(column for column, _ in sides.taken))]
    kinds = [*sides.kinds, *(sides.dimension.schema[column].dataType for column, _ in sides.taken)]
    size = sum((_bytes(value, kind) for value, kind in zip(widths, kinds, strict=True)), F.lit(_WORD_BYTES))
    keys = [named(name) for name in sides.dimension_keys]
    counted = rows.groupBy(*keys).agg(F.count(F.lit(1)).alias("n"), F.sum(size).alias("size"))
    several = named("n") > 1
    text = key_text(sides.dimension_keys)
    return counted.agg(
        F.coalesce(F.sum("n"), F.lit(0)).alias("rows"),
        F.count(F.lit(1)).alias("keys"),
        F.coalesce(F.sum(named("n") - 1), F.lit(0)).alias("duplicates"),
        F.count_if(several).alias("duplicate_keys"),
        F.coalesce(F.sum("size"), F.lit(0)).alias("decoded_bytes"),
        F.max(F.when(several, F.struct(named("n"), text.alias("key")))).alias("most"),
        F.min(F.when(several, F.struct(text.alias("key"), named("n")))).alias("first"),
        F.max(F.when(several, F.struct(text.alias("key"), named("n")))).alias("last"),
    )


def _bytes(value: Column, kind: DataType) -> Column:
    """A value in Arrow, about; exact for numbers, times and text."""
    if isinstance(kind, (StringType, BinaryType)):
        return F.coalesce(F.octet_length(value), F.lit(0)).cast("bigint") + _WORD_BYTES
    nested = isinstance(kind, (ArrayType, MapType, StructType)) or kind.typeName() == "variant"
    return F.lit(_NESTED_BYTES if nested else _WORD_BYTES)


def validity_summary(sides: LookupSides, spec: LookupSpec) -> DataFrame:
    """What is wrong with the versions of a slowly changing dimension: one row.

    Returns:
        For `empty` (from >= to), `overlapping` (two versions valid at once), `gap` (days between two versions
        of a key that have none) and `absent` (none valid on the day): `…_keys: bigint` and `…_first, …_last:
        string`, keys as text.

    Plan:
        Lazy. One shuffle by key, and a sort in it.
    """
    assert spec.validity is not None
    start, end = _bounds(sides, spec.validity)
    keys = [named(name) for name in sides.dimension_keys]
    earlier = (
        Window.partitionBy(*keys)
        .orderBy(start.asc_nulls_first(), end.asc_nulls_last())
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    follows = F.count(F.lit(1)).over(earlier) > 0
    ended, goes_on = F.max(end).over(earlier), F.max(end.isNull()).over(earlier)
    overlaps = start.isNull() | goes_on | (ended > start)
    empty = F.coalesce(start >= end, F.lit(False))
    rows = sides.dimension.select(
        *keys,
        empty.alias("empty"),
        F.coalesce(follows & overlaps, F.lit(False)).alias("overlapping"),
        (~empty & F.coalesce(~goes_on & (ended < start), F.lit(False))).alias("gap"),
        (~_is_valid(start, end, spec.validity.as_of)).alias("absent"),
    )
    anywhere = [F.bool_or(flag).alias(flag) for flag in ("empty", "overlapping", "gap")]
    by_key = rows.groupBy(*keys).agg(*anywhere, F.bool_and("absent").alias("absent"))
    text = key_text(sides.dimension_keys)
    flags = ("empty", "overlapping", "gap", "absent")
    return by_key.agg(*(part for flag in flags for part in _named(flag, text)))


def _named(flag: str, text: Column) -> Sequence[Column]:
    where = F.when(named(flag), text)
    return (
        F.count_if(named(flag)).alias(f"{flag}_keys"),
        F.min(where).alias(f"{flag}_first"),
        F.max(where).alias(f"{flag}_last"),
    )
