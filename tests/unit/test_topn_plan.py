"""What the planner of Top-N decides, and says."""

from __future__ import annotations

import pytest

from common.core.errors import StrategyError
from common.tuning.decision import Decision
from common.tuning.facts import InputFacts, KeySample
from common.tuning.topn import plan_top_n

FACTS = InputFacts("input", "parquet", ("in",), file_count=3, size_bytes=9_000, row_count=336_776)


def plan(strategy: str = "auto", **changes: object) -> Decision:
    asked: dict[str, object] = {
        "n": 10,
        "ties": "first",
        "group_by": (),
        "partition_by": (),
        "facts": FACTS,
        **changes,
    }
    return plan_top_n(strategy, **asked)  # type: ignore[arg-type]


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
    assert {name for name, _ in decision.rejected} == {"sort", "window"} - {choice}


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
    assert record["rejected"] == (("window", "one task would rank all that the others leave"),)
