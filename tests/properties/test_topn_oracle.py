"""Top-N against a plain-Python oracle: any rows, any settings, any partitioning, every strategy."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from common.engine.topn_heap import heap_top_n
from common.transforms.topn import TopN, sort_top_n, window_top_n
from tests.frames import frame, rows_of

Row = tuple[Any, ...]

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.sampled_from([None, float("nan"), -1.0, -0.0, 0.0, 2.0, float("inf")]),
        st.sampled_from(["", "x", None]),
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
)


def score_key(value: float | None, spec: TopN) -> tuple[int, int, float]:
    """What sorts scores as the settings say, smallest first."""
    if value is None:
        return (0 if spec.nulls == "first" else 2, 0, 0.0)
    sign = -1 if spec.order == "desc" else 1
    if math.isnan(value):
        return (1, sign, 0.0)
    return (1, 0, sign * value + 0.0)


def tie_key(row: Row) -> tuple[tuple[bool, str], ...]:
    return tuple((text is not None, text or "") for text in (row[0], row[2]))


def ranked(rows: Sequence[Row], spec: TopN) -> Iterable[tuple[Row, int]]:
    rank, before = 0, None
    best_first = sorted(rows, key=lambda row: (score_key(row[1], spec), tie_key(row)))
    for place, row in enumerate(best_first, start=1):
        key = score_key(row[1], spec)
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
        dropped = (row[1] is None and spec.nulls == "drop") or (
            row[1] is not None and math.isnan(row[1]) and spec.nan == "drop"
        )
        if not dropped:
            parts[row[0] if spec.partition_by else None].append(row)
    return Counter((*shown(row), rank) for part in parts.values() for row, rank in ranked(part, spec))


def shown(row: Row) -> Row:
    return (row[0], "NaN" if row[1] is not None and math.isnan(row[1]) else row[1], row[2])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, spec=SPECS, partitions=st.sampled_from([1, 2, 5]), flip=st.booleans())
def test_every_strategy_equals_the_oracle(
    spark: SparkSession, rows: list[Row], spec: TopN, partitions: int, flip: bool
) -> None:
    df = frame(spark, rows, "g STRING, v DOUBLE, t STRING", partitions=partitions, flip=flip)
    expected = oracle(rows, spec)
    able = (
        [window_top_n, heap_top_n]
        if spec.partition_by or spec.ties != "first"
        else [window_top_n, heap_top_n, sort_top_n]
    )
    for strategy in able:
        answer = Counter((*shown(row[:3]), row[3]) for row in rows_of(strategy(df, spec)))
        assert answer == expected, strategy.__name__
