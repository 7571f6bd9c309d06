"""Lookups against DuckDB's left join: any keys, any partitioning, by a join and by a broadcast variable."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from common.engine.broadcast_tables import broadcast_table
from common.transforms.lookup import answer
from common.transforms.lookup_dimension import prepared_dimension
from common.transforms.lookup_hits import found_hits, joined_hits, variable_rows
from common.transforms.lookup_sides import lookup_sides
from common.transforms.lookup_spec import Duplicates, LookupSpec
from tests.examples import random_cases
from tests.keyed_tables import keyed_tables

WANTED = {
    "expand": "r",
    "first": "(SELECT a, b, min(y) AS y FROM r GROUP BY a, b)",
    "last": "(SELECT a, b, max(y) AS y FROM r GROUP BY a, b)",
}


def expected_rows(facts: pa.Table, dimension: pa.Table, duplicates: str, *, one_key: bool) -> Counter[Any]:
    with duckdb.connect() as connection:
        connection.register("l", facts)
        connection.register(
            "r", dimension.set_column(1, "b", pa.nulls(len(dimension), pa.int32())) if one_key else dimension
        )
        condition = "l.a = r2.a" if one_key else "l.a = r2.a AND l.b = r2.b"
        query = f"SELECT l.x, r2.y FROM l LEFT JOIN {WANTED[duplicates]} r2 ON {condition}"
        return Counter(map(tuple, connection.execute(query).fetchall()))


@random_cases(8)
@given(
    tables=keyed_tables(),
    duplicates=st.sampled_from(sorted(WANTED)),
    one_key=st.booleans(),
    partitions=st.integers(1, 4),
)
def test_both_ways_give_the_rows_of_duckdb(
    spark: SparkSession,
    tables: tuple[pa.Table, pa.Table],
    duplicates: Duplicates,
    one_key: bool,
    partitions: int,
) -> None:
    facts, dimension = (spark.createDataFrame(table).repartition(partitions) for table in tables)
    on = (("a", "a"),) if one_key else (("a", "a"), ("b", "b"))
    spec = LookupSpec(on, (("y", ""),), duplicates=duplicates, order=("y",))
    sides = lookup_sides(facts, dimension, spec)
    rows = prepared_dimension(sides, spec)
    with broadcast_table(variable_rows(sides, rows), workers=1, max_bytes=1 << 20) as table:
        ways = {
            "join": joined_hits(sides, rows, broadcast=True),
            "variable": found_hits(sides, rows, table.variable),
        }
        answers = [answer(hits, spec).select(F.lit(way), "x", "y") for way, hits in ways.items()]
        found = [tuple(row) for row in answers[0].union(answers[1]).collect()]
    expected = expected_rows(*tables, duplicates, one_key=one_key)
    for way in ways:
        assert Counter((x, y) for name, x, y in found if name == way) == expected, way
