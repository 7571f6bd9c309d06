"""What the planner of Top-N decides, and says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from common.core.errors import StrategyError
from common.tuning.decision import Decision
from common.tuning.facts import Facts, InputFacts, KeySample
from common.tuning.topn import Question, plan_top_n

FACTS = InputFacts("input", "parquet", ("in",), file_count=3, size_bytes=9_000, row_count=336_776)


BIG = replace(FACTS, row_count=20_000_000, size_bytes=900_000_000)
FEW = KeySample(("cat",), 200_000, 100, "7", 0.01, (2_000,) * 100)  # 100 groups of 200,000 rows each
# A million groups: five hold 45 % of the rows (the first 30 %), the others some 11 rows each.
MANY = KeySample(
    ("key",), 200_000, 104_500, "1", 0.3, (60_000, *(7_500,) * 4, *(2,) * 995), singleton_count=98_500
)


def plan(strategy: str = "auto", *, facts: InputFacts = FACTS, **changes: object) -> Decision:
    asked = {"n": 10, "score": "amount"}
    engine = {name: changes.pop(name) for name in ("capabilities", "accelerator") if name in changes}
    known = Facts({"input": facts}, **engine)  # type: ignore[arg-type]
    return plan_top_n(strategy, Question(**(asked | changes)), known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "choice"),
    [
        ({}, "sort"),
        ({"group_by": ("dest",)}, "sort"),
        ({"partition_by": ("dest",)}, "window"),
        ({"ties": "all"}, "window"),
        ({"ties": "dense"}, "window"),
    ],
)
def test_auto(changes: dict[str, object], choice: str) -> None:
    decision = plan(**changes)
    assert (decision.choice, decision.forced) == (choice, False)
    assert {name for name, _ in decision.rejected} == {"prune", "sort", "window"} - {choice}


def test_a_forced_choice_says_so() -> None:
    decision = plan("window")
    assert decision.forced
    assert decision.reason.startswith("as asked; ")


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"partition_by": ("dest",)}, "within dest"), ({"ties": "all"}, "ties are `all`")],
)
def test_a_sort_that_would_be_wrong_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(StrategyError, match=words):
        plan("sort", **changes)


def test_a_heap_is_taken_only_when_asked_and_where_there_are_rdds() -> None:
    decision = plan("heap", capabilities=frozenset({"rdd"}), partition_by=("dest",), ties="all")
    assert (decision.choice, decision.forced) == ("heap", True)
    with pytest.raises(StrategyError, match="expected classic Spark"):
        plan("heap")


def test_the_reason_has_the_numbers() -> None:
    assert plan().line() == (
        "sort: one ranking of 336,776 rows; each task keeps its best 10, only those are merged;"
        " not prune (336,776 rows are ranked sooner than a bound is found);"
        " not window (one task would rank all that the others leave) [D4 D5]"
    )
    assert plan().evidence == {"n": 10, "rows": 336_776, "files": 3, "size_bytes": 9_000}


@pytest.mark.parametrize(("ratio", "warned"), [(0.5, True), (0.01, False)])
def test_skew_is_told(ratio: float, warned: bool) -> None:
    sample = KeySample(("carrier",), 1_000, 16, "UA", ratio)
    facts = InputFacts("input", "parquet", ("in",), row_count=10_000, sample=sample)
    decision = plan(partition_by=("carrier",), facts=facts)
    assert "16 groups seen in a sample of 1,000 rows" in decision.reason
    assert f"(UA) with {ratio:.1%}" in decision.reason
    assert ("which one task must sort" in decision.reason) is warned
    assert decision.guidelines == ("D5", "K4")


def test_unknown_facts_are_left_out() -> None:
    decision = plan(facts=InputFacts("input", "table", ("table:t",)))
    assert "all rows" in decision.reason
    assert decision.evidence == {"n": 10}


def test_a_record_is_plain_data() -> None:
    record = plan().record()
    assert record["choice"] == "sort"
    assert record["rejected"][-1] == ("window", "one task would rank all that the others leave")


def bounds_for(sample: KeySample | None, **changes: object) -> Decision:
    return plan(facts=replace(BIG, sample=sample), partition_by=("cat",), **changes)


@pytest.mark.parametrize(
    ("sample", "n", "one_in", "left"),
    [
        # Each of 100 groups keeps n x one_in rows: 3 x 256 x 100 of 20 million are 0.4 %.
        (FEW, 3, 256, "0.4%"),
        (FEW, 100, 32, "1.6%"),
        # The five large groups are cut to a few rows, 55 % of the rows are in groups too small for a bound.
        (MANY, 3, 512, "55.0%"),
    ],
)
def test_bounds_where_they_leave_little(sample: KeySample, n: int, one_in: int, left: str) -> None:
    decision = bounds_for(sample, n=n)
    assert decision.choice == "prune"
    assert f"leave about {left} of the rows" in decision.reason
    assert decision.evidence["one_in"] == one_in
    assert dict(decision.rejected)["window"] == "it would sort all rows"


@pytest.mark.parametrize(
    ("sample", "changes", "why"),
    [
        (None, {}, "nothing cheap tells how the rows spread"),
        (replace(MANY, largest_ratio=0.0, group_sizes=(1,) * 1000, singleton_count=104_500), {}, "too small"),
        (FEW, {"n": 100_000}, "it would leave 100% of the rows"),
    ],
)
def test_no_bounds_where_they_would_leave_most(
    sample: KeySample | None, changes: dict[str, object], why: str
) -> None:
    decision = bounds_for(sample, **changes)
    assert decision.choice == "window"
    assert why in dict(decision.rejected)["prune"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"format": "csv"}, "csv would be read twice in full"),
        ({"row_count": 499_999}, "499,999 rows are ranked sooner"),
        ({"row_count": None, "size_bytes": None}, "nothing cheap tells how many rows"),
        ({"row_count": None, "size_bytes": 20_000_000}, "400,000 rows are ranked sooner"),
    ],
)
def test_no_bounds_for_inputs_that_two_passes_do_not_suit(changes: dict[str, object], why: str) -> None:
    decision = plan(facts=replace(BIG, sample=FEW, **changes), partition_by=("cat",))  # type: ignore[arg-type]
    assert decision.choice == "window"
    assert why in dict(decision.rejected)["prune"]


WIDE = replace(BIG, column_bytes={"amount": 100, "payload": 800, "cat": 100})


@pytest.mark.parametrize(
    ("facts", "changes", "choice", "why"),
    [
        (WIDE, {}, "prune", "(10% of the bytes)"),
        (WIDE, {"accelerator": "none"}, "sort", "plain Spark reads all columns"),
        (WIDE, {"columns": ("amount", "cat")}, "prune", "(50% of the bytes)"),
        (WIDE, {"columns": ("amount",)}, "sort", "100% of the bytes"),
        (WIDE, {"score": "amount * 2"}, "sort", "no stored column"),
        (WIDE, {"n": 100_001}, "sort", "no small bound"),
        (WIDE, {"group_by": ("cat",)}, "sort", "computed twice"),
        (BIG, {}, "sort", "no stored column whose size is known"),
    ],
)
def test_one_bound_for_all_rows(facts: InputFacts, changes: dict[str, object], choice: str, why: str) -> None:
    decision = plan(facts=facts, **{"accelerator": "comet", **changes})
    assert decision.choice == choice
    assert why in decision.reason + dict(decision.rejected).get("prune", "")


def test_bounds_of_groups_are_refused() -> None:
    with pytest.raises(StrategyError, match="groups of dest"):
        plan("prune", group_by=("dest",))


def test_forced_bounds_without_facts() -> None:
    decision = plan("prune", facts=InputFacts("input", "csv", ("in",)), partition_by=("cat",))
    assert (decision.choice, decision.forced, decision.evidence["one_in"]) == ("prune", True, 64)


@pytest.mark.parametrize(
    ("n", "ratio", "cores", "salts"),
    [(5_000, 0.9, 8, 8), (5_000, 0.9, 2, None), (5_000, 0.1, 8, None), (1_000, 0.9, 8, None)],
)
def test_a_skewed_partition_is_ranked_in_parts(n: int, ratio: float, cores: int, salts: int | None) -> None:
    sample = KeySample(("cat",), 1_000, 16, "7", ratio)
    facts = replace(FACTS, sample=sample)
    known = Facts({"input": facts}, core_count=cores)
    decision = plan_top_n("auto", Question(n=n, partition_by=("cat",)), known)
    assert decision.evidence.get("salts") == salts
    assert ("in 8 parts first" in decision.reason) is (salts == 8)
