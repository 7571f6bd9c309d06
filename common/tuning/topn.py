"""Which strategy a Top-N takes, from facts that cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from common.core.errors import StrategyError
from common.tuning.decision import Decision
from common.tuning.facts import InputFacts

Strategy = Literal["auto", "sort", "window", "heap"]

# A group beyond this share of the rows makes its task the last one to end (K4).
SKEWED_RATIO = 0.2


def plan_top_n(
    strategy: Strategy,
    *,
    n: int,
    ties: str,
    group_by: Sequence[str],
    partition_by: Sequence[str],
    facts: InputFacts,
    capabilities: frozenset[str] = frozenset(),
) -> Decision:
    """Choose between a bounded sort and a ranking window; a heap of Python rows only when asked.

    Args:
        strategy: "auto", or the choice that the user forces.
        n: Rows kept, of each partition.
        ties: "first", "all" or "dense".
        group_by: Columns reduced to one row each before the ranking.
        partition_by: Columns within whose combinations is ranked.
        facts: What is known about the input; its sample spreads over `partition_by`.
        capabilities: What the engine can do.

    Raises:
        StrategyError: the forced strategy cannot give the right answer.
    """
    unsuitable = _why_not_sort(ties=ties, partition_by=partition_by)
    if strategy == "sort" and unsuitable:
        raise StrategyError(
            "strategy",
            "sort",
            expected="one ranking that cuts ties",
            got=unsuitable,
            hint="use window, or auto",
        )
    if strategy == "heap":
        return _heap(n, facts=facts, capabilities=capabilities)
    choice = ("window" if unsuitable else "sort") if strategy == "auto" else strategy
    evidence = _evidence(n=n, facts=facts)
    what = f"the groups of {', '.join(group_by)}" if group_by else _rows_text(facts)
    if choice == "sort":
        return _sort(n, what=what, evidence=evidence, forced=strategy == "sort")
    forced = strategy == "window"
    reason = _asked(
        _window_reason(n, what=what, ties=ties, partition_by=partition_by, facts=facts), forced=forced
    )
    rejected = (("sort", unsuitable),) if unsuitable else ()
    guidelines = ("D5", "K4") if partition_by else ("D5",)
    return Decision("window", reason, rejected, evidence, guidelines, forced=forced)


def _heap(n: int, *, facts: InputFacts, capabilities: frozenset[str]) -> Decision:
    if "rdd" not in capabilities:
        raise StrategyError(
            "strategy",
            "heap",
            expected="classic Spark, which has RDDs",
            got="an engine without",
            hint="use auto",
        )
    reason = f"as asked; {_rows_text(facts)} go through Python, each task keeps {n:,} per partition in a heap"
    return Decision("heap", reason, (), _evidence(n=n, facts=facts), ("D5", "D9"), forced=True)


def _why_not_sort(*, ties: str, partition_by: Sequence[str]) -> str | None:
    if partition_by:
        return f"it ranks all rows together, not within {', '.join(partition_by)}"
    return f"it keeps exactly N rows, and ties are `{ties}`" if ties != "first" else None


def _sort(n: int, *, what: str, evidence: dict[str, Any], forced: bool) -> Decision:
    reason = f"one ranking of {what}; each task keeps its best {n:,}, only those are merged"
    rejected = (("window", "one task would rank all that the others leave"),)
    return Decision("sort", _asked(reason, forced=forced), rejected, evidence, ("D4", "D5"), forced=forced)


def _window_reason(n: int, *, what: str, ties: str, partition_by: Sequence[str], facts: InputFacts) -> str:
    if not partition_by:
        pruned = f"each task drops what ranks below {n:,}, one task ranks the rest"
        return f"one ranking of {what}, ties `{ties}`: {pruned}"
    reason = f"best {n:,} of {what} within {', '.join(partition_by)}: one shuffle, one sort per group"
    sample = facts.sample
    if sample is None or not sample.row_count:
        return reason
    spread = f"{sample.distinct_count:,} groups seen in a sample of {sample.row_count:,} rows"
    largest = f"the largest ({sample.largest_key}) with {sample.largest_ratio:.1%}"
    skew = ", which one task must sort" if sample.largest_ratio >= SKEWED_RATIO else ""
    return f"{reason}; {spread}, {largest}{skew}"


def _asked(reason: str, *, forced: bool) -> str:
    return f"as asked; {reason}" if forced else reason


def _rows_text(facts: InputFacts) -> str:
    return "all rows" if facts.row_count is None else f"{facts.row_count:,} rows"


def _evidence(*, n: int, facts: InputFacts) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "n": n,
        "rows": facts.row_count,
        "files": facts.file_count,
        "size_bytes": facts.size_bytes,
    }
    if not facts.schema_declared:
        evidence["columns_typed"] = False
    if facts.sample is not None:
        evidence |= {
            "sample_rows": facts.sample.row_count,
            "sample_groups": facts.sample.distinct_count,
            "largest_group": facts.sample.largest_key,
            "largest_group_ratio": round(facts.sample.largest_ratio, 4),
        }
    return {key: value for key, value in evidence.items() if value is not None}
