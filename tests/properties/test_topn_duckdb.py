"""Top-N against DuckDB: another engine, told in SQL what was asked."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from common.transforms.topn import window_top_n
from common.transforms.topn_aggregate import aggregate_top_n
from common.transforms.topn_prune import prune_top_n
from common.transforms.topn_rows import TopN
from tests.examples import random_cases
from tests.frames import frame, rows_of, shown

FUNCTIONS = {"first": "row_number", "all": "rank", "dense": "dense_rank"}
VALUES = [None, float("nan"), float("-inf"), -1.5, 0.0, 1.5, 2.0]
ROWS = st.lists(
    st.tuples(st.sampled_from([1, 2, None]), st.sampled_from(VALUES), st.integers(0, 3)), max_size=40
).map(lambda rows: [(id_, *row) for id_, row in enumerate(rows)])
SPECS = st.builds(
    TopN,
    score=st.just("v"),
    n=st.integers(1, 6),
    partition_by=st.just(("g",)),
    order=st.sampled_from(["desc", "asc"]),
    then_by=st.sampled_from([(), (("w", "asc"),), (("w", "desc"),)]),
    ties=st.sampled_from(["first", "all", "dense"]),
    nulls=st.sampled_from(["last", "first"]),
    tie_break=st.just(("id",)),
)


def by_duckdb(rows: list[tuple[Any, ...]], spec: TopN) -> Counter[tuple[Any, ...]]:
    scores = [("v", spec.order), *spec.then_by]
    order = [f"{name} {how} NULLS {spec.nulls}" for name, how in scores]
    order += ["id"] if spec.ties == "first" else []
    kinds = {"id": pa.int32(), "g": pa.int32(), "v": pa.float64(), "w": pa.int32()}
    table = pa.table(
        {name: pa.array([row[at] for row in rows], kind) for at, (name, kind) in enumerate(kinds.items())}
    )
    query = f"""
        SELECT *, {FUNCTIONS[spec.ties]}() OVER (PARTITION BY g ORDER BY {", ".join(order)}) AS place
        FROM asked QUALIFY place <= {spec.n}"""
    with duckdb.connect() as connection:
        connection.register("asked", table)
        return Counter(map(comparable, connection.execute(query).fetchall()))


def comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(shown, row))


@random_cases(10)
@given(rows=ROWS, spec=SPECS, partitions=st.sampled_from([1, 4]), one_in=st.sampled_from([1, 3]))
def test_every_strategy_equals_duckdb(
    spark: SparkSession, rows: list[tuple[Any, ...]], spec: TopN, partitions: int, one_in: int
) -> None:
    df = frame(spark, rows, "id INT, g INT, v DOUBLE, w INT", partitions=partitions)
    expected = by_duckdb(rows, spec)
    able = [window_top_n, partial(window_top_n, salts=2), partial(prune_top_n, one_in=one_in)]
    for strategy in [*able, *([aggregate_top_n] if spec.ties == "first" else [])]:
        assert Counter(map(comparable, rows_of(strategy(df, spec)))) == expected, strategy
