"""How joins are planned: from numbers, with every limit kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from common.core.errors import FileCorruptError, StrategyError, UsageError
from common.settings.key_files import read_keys, remembered_keys, remembered_text
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
    # All rows are 110 MB: two tasks. Cold: 110 - 40.0003 MB in two; the largest has UA's 30 MB as well.
    sizes = decision.evidence["predicted_task_bytes"]
    assert sizes["shuffle"] == {"largest_bytes": 64_999_950, "median_bytes": 34_999_850}
    assert sizes["isolate"] == {"largest_bytes": 55_000_000, "median_bytes": 55_000_000}
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
    assert plan_join("shuffle", SMALL, facts).reason.startswith("as asked; 1,000,000 left")


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
    decision = plan_join("drop", question, given(1_000_000, 100_000, ("UA", 58_665, 1), dropped=dropped))
    assert (
        "dropped as asked: k=UA (58,665 left and 1 right rows), k=XX (0 left and 0 right rows)"
        in decision.reason
    )
    assert decision.evidence["dropped"][0]["left_rows"] == 58_665
    assert decision.evidence["hot_keys"] == []


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
    assert plan_search(strategy, SMALL, facts, remembered=remembered) == expected


def test_many_nulls_are_counted_where_they_are_kept() -> None:
    facts = sampled(sample(0.001, nulls=0.4), EVEN)
    assert plan_search("auto", replace(SMALL, how="left"), facts) == Search("count")
    assert plan_search("auto", replace(SMALL, how="inner"), facts) == Search("none")


def test_keys_are_kept_and_found_again(tmp_path: Any) -> None:
    path = tmp_path / "hot keys.json"
    assert remembered_keys(str(path), on=ON) is None
    keys: Sequence[dict[str, Any]] = [
        {"key": ["Ü|a", "5"], "hash": 1, "left_rows": 7, "right_rows": 0, "way": "apart"}
    ]
    path.write_text(remembered_text(ON, keys), encoding="utf-8")
    assert remembered_keys(str(path), on=ON) == (("Ü|a", "5"),)
    assert remembered_keys(str(path), on=(("k", "j"),)) is None
    for text in ("no json", "[]", '{"version": 2}', '{"version": 1, "on": [["k", "k"]], "keys": [1]}'):
        path.write_text(text)
        with pytest.raises(FileCorruptError, match="delete it, and this run makes a new one"):
            remembered_keys(str(path), on=ON)


def test_keys_to_drop_come_from_the_command_line_and_from_files(tmp_path: Any) -> None:
    file = tmp_path / "keys"
    file.write_text("UA\n\nEWR | 5\nUA\n")
    assert read_keys(("DL", f"@{file}")) == (("DL",), ("UA",), ("EWR", "5"))
    with pytest.raises(
        UsageError, match=r"flag `--drop-keys`: expected a readable file after @, got .*No such"
    ):
        read_keys(("@/none/such",))
