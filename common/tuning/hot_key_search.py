"""Whether hot keys are looked for before a join is planned, and how."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from common.settings.key_files import Remembered
from common.tuning.facts import Facts, InputFacts, KeySample
from common.tuning.hot_keys import SEEN_RATIO, candidates
from common.tuning.pruning import COLUMNAR
from common.tuning.skew import Strategy, fits_in_broadcast
from common.tuning.skew_facts import JoinQuestion, known_of

_SIDES = ("left", "right")


NO_SCAN = "no scan"
# Runs that may go by without a scan for new hot keys.
_SCANS_SKIPPED = 7


@dataclass(frozen=True)
class Search:
    """How hot keys are looked for.

    Attributes:
        how: "count": these keys are counted exactly. "sketch": a scan of the key columns finds them first.
            "none": not at all, or no more.
        keys: The keys to count, as text.
        source: Where the hot keys are known from, in words.
    """

    how: Literal["none", "count", "sketch"]
    keys: tuple[tuple[str, ...], ...] = ()
    source: str = ""


def plan_search(
    strategy: Strategy, question: JoinQuestion, facts: Facts, *, remembered: Remembered | None = None
) -> Search:
    """Look for hot keys only where their number can change the plan, and as cheaply as it goes.

    Keys that were kept are counted anew, and make a scan needless while each of them is still hot: for
    seven runs, since the count does not tell of new ones. When one is not, the second look scans.

    Args:
        strategy: As asked.
        question: What is asked.
        facts: Of the inputs `left` and `right`, with their samples; with `probed["hot_keys"]` it is the
            second look.
        remembered: Hot keys of an earlier run; None when there are none to start from.
    """
    if strategy in ("broadcast", "shuffle", "drop"):
        return Search("none")
    if strategy == "auto" and fits_in_broadcast(question, facts):
        return Search("none")
    known = [facts.inputs[name] for name in _SIDES]
    unsampled = [side for side in known if not _tells(side.sample) and side.row_count != 0]
    if not unsampled or not _may_scan(unsampled, strategy):
        return _sampled(strategy, question, facts, remembered)
    why = _why_scan(question, facts, remembered)
    if why is None and remembered is not None:
        source = f"{len(remembered.keys)} kept keys, counted anew: {NO_SCAN}"
        return Search("none" if "hot_keys" in facts.probed else "count", remembered.keys, source)
    return Search(
        "none" if "scanned" in facts.probed else "sketch", source=f"a scan: {why}" if remembered else "a scan"
    )


def _sampled(
    strategy: Strategy, question: JoinQuestion, facts: Facts, remembered: Remembered | None
) -> Search:
    """The candidates of the samples, and those that were kept."""
    known = [facts.inputs[name] for name in _SIDES]
    sampled = candidates((side.sample for side in known), share=question.hot_share)
    keys = tuple(dict.fromkeys((*(remembered.keys if remembered else ()), *sampled)))
    wanted = keys or strategy != "auto" or any(_has_nulls(side, question) for side in known)
    if not wanted or "hot_keys" in facts.probed:
        return Search("none", source="a sample" if wanted else "")
    return Search("count", keys, "a sample")


def _tells(sample: KeySample | None) -> bool:
    """True for a sample that stands for all rows: the first ones of a sorted input show its first keys."""
    return sample is not None and not sample.is_clustered


def _why_scan(question: JoinQuestion, facts: Facts, remembered: Remembered | None) -> str | None:
    """Why keys that were kept do not do; None while they do."""
    if remembered is None or not remembered.keys:
        return "none were kept"
    if question.hot_share < remembered.hot_share:
        return f"the kept ones were hot from {remembered.hot_share:g} on, now {question.hot_share:g} is asked"
    if remembered.scans_skipped >= _SCANS_SKIPPED:
        return f"the last one was {remembered.scans_skipped} runs ago"
    fallen = _fallen(question, facts, remembered) if "hot_keys" in facts.probed else 0
    return f"{fallen} of {len(remembered.keys)} kept keys are no longer hot" if fallen else None


def _fallen(question: JoinQuestion, facts: Facts, remembered: Remembered) -> int:
    """How many of the kept keys have lost their share; one near the threshold may scatter."""
    hot = known_of(replace(question, hot_share=SEEN_RATIO * question.hot_share), facts).keys
    return len(set(remembered.keys) - {key.key or () for key in hot})


def _may_scan(sides: list[InputFacts], strategy: Strategy) -> bool:
    """Files that are no columns would be read twice in full, which is done only when asked for."""
    return strategy != "auto" or all(side.format in COLUMNAR for side in sides)


def _has_nulls(side: InputFacts, question: JoinQuestion) -> bool:
    kept = {"left": ("left", "full", "anti"), "right": ("right", "full")}[side.name]
    ratio = side.sample.null_ratio if side.sample else 0.0
    return question.how in kept and ratio >= SEEN_RATIO * question.hot_share
