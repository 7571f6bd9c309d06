"""Joins with hot keys apart against DuckDB's join: any keys, any ways, any partitioning."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from common.transforms.join_sides import How, JoinSpec, joined_sides
from common.transforms.skew_join import Treatment, skew_join
from tests.examples import random_cases
from tests.frames import shown
from tests.keyed_tables import keyed_tables

SQL = {
    "inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN",
    "semi": "SEMI JOIN", "anti": "ANTI JOIN",
}  # fmt: skip


def expected_rows(left: pa.Table, right: pa.Table, how: How) -> Counter[Any]:
    with duckdb.connect() as connection:
        connection.register("l", left)
        connection.register("r", right)
        numbers = "l.x" if how in ("semi", "anti") else "l.x, r.y"
        query = f"SELECT {numbers} FROM l {SQL[how]} r ON l.a = r.a AND l.b = r.b"
        return Counter(map(tuple, connection.execute(query).fetchall()))


def mixed(left: DataFrame, right: DataFrame, spec: JoinSpec, salts: int) -> Treatment:
    """Every key goes one of five ways, by its hash; NULL keys go apart."""
    both = joined_sides(left, right, spec)
    hashes = {row[0] for side in (both.left, both.right) for row in side.rows.select(side.hash).collect()}
    by_way: list[set[int]] = [set(), set(), set(), set(), set()]
    for key in hashes:
        by_way[key % 5].add(key)
    return Treatment(
        broadcast_right=frozenset(by_way[1]),
        broadcast_left=frozenset(by_way[2]),
        split_left=dict.fromkeys(by_way[3], salts),
        split_right=dict.fromkeys(by_way[4], salts),
        nulls_apart=salts > 1,
    )


@pytest.mark.parametrize("how", SQL)
@random_cases(4)
@given(tables=keyed_tables(), salts=st.sampled_from([1, 4, 100]), partitions=st.integers(1, 5))
def test_the_rows_are_those_of_duckdb(
    spark: SparkSession, how: How, tables: tuple[pa.Table, pa.Table], salts: int, partitions: int
) -> None:
    left, right = (spark.createDataFrame(table).repartition(partitions) for table in tables)
    spec = JoinSpec((("a", "a"), ("b", "b")), how)
    answer = skew_join(left, right, spec, mixed(left, right, spec, salts))
    numbers = answer.select("x") if how in ("semi", "anti") else answer.select("x", "y")
    assert Counter(map(tuple, numbers.collect())) == expected_rows(*tables, how)


@random_cases(3)
@given(tables=keyed_tables())
def test_counts_of_hot_keys_are_exact(spark: SparkSession, tables: tuple[pa.Table, pa.Table]) -> None:
    from common.transforms.hot_keys import hot_key_counts, hot_keys_by_sketch

    left, right = (spark.createDataFrame(table).repartition(3) for table in tables)
    both = joined_sides(left, right, JoinSpec((("a", "a"), ("b", "b"))))
    found: dict[Any, list[int]] = {}
    for at, table in enumerate(tables):
        for row in table.to_pylist():
            pair = row["a"], row["b"]
            key = None if None in pair else (shown(0.0 if pair[0] == 0.0 else pair[0]), pair[1])
            found.setdefault(key, [0, 0])[at] += 1
    rows = [[row["left_rows"], row["right_rows"]] for row in hot_keys_by_sketch(both, share=0.001).collect()]
    assert sorted(rows) == sorted(found.values())
    texts = [(str(row["a"]), str(row["b"])) for table in tables for row in table.to_pylist()]
    rows = [[row["left_rows"], row["right_rows"]] for row in hot_key_counts(both, texts).collect()]
    assert sorted(rows) == sorted(found.values())
