"""Which strategy a Top-N takes, from facts that cost nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from common.core.errors import StrategyError
from common.tuning.decision import Decision
from common.tuning.facts import Facts, InputFacts
from common.tuning.pruning import COLUMNAR, WORTHWHILE_ROWS, Pruning, expected_pruning, score_bytes_ratio

Strategy = Literal["auto", "sort", "window", "prune", "aggregate", "heap"]

# A group beyond this share of the rows makes its task the last one to end (K4).
SKEWED_RATIO = 0.2
# A bound for all rows at once is looked up by each task; of more rows it is no longer a small sort.
_BOUNDED_N = 100_000
_NARROW_RATIO = 0.5
# spark.sql.optimizer.windowGroupLimitThreshold
_GROUP_LIMITED_N = 1_000
_MANY_CORES = 4
_FEW_NULLS_RATIO = 0.01
_MANY_GROUPS = 50_000
# The sample for bounds where nothing tells a better one.
_USUAL_RATE = 64


@dataclass(frozen=True)
class Question:
    """What a Top-N asks, as far as a planner needs to know.

    Attributes:
        n: Rows kept, of each partition.
        ties: "first", "all" or "dense".
        score: The score that counts most: a column or an expression.
        group_by: Columns reduced to one row each before the ranking.
        partition_by: Columns within whose combinations is ranked.
        columns: Output columns; empty for all.
    """

    n: int
    ties: str = "first"
    score: str = ""
    group_by: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


def plan_top_n(strategy: Strategy, question: Question, facts: Facts, *, name: str = "input") -> Decision:
    """Choose between a bounded sort, a ranking window and pruning; a heap of Python rows only when asked.

    Args:
        strategy: "auto", or the choice that the user forces.
        question: What is asked.
        facts: What is known about the input, whose sample spreads over `partition_by`, and the engine.
        name: The input's name among the facts.

    Raises:
        StrategyError: the forced strategy cannot give the right answer.
    """
    known = facts.inputs[name]
    _refuse_wrong(strategy, question, facts)
    pruning = _pruning(question, known)
    against = {"prune": _why_not_prune(question, facts, known, pruning), "sort": _why_not_sort(question)}
    forced = strategy != "auto"
    choice = strategy if forced else next((it for it in against if not against[it]), "window")
    salts = _salts(question, facts, known) if choice == "window" else None
    reasons: dict[str, Callable[[Question, InputFacts], str]] = {
        "sort": _sort,
        "window": _window,
        "prune": partial(_prune, pruning=pruning),
        "aggregate": _aggregate,
        "heap": _heap,
    }
    reason = reasons[choice](question, known) + (f", in {salts} parts first" if salts else "")
    evidence = {**_evidence(question, known), "salts": salts}
    if choice == "prune":
        evidence |= _rates(known, pruning)
    return Decision(
        choice,
        f"as asked; {reason}" if forced else reason,
        _rejected(choice, against, partitioned=bool(question.partition_by)),
        {key: value for key, value in evidence.items() if value is not None},
        _guidelines(choice, question),
        forced=forced,
    )


def _refuse_wrong(strategy: Strategy, question: Question, facts: Facts) -> None:
    """A strategy that could not give the right answer is an error, never a silent other one."""
    wrong = {
        "sort": ("one ranking that cuts ties", _why_not_sort(question)),
        "prune": ("rows of the input", question.group_by and f"groups of {', '.join(question.group_by)}"),
        "aggregate": (
            "exactly N rows of each group",
            question.ties != "first" and f"ties={question.ties}",
        ),
        "heap": ("classic Spark, which has RDDs", "rdd" not in facts.capabilities and "an engine without"),
    }
    expected, got = wrong.get(strategy, ("", None))
    if got:
        raise StrategyError("strategy", strategy, expected=expected, got=got, hint="use window, or auto")


def _rejected(
    choice: str, against: Mapping[str, str | None], *, partitioned: bool
) -> tuple[tuple[str, str], ...]:
    """What was not taken, and why; of a forced choice only what could not have been."""
    why = dict(against)
    if choice == "prune" and not partitioned:
        why["sort"] = why["sort"] or "each task would carry all columns of its rows"
    if choice == "sort" or (choice == "prune" and not partitioned):
        why["window"] = "one task would rank all that the others leave"
    elif choice == "prune":
        why["window"] = "it would sort all rows"
    return tuple((name, text) for name, text in why.items() if name != choice and text)


def _salts(question: Question, facts: Facts, known: InputFacts) -> int | None:
    """In how many parts a large group is ranked first; None where that would only be more work."""
    skewed = known.sample is not None and known.sample.largest_ratio >= SKEWED_RATIO
    if not (question.partition_by and skewed and facts.core_count >= _MANY_CORES):
        return None
    # Up to here Spark itself lets each task drop what ranks below N, so that no group is large any more.
    return min(facts.core_count, 64) if question.n > _GROUP_LIMITED_N else None


def _why_not_sort(question: Question) -> str | None:
    if question.partition_by:
        return f"it ranks all rows together, not within {', '.join(question.partition_by)}"
    return f"it keeps exactly N rows, and ties are `{question.ties}`" if question.ties != "first" else None


def _pruning(question: Question, known: InputFacts) -> Pruning | None:
    """What bounds of partitions are expected to save; None where too little is known."""
    rows, sample = known.about_row_count, known.sample
    if not question.partition_by or rows is None or sample is None or not sample.row_count:
        return None
    return expected_pruning(question.n, row_count=rows, sample=sample)


def _why_not_prune(
    question: Question, facts: Facts, known: InputFacts, pruning: Pruning | None
) -> str | None:
    """Why two passes would not be quicker than one; None when they would."""
    if question.group_by:
        return "groups would be computed twice"
    if known.format not in COLUMNAR:
        return f"{known.format} would be read twice in full"
    rows = known.about_row_count
    if rows is None:
        return "nothing cheap tells how many rows there are"
    if rows < WORTHWHILE_ROWS:
        return f"{rows:,} rows are ranked sooner than a bound is found"
    return (
        _why_not_by_partition(pruning) if question.partition_by else _why_not_globally(question, facts, known)
    )


def _why_not_by_partition(pruning: Pruning | None) -> str | None:
    if pruning is None:
        return "nothing cheap tells how the rows spread"
    if pruning.is_worthwhile:
        return None
    groups = f"most of about {pruning.group_count:,} groups are too small"
    return f"it would leave {pruning.left_ratio:.0%} of the rows, {groups}"


def _why_not_globally(question: Question, facts: Facts, known: InputFacts) -> str | None:
    if facts.accelerator != "comet":
        return "plain Spark reads all columns of all rows in any case"
    ratio = score_bytes_ratio(question.score, columns=question.columns, facts=known)
    if ratio is None:
        return "the score is no stored column whose size is known"
    if ratio > _NARROW_RATIO:
        return f"the score is {ratio:.0%} of the bytes to be read"
    return f"{question.n:,} rows are no small bound" if question.n > _BOUNDED_N else None


def _sort(question: Question, known: InputFacts) -> str:
    kept = f"each task keeps its best {question.n:,}, only those are merged"
    return f"one ranking of {_what(question, known)}; {kept}"


def _window(question: Question, known: InputFacts) -> str:
    what = _what(question, known)
    if not question.partition_by:
        pruned = f"each task drops what ranks below {question.n:,}, one task ranks the rest"
        return f"one ranking of {what}, ties `{question.ties}`: {pruned}"
    within = ", ".join(question.partition_by)
    reason = f"best {question.n:,} of {what} within {within}: one shuffle, one sort per group"
    sample = known.sample
    if sample is None or not sample.row_count:
        return reason
    spread = f"{sample.distinct_count:,} groups seen in a sample of {sample.row_count:,} rows"
    largest = f"the largest ({sample.largest_key}) with {sample.largest_ratio:.1%}"
    skew = ", which one task must sort" if sample.largest_ratio >= SKEWED_RATIO else ""
    return f"{reason}; {spread}, {largest}{skew}"


def _prune(question: Question, known: InputFacts, *, pruning: Pruning | None) -> str:
    what = _what(question, known)
    if not question.partition_by:
        ratio = score_bytes_ratio(question.score, columns=question.columns, facts=known)
        share = "" if ratio is None else f" ({ratio:.0%} of the bytes)"
        return f"one ranking of {what}: the score alone{share} gives the bound for a second pass"
    within = f"best {question.n:,} of {what} within {', '.join(question.partition_by)}"
    if pruning is None or known.sample is None:
        return f"{within}: 1 row in {_USUAL_RATE} gives bounds for a second pass"
    largest = known.sample.largest_ratio
    groups = f"about {pruning.group_count:,} groups, the largest with {largest:.1%}"
    bounds = f"bounds from 1 row in {pruning.one_in} leave about {pruning.left_ratio:.1%} of the rows"
    return f"{within}: {groups}; {bounds} to be ranked"


def _aggregate(question: Question, known: InputFacts) -> str:
    within = f" within {', '.join(question.partition_by)}" if question.partition_by else ""
    kept = f"each task keeps {question.n:,} rows per group as objects, only those are merged"
    return f"best {question.n:,} of {_what(question, known)}{within}: {kept}"


def _heap(question: Question, known: InputFacts) -> str:
    return f"{_rows_text(known)} go through Python, each task keeps {question.n:,} per partition in a heap"


def _rates(known: InputFacts, pruning: Pruning | None) -> dict[str, Any]:
    """How the bounds are taken; what is not known is taken for the worse."""
    if pruning is None or known.sample is None:
        return {"one_in": _USUAL_RATE}
    return {
        "one_in": pruning.one_in,
        "null_keys": known.sample.null_ratio > _FEW_NULLS_RATIO,
        "many_groups": pruning.group_count > _MANY_GROUPS,
    }


def _guidelines(choice: str, question: Question) -> tuple[str, ...]:
    if choice == "window":
        return ("D5", "K4") if question.partition_by else ("D5",)
    return {
        "sort": ("D4", "D5"),
        "prune": ("D4", "D5", "K4"),
        "aggregate": ("D4", "D5"),
        "heap": ("D5", "D9"),
    }[choice]


def _what(question: Question, known: InputFacts) -> str:
    return f"the groups of {', '.join(question.group_by)}" if question.group_by else _rows_text(known)


def _rows_text(known: InputFacts) -> str:
    if known.row_count is not None:
        return f"{known.row_count:,} rows"
    return "all rows"


def _evidence(question: Question, known: InputFacts) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "n": question.n,
        "rows": known.row_count,
        "files": known.file_count,
        "size_bytes": known.size_bytes,
    }
    if not known.schema_declared:
        evidence["columns_typed"] = False
    if known.sample is not None:
        evidence |= {
            "sample_rows": known.sample.row_count,
            "sample_groups": known.sample.distinct_count,
            "largest_group": known.sample.largest_key,
            "largest_group_ratio": round(known.sample.largest_ratio, 4),
        }
    return evidence
