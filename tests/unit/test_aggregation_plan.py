"""What the planner of aggregations decides, and says; and how their texts are taken apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from common.core.errors import ParameterError, SqlError, StrategyError
from common.transforms.aggregate_text import split_aggregates
from common.transforms.two_stage_calls import kind_of, parsed, quantile_of
from common.tuning.aggregation import Call, Question, plan_aggregation
from common.tuning.decision import Decision
from common.tuning.facts import Facts, InputFacts, KeySample

BIG = InputFacts("input", "parquet", ("in",), file_count=9, size_bytes=900_000_000, row_count=20_000_000)
HOT = KeySample(("key",), 200_000, 10_000, "UA", 0.3, (60_000,))
EVEN = KeySample(("key",), 200_000, 1_000, "UA", 0.001, (200,))
MEDIAN, MODE, SUM = Call("median(y)", "quantile"), Call("mode(x)", "mode"), Call("sum(y)", "combined")
DISTINCT, LIST = Call("count(distinct x)", "distinct"), Call("collect_list(x)", "list")
WHOLE = Call("my_udaf", "whole")


def plan(
    *calls: Call, strategy: str = "auto", cores: int = 100, sample: KeySample | None = HOT, **changes: object
) -> Decision:
    known = replace(BIG, sample=sample, **changes)  # type: ignore[arg-type]
    facts = Facts({"input": known}, core_count=cores)
    return plan_aggregation(strategy, Question(calls, ("key",)), facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("calls", "choice", "why"),
    [
        ((MEDIAN,), "two-stage", "one task would merge all values of a group"),
        ((MODE, SUM), "two-stage", "one task would merge all values of a group"),
        ((DISTINCT, LIST), "two-stage", "Spark would hold a partial result of collect_list(x) for each"),
        ((SUM,), "plain", "Spark combines the rows of each task"),
        ((DISTINCT, SUM), "plain", "Spark counts distinct values in two stages itself"),
        ((LIST,), "plain", "is all values of a group in one row"),
        ((MEDIAN, WHOLE), "plain", "parts of my_udaf cannot be put together"),
    ],
)
def test_auto_under_a_hot_group(calls: tuple[Call, ...], choice: str, why: str) -> None:
    decision = plan(*calls)
    assert (decision.choice, decision.forced) == (choice, False)
    ((other, reason),) = decision.rejected
    assert other == ({"plain", "two-stage"} - {choice}).pop()
    assert why in reason


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"cores": 2}, "the largest group is no straggler on 2 cores"),
        ({"cores": 0}, "nobody tells how many cores there are"),
        ({"sample": EVEN}, "the largest group is no straggler on 100 cores"),
        ({"sample": None}, "nothing cheap tells how the rows spread"),
        ({"row_count": 1_000}, "1,000 rows are merged sooner"),
        ({"row_count": None, "size_bytes": None}, "nothing cheap tells how many rows there are"),
    ],
)
def test_auto_stays_plain_and_says_why(changes: dict[str, object], why: str) -> None:
    decision = plan(MEDIAN, **changes)  # type: ignore[arg-type]
    assert decision.choice == "plain"
    assert why in decision.line()


@pytest.mark.parametrize(("cores", "choice"), [(6, "plain"), (7, "two-stage")])
def test_a_group_counts_from_twice_a_cores_share_on(cores: int, choice: str) -> None:
    assert plan(MEDIAN, cores=cores).choice == choice  # 0.3 * 6 < 2 <= 0.3 * 7


def test_distinct_beside_large_partial_results_is_split_on_any_machine() -> None:
    decision = plan(DISTINCT, MEDIAN, cores=2, sample=EVEN)
    assert decision.choice == "two-stage"
    assert decision.evidence["salts"] == 1  # no group is hot: bounds would be two more passes
    assert plan(DISTINCT, MEDIAN).evidence["salts"] == 32


def test_the_reason_has_the_numbers() -> None:
    assert plan(MEDIAN).line() == (
        "two-stage: 20,000,000 rows by key; 10,000 groups seen in a sample of 200,000 rows, the largest (UA)"
        " with 30.0%; bounds leave about 1 in 32 of a hot group's values for median(y);"
        " the largest task merges about 187,500 rows' values, not 6,000,000;"
        " not plain (one task would merge all values of a group) [D5 K4]"
    )
    assert plan(MEDIAN, cores=4).line().endswith(
        "one task merges the values of 6,000,000 rows for median(y);"
        " not two-stage (the largest group is no straggler on 4 cores) [D5]"
    )  # fmt: skip


def test_what_is_left_to_spark_is_said_where_two_stages_are_asked_for() -> None:
    total, values = Call("sum(y)", "combined"), Call("collect_list(y)", "list")
    assert "sum(y), collect_list(y) left to Spark [" in plan(total, values, strategy="two-stage").line()
    assert "median(y) from" not in plan(total, MEDIAN, strategy="two-stage").line()
    assert "; sum(y) left to Spark;" in plan(total, MEDIAN, strategy="two-stage").line()


def test_rates_follow_the_rows_and_the_cores() -> None:
    # A quarter of a core's share: 20,000,000 / 100 / 4 = 50,000 rows, of which 10,000 are looked at.
    assert {name: plan(MEDIAN).evidence[name] for name in ("salts", "hot_rows", "one_in")} == {
        "salts": 32,
        "hot_rows": 50_000,
        "one_in": 5,
    }
    facts = Facts({"input": replace(BIG, row_count=600_000, sample=HOT)}, core_count=100)
    evidence = plan_aggregation("auto", Question((MEDIAN,), ("key",), salts=8), facts).evidence
    assert (evidence["salts"], evidence["hot_rows"], evidence["one_in"]) == (8, 20_000, 2)


TOP = ((("UA",), 60_000), (("AA",), 1_600), (("B6",), 400), (("DL",), 340))


def test_bounds_are_taken_from_the_groups_that_the_sample_shows_to_be_large() -> None:
    evidence = plan(MEDIAN, sample=replace(HOT, top_keys=TOP)).evidence
    # Hot from 50,000 of 20,000,000 rows on: 500 of the 200,000 sampled, and by chance as few as 0.7 of those.
    assert evidence["hot_groups"] == [["UA"], ["AA"], ["B6"]]
    # 400 of 200,000 are 40,000 rows, of which 10,000 are enough.
    assert (evidence["hot_rows"], evidence["one_in"]) == (50_000, 4)


@pytest.mark.parametrize(
    "changes",
    [{"top_keys": TOP[:3]}, {"top_keys": TOP, "is_clustered": True}, {"top_keys": TOP, "row_count": 0}],
)
def test_where_the_sample_shows_not_all_large_groups_any_may_be(changes: dict[str, Any]) -> None:
    assert "hot_groups" not in plan(MEDIAN, sample=replace(HOT, **changes), strategy="two-stage").evidence


@pytest.mark.parametrize(("cores", "choice"), [(2, "plain"), (3, "two-stage")])
def test_one_row_over_all_is_one_hot_group(cores: int, choice: str) -> None:
    facts = Facts({"input": BIG}, core_count=cores)
    assert plan_aggregation("auto", Question((MEDIAN,)), facts).choice == choice


def test_a_forced_choice_says_so_and_what_has_no_parts_is_refused_by_name() -> None:
    decision = plan(SUM, strategy="two-stage")
    assert decision.forced
    assert decision.reason.startswith("as asked; ")
    assert plan(MEDIAN, strategy="plain").choice == "plain"
    with pytest.raises(StrategyError, match=r"percentile, median.*got my_udaf, median\(z\)"):
        plan(WHOLE, SUM, Call("median(z)", "whole"), strategy="two-stage")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "count(distinct a, b) as n, percentile(y, 0.5)",
            ("count(distinct a, b) as n", "percentile(y, 0.5)"),
        ),
        (r"max('a\',b'), min(`c,d`)", (r"max('a\',b')", "min(`c,d`)")),
        ("sum(x) -- a, b", ("sum(x) -- a, b",)),
        ("max(named_struct('k', a)['k']), min(b)", ("max(named_struct('k', a)['k'])", "min(b)")),
    ],
)
def test_lists_of_aggregates(text: str, parts: tuple[str, ...]) -> None:
    assert split_aggregates(text) == parts


@pytest.mark.parametrize("text", ["sum(a", "sum(a))", "sum(a),,sum(b)", ",sum(a)", "sum(a]["])
def test_lists_that_are_broken(text: str) -> None:
    with pytest.raises(SqlError):
        split_aggregates(text)


@pytest.mark.parametrize(
    ("text", "name", "calls"),
    [
        ("count(*)", "count(*)", ["count(*)"]),
        ("sum( x )  AS `my n`", "my n", ["sum( x )"]),
        ("sum(x) total", "total", ["sum(x)"]),
        ("if(max(x) > 1, sum(x), 0)", "if(max(x) > 1, sum(x), 0)", ["max(x)", "sum(x)"]),
        ("case when max(x) > 1 then min(x) end as c", "c", ["max(x)", "min(x)"]),
        ("round(avg(coalesce(x, 0)), 2) as m", "m", ["avg(coalesce(x, 0))"]),
        ("1 + count(*) filter (where a = ')') as r", "r", ["count(*) filter (where a = ')')"]),
        ("cast(max(x) as int)", "cast(max(x) as int)", ["max(x)"]),
        ("median(x) as `max(x)`", "max(x)", ["median(x)"]),
    ],
)
def test_names_and_calls(text: str, name: str, calls: list[str]) -> None:
    aggregate = parsed(text)
    assert (aggregate.name, [call.text for call in aggregate.calls]) == (name, calls)
    assert aggregate.unknown == ()


def test_comments_are_no_part_of_arguments() -> None:
    (call,) = parsed("percentile(y -- why\n, 0.5 /* half */) filter (where y > 2 -- c\n)").calls
    assert (call.arguments, call.condition) == (("y", "0.5"), "y > 2")


@pytest.mark.parametrize("text", ["median(rand(3))", "count(*) filter (where uuid() > 'a')"])
def test_what_chance_would_decide(text: str) -> None:
    with pytest.raises(ParameterError, match="expected functions of the row's values"):
        parsed(text)


def test_several_best_are_a_ranking() -> None:
    assert parsed("max_by(x, rand)").unknown == ()
    with pytest.raises(ParameterError, match="topn --partition-by"):
        parsed("max_by(x, y, 3)")


def test_calls_are_replaced_where_they_stand() -> None:
    assert parsed("  sum(a) / count(b) + sum(a) as r").with_calls(["`x`", "`y`", "`x`"]) == "`x` / `y` + `x`"


@pytest.mark.parametrize("text", ["x + 1", "'sum(x)'", "upper(g)", "sum(x) over (partition by g)", "1"])
def test_what_is_no_aggregate_of_a_group(text: str) -> None:
    with pytest.raises(SqlError, match="expected an aggregate"):
        parsed(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("percentile(y, 95)", "got 95. Hint: write 0.95 for 95 %"),
        ("percentile(y, array(0.5, -0.1))", "from 0 to 1, got -0.1"),
        ("percentile_disc(2.5) within group (order by y desc)", "got 2.5. Hint: write 0.025 for 2.5 %"),
        ("1 + approx_percentile(y, 1.0001)", "got 1.0001"),
    ],
)
def test_ranks_are_shares(text: str, words: str) -> None:
    with pytest.raises(ParameterError) as raised:
        parsed(text)
    assert words in str(raised.value)


def test_windows_get_the_nearest_right_thing() -> None:
    with pytest.raises(SqlError, match=r"got a window \(OVER\).*topn --partition-by"):
        parsed("row_number() over (partition by g order by x)")


@pytest.mark.parametrize("text", ["first(x)", "any_value(x) + 1", "listagg(x, ',')"])
def test_what_the_order_of_rows_would_decide(text: str) -> None:
    with pytest.raises(ParameterError, match="another partitioning"):
        parsed(text)


@pytest.mark.parametrize(
    ("text", "kind", "quantile"),
    [
        ("median(y)", "quantile", ("y", (0.5,))),
        ("percentile(a + b, array(0.25, 1))", "quantile", ("a + b", (0.25, 1.0))),
        ("percentile_disc(0.25) within group (order by y desc)", "quantile", ("y", (0.75,))),
        ("percentile_cont(0.5) within group (order by y nulls last)", "whole", None),
        ("percentile(y, 0.5, w)", "whole", None),
        ("percentile(y, 1 - 0.5)", "whole", None),
        ("theta_sketch_agg(x)", "sketch", None),
        ("percentile(distinct y, 0.5)", "distinct", ("y", (0.5,))),
        ("mode(x, false)", "mode", None),
        ("mode() within group (order by x)", "whole", None),
        ("array_agg(distinct x)", "set", None),
        ("listagg(x) within group (order by x)", "list", None),
        ("approx_count_distinct(x)", "sketch", None),
        ("sum(distinct x)", "distinct", None),
    ],
)
def test_kinds(text: str, kind: str, quantile: object) -> None:
    (call,) = parsed(text).calls
    assert (kind_of(call), quantile_of(call)) == (kind, quantile)


@pytest.mark.parametrize(
    ("text", "unknown"),
    [("my_udaf(x)", "my_udaf"), ("sum(x) + other.fn(x)", "fn"), ("max(x) + (select 1)", "a subquery")],
)
def test_functions_that_nobody_knows_are_named(text: str, unknown: str) -> None:
    assert parsed(text).unknown == (unknown,)
