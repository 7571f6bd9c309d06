"""How lookups are planned, and what stops them: from numbers."""

from __future__ import annotations

from typing import Any

import pytest

from common.core.errors import SeveralErrors, StrategyError
from common.core.key_errors import KeyDuplicateError, KeyMissingError, RejectsError, ValidityError
from common.settings.job import with_inputs
from common.tuning.facts import Facts
from common.tuning.lookup import LookupQuestion, plan_lookup
from common.tuning.lookup_faults import check_duplicates, check_missing, check_validity
from common.tuning.rejects import check_rejects
from jobs.lookup import Lookup, Settings

SMALL = LookupQuestion((("k", "k"),), max_broadcast_bytes=1_000_000)


def given(
    rows: int, size: int, *, capabilities: tuple[str, ...] = ("broadcast_variable",), **more: Any
) -> Facts:
    known = {"rows": rows, "duplicates": 0, "decoded_bytes": size}
    return Facts(capabilities=frozenset(capabilities), probed={"dimension": (known,)}, **more)


def test_auto_joins_by_the_size_in_memory() -> None:
    # 32 bytes of overhead for each of 1,000 rows.
    fitting = plan_lookup("auto", SMALL, given(1_000, 968_000))
    assert (fitting.choice, fitting.evidence["broadcast"]) == ("join", True)
    assert fitting.guidelines == ("D4", "K5")
    assert "1,000 dimension rows, about 976.6 KiB decoded, within 976.6 KiB" in fitting.reason
    large = plan_lookup("auto", SMALL, given(1_000, 968_001))
    assert (large.choice, large.evidence["broadcast"], large.guidelines) == ("join", False, ("K3",))
    assert "both sides are shuffled once" in large.reason


@pytest.mark.parametrize(
    ("facts", "question", "why"),
    [
        (given(10, 100), SMALL, "through Python, which costs more"),
        (given(10, 100, accelerator="comet"), SMALL, "out of Comet"),
        (given(10, 100, capabilities=()), SMALL, "this engine does not have"),
        (given(10, 100), LookupQuestion(SMALL.on, has_hashable_keys=False), "collated text"),
        (given(10, 600_000, core_count=2), SMALL, "in each of 2 workers of an executor"),
    ],
    ids=["python", "comet", "connect", "collated", "large"],
)
def test_auto_says_why_no_variable(facts: Facts, question: LookupQuestion, why: str) -> None:
    decision = plan_lookup("auto", question, facts)
    ((name, reason),) = decision.rejected
    assert (decision.choice, name) == ("join", "variable")
    assert why in reason


def test_a_forced_variable_counts_the_workers() -> None:
    decision = plan_lookup("variable", SMALL, given(10, 500_000, core_count=8, workers_per_executor=2))
    assert (decision.choice, decision.forced) == ("variable", True)
    with pytest.raises(
        StrategyError, match=r"each of 3 workers .*, 1.4 MiB together, the limit is 976.6 KiB"
    ):
        plan_lookup("variable", SMALL, given(10, 500_000, workers_per_executor=3))
    with pytest.raises(StrategyError, match="broadcast variables, which this engine does not have"):
        plan_lookup("variable", SMALL, given(10, 100, capabilities=()))


def test_duplicates_are_named() -> None:
    row = {
        "duplicate_keys": 3,
        "most": {"n": 7, "key": "b"},
        "first": {"key": "a", "n": 2},
        "last": {"key": "c", "n": 2},
    }
    with pytest.raises(KeyDuplicateError, match=r"3 keys .* b \(7 rows\), a \(2 rows\), c \(2 rows\)"):
        check_duplicates(row, on=["k"])
    check_duplicates({"duplicate_keys": 0}, on=["k"])


def test_intervals_are_refused_by_key() -> None:
    row = {"empty_keys": 0, "overlapping_keys": 1, "overlapping_first": "a", "overlapping_last": "a"}
    row = {**row, "gap_keys": 0}
    with pytest.raises(ValidityError, match="1 key with versions that are valid at once: a"):
        check_validity(row, on=["k"])
    both = {**row, "empty_keys": 3, "empty_first": "a", "empty_last": "z"}
    with pytest.raises(SeveralErrors, match="3 keys with an interval that does not: a, z, …") as error:
        check_validity(both, on=["k"])
    assert int(error.value.exit_code) == 3
    gap = {**row, "overlapping_keys": 0, "gap_keys": 2, "gap_first": "k", "gap_last": "m"}
    with pytest.raises(ValidityError, match=r"2 keys with days between .* none: k, m.*--gaps allow"):
        check_validity(gap, on=["k"])
    check_validity(gap, on=["k"], allows_gaps=True)
    with pytest.raises(ValidityError, match="valid at once"):
        check_validity(row, on=["k"], allows_gaps=True)


def test_missing_keys_are_named() -> None:
    check_missing(0, [], on=["dest"])
    with pytest.raises(KeyMissingError, match=r"1,001 rows without one; .*: SJU \(1,000 rows\), X \(1 row\)"):
        check_missing(1001, [{"key": "SJU", "rows": 1000}, {"key": "X", "rows": 1}], on=["dest"])


@pytest.mark.parametrize("limit", ["10", "1%", "1.0%"])
def test_rejects_up_to_the_limit(limit: str) -> None:
    check_rejects(10, 1000, limit=limit, hint="look")
    check_rejects(0, 0, limit=limit, hint="look")
    with pytest.raises(RejectsError, match=r"at most .* of 1,000 rows, got 11 \(1.1%\)"):
        check_rejects(11, 1000, limit=limit, hint="look")


def settings(**flags: Any) -> Any:
    model = with_inputs(Settings, Lookup.inputs)
    return model(facts=("f",), dimension=("d",), **{"on": ("k",), "take": ("v",), **flags})


def said(flags: Any) -> str:
    return "".join(map(str, flags.problems_of_rejects()))


def test_flags_that_belong_together() -> None:
    wrong = settings(as_of="2013-01-01", missing="quarantine", max_rejects="3", take=("=b",))
    text = "\n".join(map(str, wrong.problems()))
    for part in ("no --valid-from and no --valid-to", "flag `--take`"):
        assert part in text
    assert "flag `--output`" in said(wrong)
    assert "flag `--duplicates`" in "".join(map(str, settings(duplicates="first:a,").problems()))
    assert "--as-of beside it" in "".join(map(str, settings(gaps="allow").problems()))
    assert "expected a flag beside it that rejects rows" in said(settings(max_rejects="3"))
    assert said(settings(missing="quarantine", output="o", max_rejects="3")) == ""
    assert "a folder with --missing quarantine, got none" in said(settings(missing="quarantine"))
    assert "a folder with --bad-rows reject, got none" in said(settings(bad_rows="reject"))
    assert said(settings(bad_rows="reject", explain=True)) == ""


def test_what_is_asked() -> None:
    spec = settings(on=("a=b", "c"), take=("v=w", "x"), missing="default:a:b", duplicates="last:t, u").spec
    assert (spec.on, spec.take) == ((("a", "b"), ("c", "c")), (("v", "w"), ("x", "")))
    assert (spec.missing, spec.default, spec.duplicates, spec.order) == ("default", "a:b", "last", ("t", "u"))
    assert settings(missing="default:").spec.default == ""
