"""Top-N against a plain-Python oracle: any rows, any settings, any partitioning, every strategy."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from common.engine.topn_heap import heap_top_n
from common.transforms.topn import sort_top_n, window_top_n
from common.transforms.topn_aggregate import aggregate_top_n
from common.transforms.topn_prune import prune_top_n
from common.transforms.topn_rows import TopN
from tests.examples import random_cases
from tests.frames import frame, rows_of

Row = tuple[Any, ...]

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.sampled_from([None, float("nan"), -1.0, -0.0, 0.0, 2.0, float("inf")]),
        st.sampled_from(["", "x", None]),
        st.sampled_from([None, 1, 2]),
    ),
    max_size=12,
)
SPECS = st.builds(
    TopN,
    score=st.just("v"),
    n=st.integers(0, 5),
    partition_by=st.sampled_from([(), ("g",)]),
    order=st.sampled_from(["desc", "asc"]),
    ties=st.sampled_from(["first", "all", "dense"]),
    nulls=st.sampled_from(["last", "first", "drop"]),
    nan=st.sampled_from(["largest", "drop"]),
    then_by=st.sampled_from([(), (("w", "asc"),), (("w", "desc"),)]),
)


def scores_key(row: Row, spec: TopN) -> tuple[tuple[int, int, float], ...]:
    further = tuple(score_key(row[3], spec, order) for _, order in spec.then_by)
    return (score_key(row[1], spec, spec.order), *further)


def score_key(value: float | None, spec: TopN, order: str) -> tuple[int, int, float]:
    """What sorts scores as the settings say, smallest first."""
    if value is None:
        return (0 if spec.nulls == "first" else 2, 0, 0.0)
    sign = -1 if order == "desc" else 1
    if math.isnan(value):
        return (1, sign, 0.0)
    return (1, 0, sign * value + 0.0)


def tie_key(row: Row, spec: TopN) -> tuple[tuple[bool, str], ...]:
    others = (row[0], row[2]) if spec.then_by else (row[0], row[2], row[3])
    return tuple((value is not None, str(value or "")) for value in others)


def ranked(rows: Sequence[Row], spec: TopN) -> Iterable[tuple[Row, int]]:
    rank, before = 0, None
    best_first = sorted(rows, key=lambda row: (scores_key(row, spec), tie_key(row, spec)))
    for place, row in enumerate(best_first, start=1):
        key = scores_key(row, spec)
        if spec.ties == "first":
            rank = place
        elif key != before:
            rank = place if spec.ties == "all" else rank + 1
        before = key
        if rank <= spec.n:
            yield row, rank


def oracle(rows: Sequence[Row], spec: TopN) -> Counter[tuple[Any, ...]]:
    parts: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        missing = row[1] is None or (spec.then_by and row[3] is None)
        dropped = (missing and spec.nulls == "drop") or (
            row[1] is not None and math.isnan(row[1]) and spec.nan == "drop"
        )
        if not dropped:
            parts[row[0] if spec.partition_by else None].append(row)
    return Counter((*shown(row), rank) for part in parts.values() for row, rank in ranked(part, spec))


def shown(row: Row) -> Row:
    return (row[0], "NaN" if row[1] is not None and math.isnan(row[1]) else row[1], *row[2:])


@random_cases(12)
@given(
    rows=ROWS,
    spec=SPECS,
    partitions=st.sampled_from([1, 2, 5]),
    flip=st.booleans(),
    one_in=st.sampled_from([1, 2, 64]),
    bound_limit=st.sampled_from([1, 100]),
    null_keys=st.booleans(),
    many_groups=st.booleans(),
)
def test_every_strategy_equals_the_oracle(
    spark: SparkSession,
    rows: list[Row],
    spec: TopN,
    partitions: int,
    flip: bool,
    one_in: int,
    bound_limit: int,
    null_keys: bool,
    many_groups: bool,
) -> None:
    df = frame(spark, rows, "g STRING, v DOUBLE, t STRING, w INT", partitions=partitions, flip=flip)
    expected = oracle(rows, spec)
    rates = {"one_in": one_in, "null_keys": null_keys, "many_groups": many_groups}
    pruned = partial(prune_top_n, **rates, bound_limit=bound_limit)
    able = [window_top_n, partial(window_top_n, salts=3), heap_top_n, pruned]
    if not spec.partition_by and spec.ties == "first":
        able.append(sort_top_n)
    if spec.ties == "first":
        able.append(aggregate_top_n)
    for strategy in able:
        answer = Counter((*shown(row[:4]), row[4]) for row in rows_of(strategy(df, spec)))
        assert answer == expected, strategy
