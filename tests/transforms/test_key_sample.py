"""A sample of a join's keys: all rows of those that are in it, on both sides."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from common.core.errors import ParameterError
from common.transforms.columns import named
from common.transforms.join_sides import JoinSpec, joined_sides
from common.transforms.key_sample import keyed_sample
from tests.frames import frame, rows_of

SPEC = JoinSpec((("k", "k"),))


def test_a_sample_of_keys_has_all_their_rows_on_both_sides(spark: SparkSession) -> None:
    # Five hundred keys of three rows each, and five hundred rows without one; on the right they are text.
    left = spark.range(2000).selectExpr("IF(id < 1500, id DIV 3, NULL) AS k", "id AS x")
    right = spark.range(500).selectExpr("concat('0', id) AS k", "id AS y")
    side = joined_sides(left, right, SPEC).left
    (seven,) = side.rows.where(named(side.keys[0]) == 7).select(side.hash).first() or ()
    ours, theirs = keyed_sample(left, right, SPEC, one_in=10, always=[seven])
    rows = rows_of(
        ours.selectExpr("'l' AS side", "k").unionAll(theirs.selectExpr("'r'", "CAST(k AS BIGINT)"))
    )
    found = {side: Counter(k for of, k in rows if of == side) for side in "lr"}
    nulls = found["l"].pop(None)
    assert set(found["l"]) == set(found["r"])
    assert (set(found["l"].values()), found["l"][7]) == ({3}, 3)
    assert 25 <= len(found["r"]) <= 75
    assert 25 <= nulls <= 75


def test_frames_of_keys_alone_and_wrong_numbers(spark: SparkSession) -> None:
    both = frame(spark, [(1,), (2,), (None,)], "k INT")
    ours, _ = keyed_sample(both, both, SPEC, one_in=1)
    assert sorted(rows_of(ours), key=repr) == [(1,), (2,), (None,)]
    with pytest.raises(ParameterError, match="expected a whole number >= 1, got 0"):
        keyed_sample(both, both, SPEC, one_in=0)
