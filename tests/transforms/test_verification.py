"""--verify finds what it is there to find."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from common.core.errors import DifferenceError
from common.runs.verification import verify
from tests.frames import frame

ROWS = [("a", 1.0), ("b", 2.0), (None, 3.0)]
SCHEMA = "k STRING, v DOUBLE"


def test_equal_answers(spark: SparkSession) -> None:
    report = verify(
        frame(spark, ROWS, SCHEMA, partitions=3), frame(spark, ROWS, SCHEMA, flip=True), approximate=["v"]
    )
    assert report["planned"]["row_count"] == 3
    assert report["planned"] == report["plain"]
    assert (report["compared_within_1e-9"], report["float_differences"]) == (["v"], 0)


@pytest.mark.parametrize(
    "other",
    [
        ROWS[:2],
        [*ROWS, ROWS[0]],
        [("a", 1.0), ("b", 2.0), ("c", 3.0)],
        [("a", 1.0), ("b", 2.0), (None, 3.0000001)],
    ],
)
@pytest.mark.parametrize("approximate", [[], ["v"]])
def test_a_planted_fault_is_found(
    spark: SparkSession, other: list[tuple[object, ...]], approximate: list[str]
) -> None:
    with pytest.raises(DifferenceError, match="nothing was published") as caught:
        verify(frame(spark, other, SCHEMA), frame(spark, ROWS, SCHEMA), approximate=approximate)
    assert caught.value.exit_code == 6


def test_last_digits_of_float_sums_are_no_difference_where_declared(spark: SparkSession) -> None:
    near = [(key, value * (1 + 1e-13)) for key, value in ROWS]
    verify(frame(spark, near, SCHEMA), frame(spark, ROWS, SCHEMA), approximate=["v"])
    with pytest.raises(DifferenceError):
        verify(frame(spark, near, SCHEMA), frame(spark, ROWS, SCHEMA))


def test_another_type_is_a_difference(spark: SparkSession) -> None:
    df = frame(spark, [(1,)], "v INT")
    with pytest.raises(DifferenceError, match=r"expected the plain plan's v int, got v bigint"):
        verify(df.select(F.col("v").cast("bigint")), df)


def test_exact_columns_stay_exact_though_named_approximate(spark: SparkSession) -> None:
    with pytest.raises(DifferenceError):
        verify(frame(spark, [(1,)], "v INT"), frame(spark, [(2,)], "v INT"), approximate=["v"])
