"""The fingerprint: equal for equal multisets of rows in any partitioning, another for another multiset."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from common.transforms.fingerprint import fingerprint, float_differences
from tests.frames import frame, no_actions, rows_of

NAN = float("nan")
ROWS = [(1, "a", 1.5), (2, None, NAN), (None, "b", None), (2, None, NAN)]
SCHEMA = "i INT, s STRING, d DOUBLE"


def taken(
    spark: SparkSession, rows: list[tuple[object, ...]], schema: str = SCHEMA, partitions: int = 1
) -> object:
    df = frame(spark, rows, schema, partitions=partitions)
    with no_actions():
        result = fingerprint(df)
    return rows_of(result)[0]


@pytest.mark.parametrize("partitions", [2, 5])
def test_partitioning_and_order_do_not_matter(spark: SparkSession, partitions: int) -> None:
    assert taken(spark, ROWS[::-1], partitions=partitions) == taken(spark, ROWS)


@pytest.mark.parametrize(
    ("a", "b", "schema"),
    [
        ([(None, 1)], [(1, None)], "x INT, y INT"),
        ([("ab", "c")], [("a", "bc")], "x STRING, y STRING"),
        ([("",)], [(None,)], "x STRING"),
        ([(0.0,)], [(NAN,)], "x DOUBLE"),
        ([(1,)], [(1,), (1,)], "x INT"),
        ([([1, None],)], [([None, 1],)], "x ARRAY<INT>"),
        ([((None, 1),)], [((1, None),)], "x STRUCT<a: INT, b: INT>"),
        ([({"a": 1},)], [({"a": 2},)], "x MAP<STRING, INT>"),
        ([], [(None,)], "x INT"),
    ],
)
def test_other_rows_give_another_fingerprint(
    spark: SparkSession, a: list[tuple[object, ...]], b: list[tuple[object, ...]], schema: str
) -> None:
    assert taken(spark, a, schema) != taken(spark, b, schema)


@pytest.mark.parametrize(
    ("a", "b", "schema"),
    [
        ([(0.0,)], [(-0.0,)], "x DOUBLE"),
        ([({"a": 1, "b": 2},)], [({"b": 2, "a": 1},)], "x MAP<STRING, INT>"),
    ],
)
def test_equal_values_in_other_clothes_are_equal(
    spark: SparkSession, a: list[tuple[object, ...]], b: list[tuple[object, ...]], schema: str
) -> None:
    assert taken(spark, a, schema) == taken(spark, b, schema)


def test_no_rows_have_a_fingerprint(spark: SparkSession) -> None:
    assert taken(spark, []) == (0, 0)


@pytest.mark.parametrize(
    ("left", "right", "count"),
    [
        ([("a", 1.0), (None, 2.0)], [("a", 1.0 + 1e-12), (None, 2.0)], 0),
        ([("a", 1.0)], [("a", 1.000001)], 1),
        ([("a", NAN), ("b", None)], [("a", NAN), ("b", None)], 0),
        ([("a", NAN)], [("a", 1.0)], 1),
        ([("a", float("inf"))], [("a", float("inf"))], 0),
        ([("a", float("inf"))], [("a", 1.0)], 1),
        ([("a", None)], [("a", 1.0)], 1),
        ([("a", 1.0)], [("b", 1.0)], 2),
        ([("a", 1.0), ("a", 5.0)], [("a", 5.0), ("a", 1.0)], 0),
        ([("a", 1.0), ("a", 1.0)], [("a", 1.0)], 1),
    ],
)
def test_floats_are_compared_by_key_within_a_tolerance(
    spark: SparkSession, left: list[tuple[object, ...]], right: list[tuple[object, ...]], count: int
) -> None:
    a, b = (frame(spark, rows, "k STRING, v DOUBLE", partitions=2) for rows in (left, right))
    with no_actions():
        result = float_differences(a, b, keys=["k"], columns=["v"], tolerance_ratio=1e-9)
    assert rows_of(result) == [(count,)]
