"""Aggregations against plain Python: any rows, any partitioning, any salts, one stage and two."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from common.transforms.two_stage import Aggregation, plain_aggregate, two_stage_aggregate
from tests.examples import random_cases
from tests.frames import frame, rows_of, shown

Row = tuple[Any, ...]
NAN = float("nan")
VALUES = [None, NAN, -1.5, -0.0, 0.0, 2.0, float("inf")]
# Many groups in one frame: each example is a hundred cases.
ROWS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.sampled_from([None, NAN, -0.0, 0.0, 7.0]),
        st.sampled_from(VALUES),
        st.sampled_from([None, 1, 2, 3, 4, 5, 6, 7]),
    ),
    max_size=150,
)
ASKED = (
    "count(*)", "count(distinct v)", "count(distinct w)", "sum(w)", "percentile(v, 0.5)",
    "percentile(w, array(0.1, 0.75))", "median(w) filter (where w > 2)", "mode(v)", "mode(w)",
    "collect_set(v)", "collect_list(w)",
)  # fmt: skip


def rank(value: float) -> tuple[bool, float]:
    return (math.isnan(value), 0.0 if math.isnan(value) else value)


def percentile(values: Sequence[float], share: float) -> float | None:
    """Linear interpolation between the two nearest ranks; NaN is the largest number."""
    if not values:
        return None
    ordered, place = sorted(values, key=rank), share * (len(values) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    if rank(low) == rank(high):
        return low
    return (math.ceil(place) - place) * low + (place - math.floor(place)) * high


def mode(values: Sequence[Any]) -> Any:
    counts = Counter(shown(value) for value in values)
    most = max(counts.values(), default=0)
    return min((value for value, count in counts.items() if count == most), key=last, default=None)


def last(value: Any) -> tuple[bool, float]:
    return (value == "NaN", 0.0 if value == "NaN" else value)


def expected(rows: Sequence[Row]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for case, g, *values in rows:
        groups[(case, shown(g))].append(tuple(values))
    answer = {}
    for key, members in groups.items():
        v = [value for value, _ in members if value is not None]
        w = [value for _, value in members if value is not None]
        answer[key] = [
            len(members),
            len({shown(value) for value in v}),
            len(set(w)),
            sum(w) if w else None,
            percentile(v, 0.5),
            [percentile(w, 0.1), percentile(w, 0.75)] if w else None,
            percentile([value for value in w if value > 2], 0.5),
            mode(v),
            mode(w),
            sorted({shown(value) for value in v}, key=last),
            sorted(w),
        ]
    return answer


def comparable(value: Any) -> Any:
    return [shown(item) for item in value] if isinstance(value, list) else shown(value)


@random_cases(4)
@given(
    rows=ROWS,
    partitions=st.sampled_from([1, 4]),
    flip=st.booleans(),
    salts=st.sampled_from([1, 4, 100]),
    one_in=st.sampled_from([1, 3]),
)
def test_one_stage_and_two_equal_the_oracle(
    spark: SparkSession, rows: list[Row], partitions: int, flip: bool, salts: int, one_in: int
) -> None:
    schema = "case INT, g DOUBLE, v DOUBLE, w INT"
    df = frame(spark, rows, schema, partitions=partitions, flip=flip)
    spec = Aggregation(ASKED, ("case", "g"))
    right = expected(rows)
    for answer in (
        plain_aggregate(df, spec),
        two_stage_aggregate(df, spec, salts=salts, hot_rows=1, one_in=one_in),
    ):
        found = {(row[0], shown(row[1])): list(map(comparable, row[2:])) for row in rows_of(answer)}
        assert found.keys() == right.keys()
        for key, values in found.items():
            assert values == [approximately(comparable(value)) for value in right[key]], key


def approximately(value: Any) -> Any:
    """Interpolation may round otherwise in the last digit."""
    floats = value if isinstance(value, list) else [value]
    finite = all(isinstance(it, float) and math.isfinite(it) for it in floats)
    return pytest.approx(value) if floats and finite else value
