"""Whether hot keys are looked for before a join is planned, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from common.tuning.facts import Facts, InputFacts
from common.tuning.hot_keys import SEEN_RATIO, candidates
from common.tuning.pruning import COLUMNAR
from common.tuning.skew import Strategy, fits_in_broadcast
from common.tuning.skew_facts import JoinQuestion

_SIDES = ("left", "right")


@dataclass(frozen=True)
class Search:
    """How hot keys are looked for.

    Attributes:
        how: "count": these keys are counted exactly. "sketch": a scan of the key columns finds them first.
            "none": not at all.
        keys: The keys to count, as text.
    """

    how: Literal["none", "count", "sketch"]
    keys: tuple[tuple[str, ...], ...] = ()


def plan_search(
    strategy: Strategy,
    question: JoinQuestion,
    facts: Facts,
    *,
    remembered: tuple[tuple[str, ...], ...] | None = None,
) -> Search:
    """Look for hot keys only where their number can change the plan, and as cheaply as it goes.

    Args:
        strategy: As asked.
        question: What is asked.
        facts: Of the inputs `left` and `right`, with their samples.
        remembered: Hot keys of an earlier run; None when there are none to start from.
    """
    if strategy in ("broadcast", "shuffle", "drop"):
        return Search("none")
    if strategy == "auto" and fits_in_broadcast(question, facts):
        return Search("none")
    known = [facts.inputs[name] for name in _SIDES]
    sampled = candidates((side.sample for side in known), share=question.hot_share)
    unsampled = [side for side in known if side.sample is None and side.row_count != 0]
    if unsampled and not remembered and _may_scan(unsampled, strategy):
        return Search("sketch")
    keys = tuple(dict.fromkeys((*(remembered or ()), *sampled)))
    wanted = keys or strategy != "auto" or any(_has_nulls(side, question) for side in known)
    return Search("count", keys) if wanted else Search("none")


def _may_scan(sides: list[InputFacts], strategy: Strategy) -> bool:
    """Files that are no columns would be read twice in full, which is done only when asked for."""
    return strategy != "auto" or all(side.format in COLUMNAR for side in sides)


def _has_nulls(side: InputFacts, question: JoinQuestion) -> bool:
    kept = {"left": ("left", "full", "anti"), "right": ("right", "full")}[side.name]
    ratio = side.sample.null_ratio if side.sample else 0.0
    return question.how in kept and ratio >= SEEN_RATIO * question.hot_share
