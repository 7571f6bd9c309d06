"""Shares of the total: they add up to 1, and say what is left out."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from common.core.errors import ColumnTypeError, ParameterError
from common.transforms.topn import window_top_n
from common.transforms.topn_rows import TopN
from common.transforms.topn_share import with_share
from tests.frames import frame, no_actions, rows_of

ROWS = [("a", "x", 5), ("a", "y", 3), ("a", "z", 1), ("a", "w", 1), ("b", "x", 4), (None, "v", 2)]


def shares(
    spark: SparkSession, rows: list[tuple[object, ...]], schema: str, spec: TopN
) -> list[tuple[object, ...]]:
    df = frame(spark, rows, schema, partitions=3)
    with no_actions():
        answer = with_share(window_top_n(df, spec), df, spec)
    return sorted(rows_of(answer), key=str)


def test_within_partitions(spark: SparkSession) -> None:
    spec = TopN("v", n=2, partition_by=("g",))
    assert shares(spark, ROWS, "g STRING, k STRING, v INT", spec) == [
        ("a", "others", 2, None, 0.2),
        ("a", "x", 5, 1, 0.5),
        ("a", "y", 3, 2, 0.3),
        ("b", "x", 4, 1, 1.0),
        (None, "v", 2, 1, 1.0),
    ]


def test_of_all_rows_and_of_groups(spark: SparkSession) -> None:
    spec = TopN("sum(v) AS total", n=1, group_by=("g",))
    assert shares(spark, ROWS, "g STRING, k STRING, v INT", spec) == [
        ("a", 10, 1, 0.625),
        ("others", 6, None, 0.375),
    ]


def test_no_rows_are_shown(spark: SparkSession) -> None:
    spec = TopN("v", n=0, columns=("k", "v"))
    assert shares(spark, ROWS, "g STRING, k STRING, v INT", spec) == [("others", 16, None, 1.0)]


def test_no_rows_at_all(spark: SparkSession) -> None:
    assert shares(spark, [], "k STRING, v INT", TopN("v")) == []


def test_rows_without_a_score_have_no_share(spark: SparkSession) -> None:
    rows = [("a", 6), ("b", None), ("c", 2)]
    assert shares(spark, rows, "k STRING, v INT", TopN("v", n=3)) == [  # type: ignore[arg-type]
        ("a", 6, 1, 0.75),
        ("b", None, 3, None),
        ("c", 2, 2, 0.25),
    ]


def test_a_total_of_zero_has_no_shares(spark: SparkSession) -> None:
    rows = [("a", 1), ("b", -1)]
    assert shares(spark, rows, "k STRING, v INT", TopN("v", n=1)) == [  # type: ignore[arg-type]
        ("a", 1, 1, None),
        ("others", -1, None, None),
    ]


def test_totals_beyond_the_type_of_the_score(spark: SparkSession) -> None:
    big = 2_000_000_000
    rows = [("a", big), ("b", big), ("c", big)]
    found = shares(spark, rows, "k STRING, v INT", TopN("v", n=1))  # type: ignore[arg-type]
    assert found == [("a", big, 1, pytest.approx(1 / 3)), ("others", 2 * big, None, pytest.approx(2 / 3))]


def test_decimals_stay_exact(spark: SparkSession) -> None:
    rows = [("a", Decimal("0.1")), ("b", Decimal("0.2")), ("c", Decimal("0.7"))]
    found = shares(spark, rows, "k STRING, v DECIMAL(5,1)", TopN("v", n=1))  # type: ignore[arg-type]
    assert found == [("c", Decimal("0.7"), 1, 0.7), ("others", Decimal("0.3"), None, 0.3)]


@pytest.mark.parametrize(
    ("schema", "spec", "error", "words"),
    [
        ("k INT, v STRING", TopN("v"), ColumnTypeError, "a number"),
        ("k INT, v INT", TopN("v", columns=("k",)), ParameterError, "no v"),
        ("k INT, v INT", TopN("v", columns=("v",), partition_by=("k",)), ParameterError, "no k"),
        ("share INT, v INT", TopN("v"), ParameterError, "called share"),
    ],
)
def test_what_has_no_shares(
    spark: SparkSession, schema: str, spec: TopN, error: type[Exception], words: str
) -> None:
    df = frame(spark, [], schema)
    with pytest.raises(error, match=words):
        with_share(window_top_n(df, spec), df, spec)
