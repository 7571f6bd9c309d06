"""Top-N on literal rows; ids such as a1 are the hard cases of public tools."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from datetime import date
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession

from common.core.errors import ColumnMissingError, ColumnTypeError, ParameterError, StrategyError
from common.engine.topn_heap import heap_top_n
from common.transforms.topn import sort_top_n, window_top_n
from common.transforms.topn_aggregate import aggregate_top_n
from common.transforms.topn_prune import prune_top_n
from common.transforms.topn_rows import TopN, score_names
from tests.frames import frame, no_actions, rows_of, shown

Strategy = Callable[[DataFrame, TopN], DataFrame]

BOTH = pytest.mark.parametrize(
    "strategy", [sort_top_n, window_top_n, heap_top_n, prune_top_n, aggregate_top_n]
)
GROUPING = pytest.mark.parametrize("strategy", [sort_top_n, window_top_n, heap_top_n, aggregate_top_n])
KEEPING_TIES = pytest.mark.parametrize("strategy", [window_top_n, heap_top_n, prune_top_n])
SPREAD = pytest.mark.parametrize(
    ("partitions", "flip"), [(1, False), (2, False), (7, False), (2, True), (7, True)]
)
NAN = float("nan")


def top(strategy: Strategy, df: DataFrame, **spec: object) -> list[tuple[object, ...]]:
    # The heap is an RDD, whose making looks like an action.
    with nullcontext() if strategy is heap_top_n else no_actions():
        answer = strategy(df, TopN(**spec))  # type: ignore[arg-type]
    return rows_of(answer)


@BOTH
@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize(("nan", "expected"), [("largest", {"NaN", 3.0}), ("drop", {3.0, 2.0})])
def test_a1_nan_follows_one_rule_in_every_order(
    spark: SparkSession, strategy: Strategy, partitions: int, nan: str, expected: set[object]
) -> None:
    orders = list(itertools.permutations([1.0, NAN, 3.0, 2.0]))[::8]
    for order in orders:
        df = frame(spark, [(value,) for value in order], "v DOUBLE", partitions=partitions)
        assert {shown(value) for value, _ in top(strategy, df, score="v", n=2, nan=nan)} == expected


@BOTH
@SPREAD
def test_a2_ties_are_cut_by_the_other_columns(
    spark: SparkSession, strategy: Strategy, partitions: int, flip: bool
) -> None:
    df = frame(
        spark,
        [("Ann", 95), ("Bob", 95), ("Cy", 80)],
        "name STRING, score INT",
        partitions=partitions,
        flip=flip,
    )
    assert top(strategy, df, score="score", n=1) == [("Ann", 95, 1)]


@KEEPING_TIES
@SPREAD
def test_a2_ties_are_kept(spark: SparkSession, strategy: Strategy, partitions: int, flip: bool) -> None:
    df = frame(
        spark,
        [("Ann", 95), ("Bob", 95), ("Cy", 80)],
        "name STRING, score INT",
        partitions=partitions,
        flip=flip,
    )
    assert sorted(top(strategy, df, score="score", n=1, ties="all")) == [("Ann", 95, 1), ("Bob", 95, 1)]


@BOTH
@pytest.mark.parametrize(("n", "expected"), [(0, []), (10, [(7, 1), (5, 2)]), (1, [(7, 1)])])
def test_a4_fewer_rows_than_asked(
    spark: SparkSession, strategy: Strategy, n: int, expected: list[tuple[int, int]]
) -> None:
    assert (
        sorted(top(strategy, frame(spark, [(5,), (7,)], "v INT"), score="v", n=n), reverse=True) == expected
    )


@BOTH
def test_a4_no_rows_at_all(spark: SparkSession, strategy: Strategy) -> None:
    answer = strategy(frame(spark, [], "v INT, w STRING", partitions=3), TopN(score="v", n=3))
    assert rows_of(answer) == []
    assert answer.schema.simpleString() == "struct<v:int,w:string,rank:int>"


def test_a4_a_negative_n_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"\[PARAMETER_INVALID\] parameter `n`: expected a whole number >= 0, got -1"
    ):
        TopN(score="v", n=-1)


@KEEPING_TIES
@SPREAD
@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        ("all", [(1, 1), (1, 1), (2, 1), (2, 1)]),
        ("dense", [(1, 1), (1, 1), (2, 1), (2, 1)]),
        ("first", [(1, 1), (2, 1)]),
    ],
)
def test_a5_every_kind_of_rank_within_groups(
    spark: SparkSession,
    strategy: Strategy,
    partitions: int,
    flip: bool,
    ties: str,
    expected: list[tuple[int, int]],
) -> None:
    pairs = [(1, 1), (1, 1), (1, 2), (2, 1), (2, 1), (2, 2)]
    df = frame(spark, pairs, "g INT, v INT", partitions=partitions, flip=flip)
    answer = top(strategy, df, score="v", n=1, partition_by=("g",), order="asc", ties=ties)
    assert sorted((g, v) for g, v, _ in answer) == expected


@BOTH
def test_a7_same_rows_in_the_same_order_collected_and_as_pandas(
    spark: SparkSession, strategy: Strategy
) -> None:
    rows = [(1, "p"), (1, "q"), (2, "r"), (2, "s"), (3, "t"), (3, "u"), (3, "v")]
    df = frame(spark, rows, "k INT, name STRING", partitions=3, flip=True)
    answer = strategy(df, TopN(score="k", n=6, order="asc")).orderBy("rank")
    assert [name for _, name, _ in rows_of(answer)] == list("pqrstu")
    assert list(answer.toPandas()["name"]) == list("pqrstu")


@pytest.mark.parametrize("strategy", [sort_top_n, window_top_n, heap_top_n, prune_top_n])
def test_a9_only_score_and_ordered_columns_are_compared(spark: SparkSession, strategy: Strategy) -> None:
    rows = [(5, {"b": 2}, "y"), (5, {"a": 1}, "x"), (5, None, "z")]
    df = frame(spark, rows, "v INT, m MAP<STRING, INT>, id STRING", partitions=2)
    answer = top(strategy, df, score="v", n=2, tie_break=("id",))
    assert [(row[2], row[3]) for row in sorted(answer, key=lambda row: row[3])] == [("x", 1), ("y", 2)]


@BOTH
def test_a9_a_null_struct_field_comes_first(spark: SparkSession, strategy: Strategy) -> None:
    df = frame(spark, [(5, ("x",)), (5, (None,))], "v INT, s STRUCT<f: STRING>", partitions=2)
    assert top(strategy, df, score="v", n=1) == [(5, (None,), 1)]


@BOTH
def test_a9_a_column_without_order_is_refused_by_name(spark: SparkSession, strategy: Strategy) -> None:
    df = frame(spark, [(5, {"a": 1})], "v INT, m MAP<STRING, INT>")
    with pytest.raises(ColumnTypeError, match=r"`m`: expected columns that can be ordered.*--tie-break"):
        strategy(df, TopN(score="v"))
    assert top(strategy, df, score="v", columns=("v",)) == [(5, 1)]


def test_a_column_without_order_does_not_matter_where_ties_are_kept(spark: SparkSession) -> None:
    df = frame(spark, [(5, {"a": 1}), (5, {"b": 1})], "v INT, m MAP<STRING, INT>")
    assert len(top(window_top_n, df, score="v", n=1, ties="all")) == 2


A11 = [(1, 9), (2, 9), (3, 9), (4, 9), (5, 8), (6, 9), (7, 7)]


@KEEPING_TIES
@SPREAD
@pytest.mark.parametrize(
    ("ties", "ids"), [("first", [1, 2, 3]), ("all", [1, 2, 3, 4, 6]), ("dense", [1, 2, 3, 4, 5, 6, 7])]
)
def test_a11_one_value_repeated_at_the_cut(
    spark: SparkSession, strategy: Strategy, partitions: int, flip: bool, ties: str, ids: list[int]
) -> None:
    df = frame(spark, A11, "id INT, v INT", partitions=partitions, flip=flip)
    answer = top(strategy, df, score="v", n=3, ties=ties, tie_break=("id",))
    assert sorted(row[0] for row in answer) == ids


def test_a11_by_the_bounded_sort(spark: SparkSession) -> None:
    df = frame(spark, A11, "id INT, v INT", partitions=3, flip=True)
    assert sorted(top(sort_top_n, df, score="v", n=3)) == [(1, 9, 1), (2, 9, 2), (3, 9, 3)]


@BOTH
@pytest.mark.parametrize(
    ("order", "nulls", "expected"),
    [
        ("desc", "last", [3, 1, None]),
        ("desc", "first", [None, 3, 1]),
        ("desc", "drop", [3, 1]),
        ("asc", "last", [1, 3, None]),
        ("asc", "first", [None, 1, 3]),
        ("asc", "drop", [1, 3]),
    ],
)
def test_where_nulls_rank(
    spark: SparkSession, strategy: Strategy, order: str, nulls: str, expected: list[int | None]
) -> None:
    df = frame(spark, [(1,), (None,), (3,)], "v INT", partitions=2)
    answer = top(strategy, df, score="v", order=order, nulls=nulls)
    assert [value for value, _ in sorted(answer, key=lambda row: row[1])] == expected


@BOTH
def test_nan_is_the_last_of_an_ascending_order_and_stays_with_drop_of_nulls(
    spark: SparkSession, strategy: Strategy
) -> None:
    df = frame(spark, [(NAN,), (None,), (1.0,)], "v DOUBLE", partitions=2)
    answer = sorted(top(strategy, df, score="v", order="asc", nulls="drop"), key=lambda row: row[1])
    assert [shown(value) for value, _ in answer] == [1.0, "NaN"]


@GROUPING
def test_groups_are_reduced_first_and_tie_by_their_key(spark: SparkSession, strategy: Strategy) -> None:
    rows = [("b", 1), ("a", 1), ("c", 5), ("a", 2), ("b", 2), (None, 9)]
    df = frame(spark, rows, "k STRING, v INT", partitions=3)
    answer = top(strategy, df, score="sum(v) AS total", n=3, group_by=("k",))
    assert sorted(answer, key=lambda row: row[2]) == [(None, 9, 1), ("c", 5, 2), ("a", 3, 3)]


def test_groups_ranked_within_a_part_of_their_key(spark: SparkSession) -> None:
    rows = [("x", "a"), ("x", "a"), ("x", "b"), ("y", "c")]
    df = frame(spark, rows, "p STRING, k STRING", partitions=2)
    answer = top(window_top_n, df, score="count(*)", n=1, group_by=("p", "k"), partition_by=("p",))
    assert sorted(answer) == [("x", "a", 2, 1), ("y", "c", 1, 1)]


@BOTH
def test_an_expression_is_a_column_of_the_output(spark: SparkSession, strategy: Strategy) -> None:
    df = frame(spark, [(2, 3), (4, 1)], "a INT, b INT")
    answer = strategy(df, TopN(score="a * b AS area", n=1))
    assert (answer.columns, rows_of(answer)) == (["a", "b", "area", "rank"], [(2, 3, 6, 1)])
    assert strategy(df, TopN(score="-a")).columns == ["a", "b", "score", "rank"]


@BOTH
def test_where_and_columns(spark: SparkSession, strategy: Strategy) -> None:
    df = frame(spark, [(1, "x"), (2, "y"), (3, "x")], "v INT, k STRING")
    assert top(strategy, df, score="v", n=1, where="k = 'y'", columns=("k",)) == [("y", 1)]


@BOTH
def test_names_with_dots_commas_quotes_and_another_case(spark: SparkSession, strategy: Strategy) -> None:
    df = frame(spark, [(1, "x"), (2, "y")], "`air.time, h` INT, `a``b` STRING")
    assert top(strategy, df, score="air.time, h", n=1, columns=("A`B",)) == [("y", 1)]


@BOTH
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([Decimal("1.10"), Decimal("1.9")], "DECIMAL(5,2)"),
        ([date(2013, 1, 1), date(2013, 12, 31)], "DATE"),
        (["a", "b"], "STRING"),
        ([False, True], "BOOLEAN"),
        ([b"a", b"b"], "BINARY"),
    ],
)
def test_scores_of_every_ordered_type(
    spark: SparkSession, strategy: Strategy, values: list[object], kind: str
) -> None:
    df = frame(spark, [(value,) for value in values], f"v {kind}", partitions=2)
    assert top(strategy, df, score="v", n=1, order="asc") == [(values[0], 1)]
    if strategy is aggregate_top_n and kind in ("STRING", "BINARY"):
        with pytest.raises(StrategyError, match=f"a descending score of {kind.lower()}"):
            top(strategy, df, score="v", n=1)
    else:
        assert top(strategy, df, score="v", n=1) == [(values[1], 1)]


@pytest.mark.parametrize(
    ("spec", "words"),
    [({"ties": "all"}, "ties=all"), ({"columns": ("m",), "tie_break": ("v",)}, "`m`, which has no order")],
)
def test_what_an_aggregation_cannot_do(spark: SparkSession, spec: dict[str, object], words: str) -> None:
    df = frame(spark, [(1, {})], "v INT, m MAP<STRING, INT>")
    with pytest.raises(StrategyError, match=words):
        top(aggregate_top_n, df, score="v", **spec)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("TINYINT", [-128, 0, 127]),
        ("BIGINT", [-(2**63), 0, 2**63 - 1]),
        ("DECIMAL(34,0)", [Decimal("-" + "9" * 34), Decimal(0), Decimal("9" * 34)]),
        ("DOUBLE", [float("-inf"), 0.0, float("inf")]),
        ("DATE", [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]),
    ],
)
def test_an_aggregation_turns_the_ends_of_a_type_round(
    spark: SparkSession, kind: str, values: list[object]
) -> None:
    df = frame(spark, [(value,) for value in values], f"v {kind}", partitions=3)
    answer = sorted(top(aggregate_top_n, df, score="v", n=3), key=lambda row: row[1])  # type: ignore[arg-type,return-value]
    assert [row[0] for row in answer] == values[::-1]


@BOTH
def test_equal_rows_are_all_there(spark: SparkSession, strategy: Strategy) -> None:
    df = frame(spark, [(1, "a")] * 5 + [(0, "b")], "v INT, k STRING", partitions=3)
    answer = top(strategy, df, score="v", n=4)
    assert Counter(row[:2] for row in answer) == {(1, "a"): 4}
    assert sorted(row[2] for row in answer) == [1, 2, 3, 4]


@BOTH
@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        (
            {"score": "dist"},
            ColumnMissingError,
            "`dist`: expected a column of the input.*did you mean `distance`",
        ),
        ({"score": "distance", "columns": ("nope", "k")}, ColumnMissingError, "`nope`"),
        ({"score": "distance", "group_by": ("kk",)}, ColumnMissingError, "`kk`"),
        ({"score": "distance + 1 AS k"}, ParameterError, "AS my_score"),
        ({"score": "m"}, ColumnTypeError, "expected a score with an order, got map<string,int>"),
        ({"score": "distance", "rank_column": "k", "tie_break": ("k",)}, ParameterError, "--rank-column"),
        ({"score": "k", "text_scores": False, "tie_break": ("k",)}, ColumnTypeError, "--input-schema"),
        ({"score": "distance", "columns": ("k",), "rank_column": "K"}, ParameterError, "--rank-column"),
        ({"score": "distance", "columns": ("k", "K")}, ParameterError, "one column in two spellings"),
    ],
)
def test_what_cannot_be_ranked_is_refused(
    spark: SparkSession, strategy: Strategy, spec: dict[str, object], error: type[Exception], message: str
) -> None:
    df = frame(spark, [(1, "a", {})], "distance INT, k STRING, m MAP<STRING, INT>")
    with pytest.raises(error, match=message):
        strategy(df, TopN(**spec))  # type: ignore[arg-type]


@KEEPING_TIES
def test_a_partition_without_order_is_refused_by_name(spark: SparkSession, strategy: Strategy) -> None:
    df = frame(spark, [(1, {})], "v INT, m MAP<STRING, INT>")
    with pytest.raises(ColumnTypeError, match="`m` is map"):
        strategy(df, TopN(score="v", columns=("v",), partition_by=("m",)))


@pytest.mark.parametrize("sql", ["rand()", "v + RAND (1)", "uuid()", "first(v)", "collect_list(v)[0]"])
def test_sql_that_another_run_would_answer_otherwise_is_refused(sql: str) -> None:
    with pytest.raises(ParameterError, match="whose value the row or the group decides"):
        TopN(score=sql)
    with pytest.raises(ParameterError, match="parameter `where`"):
        TopN(score="v", where=f"{sql} > 1")


@pytest.mark.parametrize(
    "sql", ["v", "max(v)", "first_class(v)", "brand(v)", "first(v) OVER (PARTITION BY k ORDER BY id)"]
)
def test_sql_that_only_looks_like_it_is_taken(sql: str) -> None:
    assert TopN(score=sql).score == sql


@pytest.mark.parametrize("spec", [{"partition_by": ("k",)}, {"ties": "all"}, {"ties": "dense"}])
def test_a_bounded_sort_is_refused_where_it_would_be_wrong(
    spark: SparkSession, spec: dict[str, object]
) -> None:
    df = frame(spark, [(1, "a")], "v INT, k STRING")
    with pytest.raises(StrategyError, match="use window, or auto"):
        sort_top_n(df, TopN(score="v", **spec))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("score", "name"),
    [
        ("v", "v"),
        ("V", "v"),
        ("`v`", "v"),
        ("count(*)", "score"),
        ("count(*) as flights", "flights"),
        ("count(*) AS `all flights`", "all flights"),
        ("cast(v as double)", "score"),
    ],
)
def test_the_name_of_the_score(score: str, name: str) -> None:
    assert score_names(TopN(score=score), available=["v", "w"]) == (name,)
