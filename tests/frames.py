"""Frames for tests: literal rows in any number of partitions, and a guard against hidden actions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any
from unittest.mock import PropertyMock, patch

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

_ACTIONS = (
    "checkpoint",
    "collect",
    "count",
    "first",
    "foreach",
    "foreachPartition",
    "head",
    "isEmpty",
    "localCheckpoint",
    "show",
    "tail",
    "take",
    "toArrow",
    "toLocalIterator",
    "toPandas",
)
_PROPERTIES = ("rdd", "write", "writeStream")
# Spark 4.3 asks which zone its timestamps are of; before, it is UTC.
_ZONE = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


def frame(
    spark: SparkSession,
    rows: Sequence[Sequence[Any]],
    schema: str,
    *,
    partitions: int = 1,
    flip: bool = False,
) -> DataFrame:
    """The rows in exactly so many partitions; `flip` turns their order round.

    They go over as Arrow: a list of tuples would start a Python worker for every task that reads it.
    """
    kinds = StructType.fromDDL(schema)
    columns = to_arrow_schema(kinds, **_ZONE)
    ordered = list(reversed(rows)) if flip else list(rows)
    values = [pa.array([row[at] for row in ordered], column.type) for at, column in enumerate(columns)]
    df = spark.createDataFrame(pa.Table.from_arrays(values, schema=columns), kinds)
    return df.coalesce(1) if partitions == 1 else df.repartition(partitions)


@contextmanager
def no_actions() -> Iterator[None]:
    """Within: any action on a DataFrame fails the test."""

    def refuse(self: DataFrame, *args: object, **kwargs: object) -> None:
        raise AssertionError("a transform ran an action")

    from pyspark.sql.classic.dataframe import DataFrame as Classic

    patches = [patch.object(Classic, name, refuse) for name in _ACTIONS if hasattr(Classic, name)]
    patches += [
        patch.object(Classic, name, new_callable=PropertyMock, side_effect=AssertionError("not a transform"))
        for name in _PROPERTIES
    ]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


def rows_of(df: DataFrame) -> list[tuple[Any, ...]]:
    """The rows as plain tuples."""
    return [tuple(row) for row in df.collect()]


def shown(value: object) -> object:
    """The value as it can be compared: NaN does not equal even itself."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
