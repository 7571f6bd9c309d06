"""Aggregations in two stages: the plain answer, its names and its types."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from common.core.errors import ColumnMissingError, ColumnTypeError, ParameterError, StrategyError
from common.transforms.aggregate_text import CHANCE
from common.transforms.two_stage import Aggregation, plain_aggregate, two_stage_aggregate
from common.transforms.two_stage_calls import KINDS, parsed
from tests.frames import frame, no_actions, rows_of, shown

NAN = float("nan")


def by_both(df: DataFrame, spec: Aggregation, **rates: Any) -> list[list[tuple[Any, ...]]]:
    """Both answers, sorted; their columns and types are the same."""
    with no_actions():
        plain = plain_aggregate(df, spec)
        two_stage = two_stage_aggregate(df, spec, **({"salts": 4, "hot_rows": 1, "one_in": 1} | rates))
    assert plain.schema == two_stage.schema, "names, types, and where NULL can be"
    return [
        sorted((tuple(map(comparable, row)) for row in rows_of(df)), key=repr) for df in (plain, two_stage)
    ]


def comparable(value: object) -> object:
    return [shown(item) for item in value] if isinstance(value, list) else shown(value)


def test_every_kind_in_one_aggregation(spark: SparkSession) -> None:
    # Group a: 1 … 1000, ten times 7 more. Group NULL: 5 and NULL. Group b: NULL only.
    rows = [("a", value) for value in (*range(1, 1001), *([7] * 10))] + [(None, 5), (None, None), ("b", None)]
    df = frame(spark, rows, "g STRING, v INT", partitions=4)
    asked = (
        "count(*) as n", "count(distinct v) as d", "sum(v) as s", "avg(v) as m", "mode(v) as often",
        "percentile(v, array(0.001, 0.9)) as p", "median(v) as half", "size(collect_set(v)) as sets",
        "percentile_disc(0.25) within group (order by v desc) as q", "max(v) - min(v) as span",
        "size(collect_list(v)) + count(distinct v) as both",
    )  # fmt: skip
    # 1010 values: 1 … 7, ten more 7, 8 … 1000. From 0 on rank 1.009 is 2.009, 908.1 is 899.1, 504.5 is 495.5.
    total = 500_500 + 70
    a = ("a", 1010, 1000, total, total / 1010, 7, [2.009, 899.1], 495.5, 1000, 748.0, 999, 2010)
    b = ("b", 1, 0, None, None, None, None, None, 0, None, None, 0)
    null = (None, 2, 1, 5, 5.0, 5, [5.0, 5.0], 5.0, 1, 5.0, 0, 2)
    for answer in by_both(df, Aggregation(asked, ("g",)), salts=50):
        by_group = {row[0]: row for row in answer}
        assert by_group["b"] == b
        assert by_group[None] == null
        assert by_group["a"][:6] == a[:6]
        assert by_group["a"][6] == pytest.approx(a[6])
        assert by_group["a"][7:] == a[7:]


def test_how_few_values_are_left_between_the_bounds(spark: SparkSession) -> None:
    from common.transforms.two_stage_bounds import Quantiles, clamped

    df = frame(spark, [(value,) for value in range(10_000)], "v INT", partitions=3)
    rows, (name,) = clamped(df, (), [Quantiles("v", (0.5,))], salts=20, hot_rows=1, one_in=1)
    assert name is not None
    values = {value for (value,) in rows_of(rows.select(name).distinct())}
    assert {4999, 5000} <= values
    assert 400 <= len(values) <= 600  # 10,000 / 20, and the sketch's thousandth on each side


def test_bounds_are_those_of_the_named_groups_alone(spark: SparkSession) -> None:
    from common.transforms.two_stage_bounds import Quantiles, clamped

    rows = [(float(g) if g else None, value) for g in range(4) for value in range(1000)]
    df = frame(spark, [*rows, (-0.0, 1), (0.0, 3)], "g DOUBLE, v INT", partitions=3)
    named = [("1",), ("2.0",), ("no number",)]
    moved, (name,) = clamped(
        df, ("g",), [Quantiles("v", (0.5,))], salts=20, hot_rows=1, one_in=1, hot_groups=named
    )
    distinct = dict(rows_of(moved.groupBy("g").agg(F.count_distinct(str(name)))))
    # 1,000 / 20 lie between the bounds, and the sketch's thousandth on each side.
    assert all(40 <= distinct[g] <= 70 for g in (None, 1.0, 2.0)), distinct
    assert (distinct[3.0], distinct[0.0]) == (1000, 2)


@pytest.mark.parametrize("groups", [[], [("0",), ("-0",), ("NaN",), ("7",)], [("3",), ("no number",)]])
def test_which_groups_are_named_changes_no_answer(spark: SparkSession, groups: list[tuple[str, ...]]) -> None:
    keys = (0.0, -0.0, NAN, 3.0, None)
    rows = [(keys[at % 5], at * 7919 % 501) for at in range(500)]
    df = frame(spark, rows, "g DOUBLE, v INT", partitions=3)
    asked = Aggregation(("percentile_disc(0.5) within group (order by v) as m",), ("g",))
    # Of n sorted values the first whose place reaches half of them.
    values: dict[object, list[int]] = {}
    for key, value in rows:
        values.setdefault("NaN" if key is NAN else key, []).append(value)
    expected = {key: sorted(found)[(len(found) + 1) // 2 - 1] for key, found in values.items()}
    for answer in by_both(df, asked, hot_groups=groups):
        assert dict(answer) == expected


@pytest.mark.parametrize("one_in", [2, 50, 10_000])
def test_bounds_that_miss_the_rank_are_not_used(spark: SparkSession, one_in: int) -> None:
    # Few rows in the sample, or one: its bounds are anywhere.
    rows = [(g, (g * 7919 + at * at) % 1013) for g in range(12) for at in range(40)]
    df = frame(spark, rows, "g INT, v INT", partitions=3)
    asked = Aggregation(("percentile(v, array(0.3, 0.31, 1)) as p", "median(v) as m"), ("g",))
    expected = []
    for g in range(12):
        values = sorted(v for group, v in rows if group == g)
        places = [(int(at), at % 1) for at in (0.3 * 39, 0.31 * 39, 39.0, 19.5)]
        found = [values[at] + part * (values[min(at + 1, 39)] - values[at]) for at, part in places]
        expected.append((g, pytest.approx(found[:3]), pytest.approx(found[3])))
    for answer in by_both(df, asked, one_in=one_in, salts=100):
        assert sorted(answer, key=lambda row: row[0]) == expected


def test_floats_with_nan_and_signed_zeros(spark: SparkSession) -> None:
    rows = [
        (NAN, 0.0),
        (NAN, -0.0),
        (NAN, NAN),
        (NAN, NAN),
        (NAN, None),
        (-0.0, -0.0),
        (0.0, 0.0),
        (0.0, 1.0),
    ]
    df = frame(spark, rows, "g DOUBLE, v DOUBLE", partitions=4)
    asked = (
        "mode(v) as m", "collect_set(v) as s", "count(distinct v) as d", "percentile(v, 0.25) as p",
        "get(collect_list(v), 3) as fourth",
    )  # fmt: skip
    for answer in by_both(df, Aggregation(asked, ("g",))):
        assert {row[0]: row[1:] for row in answer} == {
            "NaN": (0.0, [0.0, "NaN"], 2, 0.0, "NaN"),
            0.0: (0.0, [0.0, 1.0], 2, 0.0, None),
        }


def test_equal_values_that_differ_have_one_form(spark: SparkSession) -> None:
    # Spark keeps -0.0 inside of values, counts equal bytes apart, and lets the order of rows decide ties.
    rows = [(-0.0, b"b", 1, 1), (0.0, b"a", 1, 3), (-0.0, b"b", 1, 2), (1.0, b"c", None, 9)]
    df = frame(spark, rows, "f DOUBLE, b BINARY, y INT, w INT", partitions=4)
    df = df.selectExpr("*", "named_struct('a`\\'s', array(f)) AS s", "CAST(f AS FLOAT) AS h")
    asked = (
        "collect_set(s) as sets", "collect_list(f) as all", "mode(s) as often", "mode(b) as bytes",
        "max_by(w, y) as most", "min_by(w, y) filter (where w > 1) + 10 as least", "max_by(h, y) as zero",
        "percentile(f, array(0, 0.5)) as p", "percentile_disc(0) within group (order by h) as d",
    )  # fmt: skip
    for answer in by_both(df, Aggregation(asked)):
        ((sets, values, often, *others),) = answer
        assert repr([tuple(it) for it in sets]) == "[([0.0],), ([1.0],)]"
        assert repr((values, tuple(often))) == "([0.0, 0.0, 0.0, 1.0], ([0.0],))"
        assert repr(others) == "[b'b', 3, 12, 0.0, [0.0, 0.0], 0.0]"


def test_decimals_at_the_end_of_their_type(spark: SparkSession) -> None:
    # The nearest double of 38 nines has 39 digits.
    df = spark.range(0, 100, 1, 3).selectExpr("CAST(repeat('9', 38) AS DECIMAL(38,0)) - id AS v")
    asked = ("percentile(v, array(0.1, 0.9)) as p", "mode(v) as m", "count(distinct v) as d")
    for answer in by_both(df, Aggregation(asked)):
        assert answer == [([1e38, 1e38], Decimal("9" * 36 + "00"), 100)]


def test_keys_that_group_but_do_not_join(spark: SparkSession) -> None:
    df = frame(spark, [(1, 4), (1, 8), (2, 5)], "g INT, v INT", partitions=2).selectExpr(
        "map('g', g) AS g", "v"
    )
    spec = Aggregation(("median(v) as m", "collect_set(v) as s", "max_by(g, v) as last"), ("g",))
    for answer in by_both(df, spec):
        assert answer == [({"g": 1}, 6.0, [4, 8], {"g": 1}), ({"g": 2}, 5.0, [5], {"g": 2})]


def test_all_of_sparks_functions_are_known(spark: SparkSession) -> None:
    catalog = spark._jsparkSession.sessionState().catalog()
    found = spark._jsparkSession.sessionState().functionRegistry().listFunction().iterator()
    groups: dict[str, str] = {}
    while found.hasNext():
        identifier = found.next()
        groups[identifier.funcName()] = catalog.lookupFunctionInfo(identifier).getGroup()
    aggregates = {name for name, group in groups.items() if group == "agg_funcs"}
    unsteady = {"first", "first_value", "last", "last_value", "any_value"}
    assert aggregates - set(KINDS) - unsteady <= {"grouping", "grouping_id"}  # of ROLLUP and CUBE
    others = [name for name in groups if name.isidentifier() and name not in aggregates | {"over"}]
    unknown = [name for name in others if name not in CHANCE and parsed(f"sum(x) + {name}(1)").unknown]
    assert unknown == []


@pytest.mark.parametrize(("group_by", "expected"), [((), [(0, None, None, [])]), (("g",), [])])
def test_no_rows(spark: SparkSession, group_by: tuple[str, ...], expected: list[tuple[Any, ...]]) -> None:
    df = frame(spark, [], "g INT, v INT")
    asked = Aggregation(("count(distinct v)", "median(v)", "mode(v)", "collect_set(v)"), group_by)
    for answer in by_both(df, asked):
        assert answer == expected


def test_one_row_over_all(spark: SparkSession) -> None:
    df = frame(spark, [(value % 100,) for value in range(1000)], "v INT", partitions=3)
    asked = Aggregation(("median(v) as m", "count(distinct v) as d", "mode(v) as o"), where="v < 50")
    for answer in by_both(df, asked, salts=10):
        assert answer == [(24.5, 50, 0)]


def test_names_that_are_special(spark: SparkSession) -> None:
    rows = [("x", 1, 10, 3), ("x", 1, 20, 3), ("y", 2, 5, 4)]
    df = frame(spark, rows, "`c0` STRING, `select` INT, `a.``b` INT, `count` INT", partitions=3)
    asked = (
        "median(`a.``b`) as size", "mode(count) AS `order`", "collect_set(`count`) value",
        "count(distinct c0)", "concat(c0, max(`select`)) as q0",
    )  # fmt: skip
    spec = Aggregation(asked, ("c0", "select"))
    for answer in by_both(df, spec):
        assert answer == [("x", 1, 15.0, 3, [3], 1, "x1"), ("y", 2, 5.0, 4, [4], 1, "y2")]
    assert plain_aggregate(df, spec).columns == [
        "c0", "select", "size", "order", "value", "count(distinct c0)", "q0",
    ]  # fmt: skip


def test_types_and_filters(spark: SparkSession) -> None:
    rows = [
        (1, Decimal("1.10"), "a", 1),
        (1, Decimal("2.30"), "b", 2),
        (1, None, "b", 3),
        (2, Decimal("5.00"), None, 4),
    ]
    df = frame(spark, rows, "g INT, d DECIMAL(10,2), t STRING, w BIGINT", partitions=2)
    asked = (
        "avg(d) as mean", "percentile(d, 0.5) as p", "mode(t) filter (where w < 2) as early",
        "collect_set(struct(t, d)) filter (where w > 1) as pairs", "sum(distinct d) as total",
        "percentile_cont(1) within group (order by w) filter (where t = 'b') as most",
    )  # fmt: skip
    for answer in by_both(df, Aggregation(asked, ("g",))):
        first, second = answer
        assert (first[1], second[1]) == (Decimal("1.700000"), Decimal("5.000000"))
        assert (first[2:4], second[2:4]) == ((pytest.approx(1.7), "a"), (5.0, None))
        assert [tuple(pair) for pair in first[4]] == [("b", None), ("b", Decimal("2.30"))]
        assert (first[5:], second[5:]) == ((Decimal("3.40"), 3.0), (Decimal("5.00"), None))


def test_text_and_intervals_have_their_quantiles(spark: SparkSession) -> None:
    df = frame(spark, [("9",), ("10",), ("11",)], "v STRING").selectExpr(
        "v", "make_dt_interval(CAST(v AS INT)) AS i"
    )
    for answer in by_both(df, Aggregation(("median(v) as m", "extract(day from percentile(i, 0.5)) as d"))):
        assert answer == [(10.0, 10)]


@pytest.mark.parametrize(
    ("spec", "error", "words"),
    [
        (Aggregation(("percentile(v, 0.5, w)",)), StrategyError, r"got percentile\(v, 0.5, w\)"),
        (Aggregation(("some_udaf(v)", "sum(v)")), StrategyError, "got some_udaf"),
        (Aggregation(("sum(v)", "max(w) as `sum(v)`")), ParameterError, "twice"),
        (Aggregation(("sum(v) as G",), ("g",)), ParameterError, "`G` twice"),
        (Aggregation(("sum(v)",), ("h",)), ColumnMissingError, "`h`"),
        (Aggregation(("median(v) + w",), ("g",)), AnalysisException, "MISSING_AGGREGATION.*w"),
        (Aggregation(("mode(map(v, w))",)), ColumnTypeError, "values with an order, got map<int,int>"),
        (
            Aggregation(("collect_list(array(string(v) collate utf8_lcase))",)),
            ColumnTypeError,
            "COLLATE UTF8_B",
        ),
    ],
)
def test_what_is_refused(spark: SparkSession, spec: Aggregation, error: type[Exception], words: str) -> None:
    df = frame(spark, [(1, 2, 3)], "g INT, v INT, w INT")
    with pytest.raises(error, match=words), no_actions():
        two_stage_aggregate(df, spec)


def test_wrong_numbers(spark: SparkSession) -> None:
    df = frame(spark, [(1,)], "v INT")
    for name in ("salts", "hot_rows", "one_in"):
        with pytest.raises(ParameterError, match=f"`{name}`.*whole number >= 1"):
            two_stage_aggregate(df, Aggregation(("sum(v)",)), **{name: 0})
    with pytest.raises(ParameterError, match=r"`rand\(\) < 1`.*got rand\(\)"):
        Aggregation(("sum(v)",), where="rand() < 1")
    with pytest.raises(ParameterError, match="at least one"):
        Aggregation(())
