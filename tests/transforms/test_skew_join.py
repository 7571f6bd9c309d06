"""Joins with hot keys apart: the rows of the plain join, whatever is treated how."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from common.core.errors import ColumnMissingError, ColumnTypeError, ParameterError, StrategyError
from common.transforms.columns import named
from common.transforms.hot_keys import asked_key_counts
from common.transforms.join_sides import How, JoinSpec, joined_sides
from common.transforms.skew_join import Treatment, plain_join, skew_join
from tests.frames import frame, no_actions, rows_of, shown

HOWS: tuple[How, ...] = ("inner", "left", "right", "full", "semi", "anti")
NAN = float("nan")
ON_K = (("k", "k"),)


def hashes(left: DataFrame, right: DataFrame, spec: JoinSpec, *keys: Any) -> list[int]:
    """The hashes of these values of the first key column, in this order; all are on one of the sides."""
    both = joined_sides(left, right, spec)
    sides = [side.rows.select(named(side.keys[0]), side.hash) for side in (both.left, both.right)]
    found = {shown(0.0 if key == 0.0 else key): value for key, value in rows_of(sides[0].union(sides[1]))}
    return [found[shown(key)] for key in keys]


def each_its_way(keys: Sequence[int]) -> Treatment:
    """Every fourth key is treated alike, and NULL goes apart."""
    return Treatment(
        broadcast_right=frozenset(keys[::4]),
        broadcast_left=frozenset(keys[1::4]),
        split_left=dict.fromkeys(keys[2::4], 4),
        split_right=dict.fromkeys(keys[3::4], 4),
        nulls_apart=True,
    )


def sorted_rows(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(shown, row)) for row in rows_of(df)), key=repr)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", [("A", 1, 7), ("A", 2, 7), ("A", 3, 7)]),
        ("left", [("A", 1, 7), ("A", 2, 7), ("A", 3, 7), ("B", 4, None), (None, 5, None)]),
        ("right", [("A", 1, 7), ("A", 2, 7), ("A", 3, 7), ("C", None, 8)]),
        ("full", [("A", 1, 7), ("A", 2, 7), ("A", 3, 7), ("B", 4, None), ("C", None, 8), (None, 5, None)]),
        ("semi", [("A", 1), ("A", 2), ("A", 3)]),
        ("anti", [("B", 4), (None, 5)]),
    ],
)
def test_c1_every_kind_of_join(spark: SparkSession, how: How, expected: list[Any]) -> None:
    """The case once for each way, and once for cold keys: A becomes A0 to A4."""
    ways = range(5)

    def each(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return [(k and f"{k}{way}", *rest) for k, *rest in rows for way in ways]

    left = frame(spark, each([("A", 1), ("A", 2), ("A", 3), ("B", 4), (None, 5)]), "k STRING, x INT")
    right = frame(spark, each([("A", 7), ("C", 8)]), "k STRING, y INT")
    spec = JoinSpec(ON_K, how)
    hot = hashes(left, right, spec, *(f"{k}{way}" for k in "ABC" for way in range(4)))
    with no_actions():
        answer = skew_join(left, right, spec, each_its_way(hot))
    assert sorted_rows(answer) == sorted(each(expected), key=repr)


def test_c2_every_salt_finds_its_partner(spark: SparkSession) -> None:
    left = spark.range(1000).selectExpr("concat('A', id % 3) AS k", "id")
    right = frame(spark, [("A0", 1), ("A1", 2), ("A2", 3)], "k STRING, y INT")
    hot = hashes(right, right, JoinSpec(ON_K), "A0", "A1", "A2")
    treatment = Treatment(split_left=dict(zip(hot, (1, 7, 1000), strict=True)))
    assert skew_join(left, right, JoinSpec(ON_K), treatment).count() == 1000
    with pytest.raises(ParameterError, match="expected a whole number >= 1"):
        skew_join(left, right, JoinSpec(ON_K), Treatment(split_left=dict.fromkeys(hot, 0)))


@pytest.mark.parametrize(("how", "expected"), [("semi", [0, 1, 2, 3, 4]), ("anti", [])])
def test_c3_semi_and_anti_never_multiply(spark: SparkSession, how: How, expected: list[Any]) -> None:
    left = frame(spark, [(key,) for key in range(5)], "k BIGINT")
    right = spark.range(500).selectExpr("id % 5 AS k", "id")
    spec = JoinSpec(ON_K, how)
    answer = skew_join(left, right, spec, each_its_way(hashes(left, left, spec, *range(4))))
    assert sorted(key for (key,) in rows_of(answer)) == expected


def test_c5_a_row_has_one_salt_however_it_is_partitioned(spark: SparkSession) -> None:
    from common.transforms.join_salts import salted

    found = []
    for partitions, flip in ((1, False), (7, True)):
        rows = frame(
            spark, [("A", n) for n in range(200)], "k STRING, x INT", partitions=partitions, flip=flip
        )
        side = joined_sides(rows, rows, JoinSpec(ON_K)).left
        hot = hashes(rows, rows, JoinSpec(ON_K), "A")
        found.append(sorted(rows_of(salted(side, "s", split=dict.fromkeys(hot, 4), copied={}).rows)))
    assert found[0] == found[1]
    assert {salt for _, _, salt in found[0]} == {0, 1, 2, 3}


def test_c6_decimals_against_text_are_compared_exactly(spark: SparkSession) -> None:
    texts = ["12345678901234567891", "12345678901234567892"]
    right = frame(spark, [(text,) for text in texts], "k STRING")
    left = right.selectExpr("CAST(k AS DECIMAL(20,0)) AS k")
    sides = joined_sides(left, right, JoinSpec(ON_K))
    assert sides.casts == ("left k: decimal(20,0) -> decimal(38,18)", "right k: string -> decimal(38,18)")
    both = hashes(left, right, JoinSpec(ON_K), *map(Decimal, texts))
    for treatment in (each_its_way(both), each_its_way([0, 0, *both])):
        assert sorted(rows_of(skew_join(left, right, JoinSpec(ON_K), treatment))) == [
            (Decimal(text),) for text in texts
        ]


def test_c6_whole_numbers_against_text(spark: SparkSession) -> None:
    left = frame(spark, [(key,) for key in range(5)], "k BIGINT")
    right = frame(spark, [("000", 0), ("01", 1), ("2", 2), ("+3", 3), (" 4 ", 4)], "k STRING, y INT")
    treatment = each_its_way(hashes(left, right, JoinSpec(ON_K), *range(4)))
    answer = skew_join(left, right, JoinSpec(ON_K), treatment)
    assert sorted(rows_of(answer)) == [(key, key) for key in range(5)]
    broken = skew_join(left, frame(spark, [("abc", 1)], "k STRING, y INT"), JoinSpec(ON_K), Treatment())
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        broken.collect()


@pytest.mark.parametrize(
    ("left", "right"),
    [("BIGINT", "DOUBLE"), ("TIMESTAMP", "TIMESTAMP_NTZ"), ("DECIMAL(38,0)", "DECIMAL(38,9)")],
)
def test_keys_that_no_type_holds_exactly_are_refused(spark: SparkSession, left: str, right: str) -> None:
    ours, theirs = frame(spark, [], f"k {left}"), frame(spark, [], f"k {right}")
    with pytest.raises(
        ColumnTypeError, match="join key `k`: expected types that hold the same values exactly"
    ):
        plain_join(ours, theirs, JoinSpec(ON_K))


def test_c7_signed_zeros_and_nan_are_keys(spark: SparkSession) -> None:
    left = frame(spark, [(0.0, 1), (-0.0, 2), (NAN, 3)], "k DOUBLE, x INT")
    right = frame(spark, [(0.0, 7), (NAN, 8)], "k DOUBLE, y INT")
    zero, nan = hashes(left, right, JoinSpec(ON_K), 0.0, NAN)
    for treatment in (each_its_way([zero, 0, nan]), each_its_way([0, zero, 0, nan])):
        answer = skew_join(left, right, JoinSpec(ON_K), treatment)
        assert sorted((x, y) for _, x, y in rows_of(answer)) == [(1, 7), (2, 7), (3, 8)]


def test_c13_names_that_clash(spark: SparkSession) -> None:
    left = frame(spark, [(1, "a", 10, 0.5)], "k INT, v STRING, salt INT, left_salt DOUBLE")
    right = frame(spark, [(1, "b", 20, 30)], "K INT, V STRING, salt INT, right_v INT")
    spec = JoinSpec((("k", "K"),))
    answer = skew_join(left, right, spec, Treatment(split_left={hashes(left, right, spec, 1)[0]: 2}))
    assert answer.columns == ["k", "v", "salt", "left_salt", "_right_V", "right_salt", "right_v"]
    assert rows_of(answer) == [(1, "a", 10, 0.5, "b", 20, 30)]
    chosen = skew_join(left, right, JoinSpec((("k", "K"),), select=("right_salt", "SALT")), Treatment())
    assert (chosen.columns, rows_of(chosen)) == (["right_salt", "salt"], [(20, 10)])


@pytest.mark.parametrize("how", HOWS)
def test_a_frame_joined_with_itself_by_columns_of_other_names(spark: SparkSession, how: How) -> None:
    both = frame(spark, [(1, 2), (2, 1), (3, 1), (4, None)], "a INT, b INT")
    spec = JoinSpec((("a", "b"),), how)
    matched = [(1, 2, 2, 1), (1, 2, 3, 1), (2, 1, 1, 2)]
    left_only, right_only = [(3, 1, None, None), (4, None, None, None)], [(None, None, 4, None)]
    expected = {
        "inner": matched,
        "left": matched + left_only,
        "right": matched + right_only,
        "full": matched + left_only + right_only,
        "semi": [(1, 2), (2, 1)],
        "anti": [(3, 1), (4, None)],
    }[how]
    one, three = hashes(both, both, spec, 1, 3)
    treatment = Treatment(broadcast_right=frozenset({one}), split_right={three: 2}, nulls_apart=True)
    assert sorted_rows(skew_join(both, both, spec, treatment)) == sorted(expected, key=repr)
    if how not in ("semi", "anti"):
        assert plain_join(both, both, spec).columns == ["a", "b", "right_a", "right_b"]


def test_several_keys_treated_in_several_ways_at_once(spark: SparkSession) -> None:
    left = frame(spark, [(k, n) for k in range(6) for n in range(6 - k)], "k INT, x INT")
    right = frame(spark, [(k, n) for k in range(1, 7) for n in range(k)], "k INT, y INT")
    spec = JoinSpec(ON_K, "full")
    key = hashes(left, right, spec, *range(6))
    treatment = Treatment(
        broadcast_right=frozenset({key[0], key[1]}),
        broadcast_left=frozenset({key[5]}),
        split_left={key[2]: 3},
        split_right={key[4]: 2},
        nulls_apart=True,
    )
    expected = [(k, x, y) for k in range(1, 6) for x in range(6 - k) for y in range(k)]
    expected += [(0, x, None) for x in range(6)] + [(6, None, y) for y in range(6)]  # type: ignore[misc]
    assert sorted_rows(skew_join(left, right, spec, treatment)) == sorted(expected, key=repr)
    inner = [row for row in expected if None not in row]
    answer = skew_join(left, right, JoinSpec(ON_K, "inner"), treatment)
    assert sorted_rows(answer) == sorted(inner, key=repr)


def test_dropped_keys_are_gone_from_both_sides(spark: SparkSession) -> None:
    left = frame(spark, [("A", 1, 1), ("A", 2, 2), (None, 1, 3)], "k STRING, j INT, x INT")
    right = frame(spark, [("A", 1, 7), ("A", 2, 8), ("B", 1, 9)], "k STRING, j INT, y INT")
    spec = JoinSpec((("k", "k"), ("j", "j")), "full", drop=(("A", "1"), ("x", "no number")))
    expected = [("A", 2, 2, 8), ("B", 1, None, 9), (None, 1, 3, None)]
    assert sorted_rows(plain_join(left, right, spec)) == sorted(expected, key=repr)
    with pytest.raises(ParameterError, match="expected 2 values, one for each key column, got 1 values"):
        plain_join(left, right, JoinSpec((("k", "k"), ("j", "j")), drop=(("A",),)))


def test_keys_are_dropped_and_counted_in_any_spelling(spark: SparkSession) -> None:
    rows = [
        (0.0, "UA"),
        (-0.0, "ua"),
        (NAN, "x"),
        (None, "ua"),
        (0.0, None),
        (1.5, "y"),
        (1.5, "Y"),
        (2.0, "z"),
    ]
    left = frame(spark, rows, "k DOUBLE, j STRING").selectExpr("k", "j COLLATE UTF8_LCASE AS j")
    right = left.where("k = 1.5 OR k IS NULL")
    on = (("k", "k"), ("j", "j"))
    # More than ten keys are looked up in a set, to which -0.0 would be another value.
    asked = [("0", "Ua"), ("nan", "X"), ("no number", "ua"), *(("1.50", name) for name in "yabcdefghijkl")]
    counts = rows_of(asked_key_counts(joined_sides(left, right, JoinSpec(on)), asked, limit=2))
    assert sorted(counts, key=repr) == [
        (None, None, 2, 2),
        (["0", "Ua"], None, 2, 0),
        (["nan", "X"], None, 1, 0),
    ]
    kept = plain_join(left, right, JoinSpec(on, "full", drop=tuple(asked)))
    assert sorted_rows(kept) == sorted([(None, "ua"), (None, "ua"), (0.0, None), (2.0, "z")], key=repr)


@pytest.mark.parametrize("how", HOWS)
def test_a_whole_side_is_broadcast_only_where_its_rows_are_not_kept(spark: SparkSession, how: How) -> None:
    left = frame(spark, [(1, 1), (2, 2)], "k INT, x INT")
    right = frame(spark, [(1, 7), (3, 8)], "k INT, y INT")
    allowed = {"left": ("inner", "right"), "right": ("inner", "left", "semi", "anti")}
    for which, hows in allowed.items():
        treatment = Treatment(broadcast=which)  # type: ignore[arg-type]
        if how in hows:
            answer = skew_join(left, right, JoinSpec(ON_K, how), treatment)
            expected = sorted_rows(plain_join(left, right, JoinSpec(ON_K, how)))
            assert sorted_rows(answer) == expected
        else:
            with pytest.raises(StrategyError, match=f"to broadcast the {which} side, got {how}"):
                skew_join(left, right, JoinSpec(ON_K, how), treatment)


def test_keys_without_a_hash_are_joined_but_not_taken_apart(spark: SparkSession) -> None:
    left = frame(spark, [("a", 1), ("B", 2)], "k STRING, x INT").selectExpr("k COLLATE UTF8_LCASE AS k", "x")
    spec = JoinSpec(ON_K)
    right = left.selectExpr("upper(k) AS k", "x AS y")
    assert sorted((x, y) for _, x, y in rows_of(skew_join(left, right, spec, Treatment()))) == [
        (1, 1),
        (2, 2),
    ]
    with pytest.raises(StrategyError, match="key columns, whose equal values have one hash, got string"):
        skew_join(left, right, spec, Treatment(broadcast_right=frozenset({1})))


def test_keys_of_many_columns_are_joined_but_not_taken_apart(spark: SparkSession) -> None:
    names = [f"k{at}" for at in range(12)]
    both = spark.range(3).selectExpr(*(f"id AS {name}" for name in names))
    spec = JoinSpec(tuple((name, name) for name in names))
    assert skew_join(both, both, spec, Treatment()).count() == 3
    with pytest.raises(StrategyError, match="expected at most 8 key columns"):
        skew_join(both, both, spec, Treatment(broadcast_right=frozenset({1})))
    with pytest.raises(ParameterError, match="expected at most 8 key columns, got 12"):
        plain_join(both, both, replace(spec, drop=(("1",) * 12,)))


def test_missing_columns_are_named_with_the_nearest(spark: SparkSession) -> None:
    left, right = frame(spark, [], "carrier STRING"), frame(spark, [], "carrier STRING, name STRING")
    with pytest.raises(ColumnMissingError, match=r"a column of the input right.*did you mean `name`"):
        plain_join(left, right, JoinSpec((("carrier", "nam"),)))
    with pytest.raises(ColumnMissingError, match=r"a column of the join.*did you mean `name`"):
        plain_join(left, right, JoinSpec((("carrier", "carrier"),), select=("nmae",)))
