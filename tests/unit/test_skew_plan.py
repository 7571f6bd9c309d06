"""How joins are planned: from numbers, with every limit kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from common.core.errors import FileCorruptError, StrategyError, UsageError
from common.settings.key_files import Remembered, read_keys, remembered_keys, remembered_text
from common.tuning.facts import Facts, InputFacts, KeySample
from common.tuning.hot_key_search import Search, plan_search
from common.tuning.skew import plan_join
from common.tuning.skew_facts import JoinQuestion

ON = (("k", "k"),)
SMALL = JoinQuestion(ON, max_broadcast_bytes=1_000_000)


def side(name: str, rows: int | None, *, width: float = 92.0, **more: Any) -> InputFacts:
    """Rows of one key and one other column; 100 bytes each in memory, 132 in a broadcast."""
    return InputFacts(name, "parquet", (name,), row_count=rows, column_widths={"k": 8.0, "v": width}, **more)


def given(
    left: int | None, right: int | None, *hot: tuple[str | None, int, int], cores: int = 2, **more: Any
) -> Facts:
    rows = tuple(
        {
            "key": None if key is None else [key],
            "key_hash": None if key is None else at,
            "left_rows": ours,
            "right_rows": theirs,
        }
        for at, (key, ours, theirs) in enumerate(hot, start=1)
    )
    return Facts(
        {"left": side("left", left), "right": side("right", right)},
        core_count=cores,
        probed={"hot_keys": rows, **more},
    )


def ways(evidence: Any) -> dict[str, str]:
    return {key["key"][0]: key["way"] for key in evidence["hot_keys"]}


def test_a_small_side_is_broadcast_by_its_decoded_size() -> None:
    # 1,000 rows of 100 bytes and 32 of overhead: 132,000 bytes.
    decision = plan_join("auto", SMALL, given(1_000_000, 1_000))
    assert (decision.choice, decision.evidence["broadcast"]) == ("broadcast", "right")
    assert "the right side is about 128.9 KiB decoded, within 976.6 KiB" in decision.reason
    assert decision.guidelines == ("D4", "K5")
    turned = plan_join("auto", SMALL, given(1_000, 1_000_000))
    assert turned.evidence["broadcast"] == "left"


@pytest.mark.parametrize(
    ("how", "which"), [("left", "right"), ("semi", "right"), ("anti", "right"), ("right", "left")]
)
def test_only_a_side_whose_rows_are_not_kept_is_broadcast(how: str, which: str) -> None:
    question = replace(SMALL, how=how)
    few_right, few_left = given(1_000_000, 10), given(10, 1_000_000)
    right, left = plan_join("auto", question, few_right), plan_join("auto", question, few_left)
    chosen, other = (right, left) if which == "right" else (left, right)
    assert (chosen.choice, chosen.evidence["broadcast"]) == ("broadcast", which)
    assert other.choice == "shuffle"


def test_a_full_join_broadcasts_nothing() -> None:
    decision = plan_join("auto", replace(SMALL, how="full"), given(1_000_000, 10))
    assert decision.choice == "shuffle"
    assert ("broadcast", "--how full keeps the rows of both sides") in decision.rejected
    with pytest.raises(StrategyError, match="--how full keeps the rows of both sides"):
        plan_join("broadcast", replace(SMALL, how="full"), given(1_000_000, 10))


def test_hot_keys_go_apart_and_the_reason_has_the_numbers() -> None:
    facts = given(1_000_000, 100_000, ("UA", 300_000, 1), ("DL", 100_000, 2))
    decision = plan_join("auto", SMALL, facts)
    assert decision.choice == "isolate"
    assert ways(decision.evidence) == {"UA": "broadcast_right", "DL": "broadcast_right"}
    assert "2 hot keys hold 40.0 % of left and 0.0 % of right rows" in decision.reason
    assert "key k=UA: 30.0 % of left rows, 1 row on the right" in decision.reason
    # All rows are 110 MB: two tasks. Cold: 110 - 40.0003 MB in two; one has UA's 30.0001 MB as well, the
    # other DL's 10.0002.
    sizes = decision.evidence["predicted_task_bytes"]
    assert sizes["shuffle"] == {"largest_bytes": 64_999_950, "median_bytes": 45_000_050}
    assert sizes["isolate"] == {"largest_bytes": 34_999_850, "median_bytes": 34_999_850}
    # A broadcast leaves the left rows where they are: 100 MB in two tasks.
    assert sizes["broadcast"] == {"largest_bytes": 50_000_000, "median_bytes": 50_000_000}
    # Eight parts of each, since copies of three rows cost nothing: four in each task.
    assert sizes["salt"] == {"largest_bytes": 55_000_000, "median_bytes": 55_000_000}
    assert decision.evidence["broadcast_bytes"] == 3 * 132
    names = [name for name, _ in decision.rejected]
    assert names == ["broadcast", "salt", "shuffle"]


def test_few_hot_rows_on_few_cores_are_joined_plainly() -> None:
    facts = given(1_000_000, 100_000, ("UA", 100_000, 1))
    decision = plan_join("auto", SMALL, facts)
    assert decision.choice == "shuffle"
    assert "2 cores wait for no straggler, and the hot keys hold only 9.1% of all rows" in decision.reason
    many = plan_join("auto", SMALL, replace(facts, core_count=100))
    assert many.choice == "isolate"


def test_even_keys_are_joined_plainly() -> None:
    decision = plan_join("auto", SMALL, given(1_000_000, 100_000, cores=100))
    assert decision.choice == "shuffle"
    assert decision.reason.startswith(
        "no key holds 0.01 of a side's rows; 1,000,000 left and 100,000 right rows"
    )


def test_keys_with_many_rows_on_both_sides_are_split_and_the_others_broadcast() -> None:
    facts = given(1_000_000, 100_000, ("UA", 300_000, 20_000), ("DL", 10, 50_000))
    decision = plan_join("auto", SMALL, facts)
    assert ways(decision.evidence) == {"DL": "broadcast_left", "UA": "split_left"}
    assert decision.guidelines == ("K6", "K7", "K8")
    # UA's 30 MB of left rows in tasks of 36.5 MB less the hot ones: two parts are enough.
    assert [key.get("salts") for key in decision.evidence["hot_keys"]] == [None, 2]


def test_auto_broadcasts_one_key_and_splits_another_as_far_as_the_copies_may_go() -> None:
    facts = given(1_000_000, 500_000, ("B", 500_000, 400_000), ("A", 300_000, 1), cores=100)
    decision = plan_join("auto", SMALL, facts)
    assert ways(decision.evidence) == {"A": "broadcast_right", "B": "split_left"}
    # B's 50 MB are to be 128 parts. 1,500,000 rows more are allowed: 400,000 * 3, not * 7.
    assert decision.evidence["hot_keys"][1]["salts"] == 4
    assert decision.evidence["replication_ratio"] == 1.8
    assert decision.guidelines == ("K6", "K7", "K8")
    # Cold: 150 MB less B's 90 and A's 30 in 100 tasks; a fourth of B.
    assert decision.evidence["predicted_task_bytes"]["isolate"]["largest_bytes"] == 300_000 - 1 + 22_500_000


def test_split_keys_share_one_budget() -> None:
    facts = given(1_000_000, 500_000, ("B", 500_000, 200_000), ("C", 300_000, 200_000), cores=100)
    keys = plan_join("auto", SMALL, facts).evidence["hot_keys"]
    # 1,500,000 copies are allowed: 200,000 * 7 of B's leave 100,000, too few for 200,000 of C's.
    assert [(key["key"], key.get("way"), key.get("salts")) for key in keys] == [
        (["B"], "split_left", 8),
        (["C"], None, None),
    ]


def test_a_key_that_fits_no_limit_stays_in_the_shuffle_and_the_others_go_their_ways() -> None:
    question = replace(SMALL, salts=1000)
    facts = given(1_000_000, 500_000, ("A", 600_000, 1), ("B", 300_000, 400_000), cores=100)
    decision = plan_join("auto", question, facts)
    assert (decision.choice, [key.get("way") for key in decision.evidence["hot_keys"]]) == (
        "isolate",
        ["broadcast_right", None],
    )
    assert "(132 B) are broadcast, k=B stay in the shuffle, beyond both limits" in decision.reason
    few = given(1_000_000, 500_000, ("A", 60_000, 1), ("B", 300_000, 400_000), cores=100)
    assert "the largest task would still be" in plan_join("auto", question, few).reason


def test_rows_with_a_null_key_that_are_kept_make_a_task_of_their_own() -> None:
    facts = given(1_000_000, 100_000, (None, 150_000, 0), cores=100)
    assert plan_join("auto", replace(SMALL, how="left"), facts).choice == "isolate"
    few = given(1_000_000, 100_000, (None, 10_000, 0), cores=2)
    assert plan_join("auto", replace(SMALL, how="left"), few).choice == "shuffle"


def test_each_hot_key_has_a_line_of_its_own() -> None:
    keys = [(f"k{at}", 100_000 - at, 1) for at in range(5)]
    facts = given(1_000_000, 1_000_000, (None, 200_000, 3), *keys, cores=100)
    decision = plan_join("auto", replace(SMALL, how="left"), facts)
    lines = decision.evidence["hot_keys_in_words"]
    # 200 MB in 100 tasks; cold: 200 MB less 70 of NULL and of the five.
    assert lines[0] == (
        "key k=NULL: 20.0 % of left and 0.0 % of right rows, predicted task 20.3 MiB of 1.2 MiB median; "
        "they go past the join"
    )
    assert lines[1] == (
        "key k=k0: 10.0 % of left rows, 1 row on the right, predicted task 10.8 MiB of 1.2 MiB median; "
        "its right rows are broadcast"
    )
    assert lines[5:] == ["1 more hot key, in the run record"]
    assert decision.evidence["null_rows"] == {"left": 200_000, "right": 3}


def test_of_keys_that_nobody_looked_for_nothing_is_said() -> None:
    facts = replace(sampled(sample(0.9), EVEN, rows=1_000_000), probed={})
    decision = plan_join("shuffle", SMALL, facts)
    assert decision.reason.startswith("as asked; 1,000,000 left and 1,000,000 right rows are shuffled once")


def test_hot_keys_that_could_not_be_counted_are_not_denied() -> None:
    assert (
        "no hash that could tell hot ones; 1,000,000 left"
        in plan_join("auto", SMALL, sampled(sample(0.9), EVEN)).reason
    )
    assert "no key holds 0.01 of a side's rows" in plan_join("auto", SMALL, sampled(EVEN, EVEN)).reason
    assert "nothing cheap tells which keys are hot" in plan_join("auto", SMALL, sampled(EVEN, None)).reason


def test_semi_joins_broadcast_keys_alone() -> None:
    facts = given(1_000_000, 1_000_000, ("UA", 500_000, 500_000))
    decision = plan_join("isolate", replace(SMALL, how="semi", max_broadcast_bytes=100), facts)
    assert decision.evidence["broadcast_bytes"] == 52


def test_c11_copies_beyond_the_budget_are_refused_with_numbers() -> None:
    facts = given(2_000_000, 1_000_000, ("UA", 1_000_000, 1_000_000), cores=100)
    with pytest.raises(StrategyError, match=r"would be 334\.0 times the rows, the budget is 2"):
        plan_join("salt", replace(SMALL, salts=1000), facts)
    decision = plan_join("auto", replace(SMALL, salts=1000), facts)
    assert decision.choice == "shuffle"
    allowed = plan_join("salt", replace(SMALL, salts=1000, replication_budget=400), facts)
    assert allowed.evidence["hot_keys"][0]["salts"] == 1000


def test_forced_choices_keep_their_limits() -> None:
    facts = given(1_000_000, 100_000, ("UA", 300_000, 50_000))
    with pytest.raises(
        StrategyError, match=r"about 6\.3 MiB decoded, the limit for a broadcast is 976\.6 KiB"
    ):
        plan_join("isolate", SMALL, facts)
    with pytest.raises(StrategyError, match=r"the right side is about 12\.6 MiB decoded, the limit is 976"):
        plan_join("broadcast", SMALL, facts)
    with pytest.raises(StrategyError, match="got no --drop-keys"):
        plan_join("drop", SMALL, facts)
    assert plan_join("broadcast", SMALL, given(None, None)).choice == "broadcast"
    assert plan_join("shuffle", SMALL, facts).reason.endswith(
        "; 1,000,000 left and 100,000 right rows are shuffled once at most, "
        "adaptive execution splits what grows too large"
    )


@pytest.mark.parametrize(
    ("how", "apart"), [("left", True), ("anti", True), ("inner", False), ("right", False)]
)
def test_null_keys_go_apart_where_the_join_keeps_their_rows(how: str, apart: bool) -> None:
    question = replace(SMALL, how=how)
    decision = plan_join("auto", question, given(1_000_000, 100_000, (None, 500_000, 0)))
    assert decision.choice == ("isolate" if apart else "shuffle")
    assert decision.evidence.get("nulls_apart", False) is apart


def test_what_is_dropped_is_told() -> None:
    dropped = ({"key": ["UA"], "key_hash": 1, "left_rows": 58_665, "right_rows": 1},)
    question = replace(SMALL, drop=(("UA",), ("XX",)))
    decision = plan_join("drop", question, given(1_000_000, 100_000, dropped=dropped))
    assert (
        "dropped as asked: k=UA (58,665 left and 1 right rows), k=XX (0 left and 0 right rows)"
        in decision.reason
    )
    assert decision.evidence["dropped"][0]["left_rows"] == 58_665
    assert (decision.evidence["left_rows"], decision.evidence["right_rows"]) == (941_335, 99_999)


def sample(ratio: float, *, nulls: float = 0.0) -> KeySample:
    rows = 100_000
    top = ((("a",), round(ratio * rows)), (("b",), 2))
    return KeySample(("k",), rows, 1000, "a", ratio, (), 0, nulls, top)


def sampled(left: KeySample | None, right: KeySample | None, *, rows: int = 1_000_000, **more: Any) -> Facts:
    sides = {
        "left": replace(side("left", rows), sample=left, **more),
        "right": replace(side("right", rows), sample=right, **more),
    }
    return Facts(sides, core_count=2)


EVEN = sample(0.001)


@pytest.mark.parametrize(
    ("strategy", "facts", "remembered", "expected"),
    [
        ("auto", sampled(EVEN, EVEN), None, Search("none")),
        ("auto", sampled(EVEN, sample(0.2)), None, Search("count", (("a",),))),
        ("auto", sampled(EVEN, sample(0.2)), (("z",), ("a",)), Search("count", (("z",), ("a",)))),
        ("auto", sampled(sample(0.2), EVEN, rows=10), None, Search("none")),  # one side fits in a broadcast
        ("auto", sampled(None, None), None, Search("sketch")),
        ("auto", sampled(None, None), (("z",),), Search("count", (("z",),))),
        ("auto", sampled(None, None, format="csv"), None, Search("none")),
        ("isolate", sampled(None, None, format="csv"), None, Search("sketch")),
        ("isolate", sampled(EVEN, EVEN), None, Search("count")),
        ("shuffle", sampled(sample(0.9), EVEN), None, Search("none")),
    ],
)
def test_hot_keys_are_looked_for_only_where_they_matter(
    strategy: Any, facts: Facts, remembered: Any, expected: Search
) -> None:
    found = plan_search(strategy, SMALL, facts, remembered=remembered and Remembered(remembered, 0.01))
    assert (found.how, found.keys) == (expected.how, expected.keys)


def counted(*rows: tuple[str, int, int]) -> dict[str, Any]:
    return {"hot_keys": given(1, 1, *rows).probed["hot_keys"]}


def test_a_scan_is_skipped_while_the_kept_keys_hold() -> None:
    facts, kept = sampled(None, None), Remembered((("a",), ("b",)), 0.01, scans_skipped=6)
    first = plan_search("auto", SMALL, facts, remembered=kept)
    assert (first.how, first.keys) == ("count", (("a",), ("b",)))
    # 0.8 % of a million rows, where 1 % was asked: as good as hot, since shares scatter.
    held = replace(facts, probed=counted(("a", 300_000, 1), ("b", 0, 8_000)))
    second = plan_search("auto", SMALL, held, remembered=kept)
    assert (second.how, second.source) == ("none", "2 kept keys, counted anew: no scan")
    fallen = replace(facts, probed=counted(("a", 300_000, 1), ("b", 6_000, 0)))
    second = plan_search("auto", SMALL, fallen, remembered=kept)
    assert (second.how, second.source) == ("sketch", "a scan: 1 of 2 kept keys are no longer hot")
    scanned = replace(fallen, probed={**fallen.probed, "scanned": counted(("c", 500_000, 1))["hot_keys"]})
    assert plan_search("auto", SMALL, scanned, remembered=kept).how == "none"
    assert ways(plan_join("auto", SMALL, scanned).evidence) == {"c": "broadcast_right"}


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (Remembered(()), "none were kept"),
        (Remembered((("a",),), 0.05), "the kept ones were hot from 0.05 on, now 0.01 is asked"),
        (Remembered((("a",),), 0.01, scans_skipped=7), "the last one was 7 runs ago"),
    ],
)
def test_kept_keys_that_cannot_do_are_not_counted_first(kept: Remembered, why: str) -> None:
    search = plan_search("auto", SMALL, sampled(None, None), remembered=kept)
    assert (search.how, search.source) == ("sketch", f"a scan: {why}")


def test_the_first_rows_of_a_sorted_input_are_no_sample_of_its_keys() -> None:
    first = replace(EVEN, is_clustered=True)
    assert plan_search("auto", SMALL, sampled(first, EVEN)).how == "sketch"


def test_many_nulls_are_counted_where_they_are_kept() -> None:
    facts = sampled(sample(0.001, nulls=0.4), EVEN)
    assert plan_search("auto", replace(SMALL, how="left"), facts) == Search("count", source="a sample")
    assert plan_search("auto", replace(SMALL, how="inner"), facts) == Search("none")


def test_keys_are_kept_and_found_again(tmp_path: Any) -> None:
    path = tmp_path / "hot keys.json"
    assert remembered_keys(str(path), on=ON) is None
    keys: Sequence[dict[str, Any]] = [
        {"key": ["Ü|a", "5"], "hash": 1, "left_rows": 7, "right_rows": 0, "way": "apart"}
    ]
    both = (*ON, ("j", "j"))
    path.write_text(remembered_text(both, keys, hot_share=0.05, scans_skipped=3), encoding="utf-8")
    assert remembered_keys(str(path), on=both) == Remembered((("Ü|a", "5"),), 0.05, 3)
    assert remembered_keys(str(path), on=(("k", "j"),)) is None
    path.write_text('{"version": 1, "on": [["k", "k"]], "keys": [{"key": [7]}]}')
    assert remembered_keys(str(path), on=ON) == Remembered((("7",),), 1.0, 0)
    both_parts = '{"version": 1, "on": [["k", "k"]], "keys": [{"key": ["a", "b"]}]}'
    for text in (
        "no json",
        "[]",
        '{"version": 2}',
        '{"version": 1, "on": [["k", "k"]], "keys": [1]}',
        both_parts,
    ):
        path.write_text(text)
        with pytest.raises(FileCorruptError, match="one that is not there yet is made by this run"):
            remembered_keys(str(path), on=ON)


def test_keys_to_drop_come_from_the_command_line_and_from_files(tmp_path: Any) -> None:
    file = tmp_path / "keys"
    file.write_text("UA\n\nEWR | 5\nUA\n")
    assert read_keys(("DL", f"@{file}")) == (("DL",), ("UA",), ("EWR", "5"))
    with pytest.raises(
        UsageError, match=r"flag `--drop-keys`: expected a readable file after @, got .*No such"
    ):
        read_keys(("@/none/such",))
