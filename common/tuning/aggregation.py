"""Whether an aggregation goes in one stage or two, from facts that cost nothing (K4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from common.core.errors import StrategyError
from common.tuning.decision import Decision
from common.tuning.facts import Facts, InputFacts
from common.tuning.hot_keys import candidates
from common.tuning.pruning import WORTHWHILE_ROWS

Strategy = Literal["auto", "plain", "two-stage"]

# A task with a group's rows is the last one to end when they are more than twice a core's share of all rows.
_TIMES_THE_MEAN = 2
# In how many parts a hot group's values are cut. Among 10,000 sampled rows a rank is off by half a percent,
# so that bounds 1/32 apart hold it in 99 of 100 cases.
USUAL_SALTS = 32
_SAMPLED_ROWS = 10_000
# Groups that are cut: larger than a quarter of a core's share of the rows, within reason.
_CORE_PARTS = 4
_HOT_ROWS = (20_000, 1_000_000)
_SPARSEST = 64
# One task's partial result of a group holds all its values: what a second stage is for.
_HELPED = frozenset({"quantile", "mode", "set"})
# What has partial results of more than a few bytes, of which a distinct aggregate would need one per value.
_HEAVY = frozenset({"quantile", "sketch", "list"})


@dataclass(frozen=True)
class Call:
    """One aggregate call, as far as a planner needs to know.

    Attributes:
        text: As it was typed.
        kind: combined, distinct, sketch, list, quantile, mode, set, or whole: how its partial results behave.
    """

    text: str
    kind: str


@dataclass(frozen=True)
class Question:
    """What an aggregation asks.

    Attributes:
        calls: Its aggregates.
        group_by: Columns; empty for one row over all.
        salts: In how many parts a hot group is cut, when the user says so.
    """

    calls: tuple[Call, ...]
    group_by: tuple[str, ...] = ()
    salts: int | None = None

    def of_kind(self, *kinds: str) -> tuple[str, ...]:
        """The calls of these kinds, each once."""
        return tuple(dict.fromkeys(call.text for call in self.calls if call.kind in kinds))

    @property
    def is_mixed(self) -> bool:
        """True when a distinct aggregate would hold a large partial result of others per value."""
        return bool(self.of_kind("distinct") and self.of_kind(*_HEAVY))


def plan_aggregation(
    strategy: Strategy, question: Question, facts: Facts, *, name: str = "input"
) -> Decision:
    """Two stages where a group would keep one task busy, or distinct values meet large partial results.

    Args:
        strategy: "auto", or the choice that the user forces.
        question: What is asked.
        facts: What is known about the input, whose sample spreads over `group_by`, and the engine.
        name: The input's name among the facts.

    Raises:
        StrategyError: two-stage is forced, and a call cannot be put together from parts.
    """
    known = facts.inputs[name]
    whole = question.of_kind("whole")
    if strategy == "two-stage" and whole:
        expected = "percentile, median, percentile_cont, percentile_disc (of numbers), mode, collect_set, and"
        expected += " what Spark combines itself"
        hint = (
            "plain and auto leave it to Spark; percentile and its kind want the ranks as numbers from 0 to 1,"
        )
        hint += " and neither weights nor NULLS FIRST or LAST"
        raise StrategyError("strategy", strategy, expected=expected, got=", ".join(whole), hint=hint)
    against = _why_not_two_stage(question, facts, known)
    forced = strategy != "auto"
    choice = strategy if forced else "plain" if against else "two-stage"
    is_hot = forced or _why_not_hot(question, facts, known) is None
    salts = question.salts or (USUAL_SALTS if is_hot else 1)
    if choice == "plain":
        reason, rejected = _plain(question, known), (("two-stage", against or ""),)
    else:
        reason, rejected = _two_stage(question, known, salts), (("plain", _why_not_plain(question)),)
    return Decision(
        choice,
        f"as asked; {reason}" if forced else reason,
        tuple((other, why) for other, why in rejected if why),
        _evidence(question, known, facts) | (_rates(known, facts, salts) if choice == "two-stage" else {}),
        ("D5", "K4") if choice == "two-stage" else ("D5",),
        forced=forced,
    )


def _why_not_two_stage(question: Question, facts: Facts, known: InputFacts) -> str | None:
    """Why one stage is as good; None when it is not."""
    whole = question.of_kind("whole")
    if whole:
        return f"parts of {_listed(whole)} cannot be put together"
    if not question.of_kind(*_HELPED) and not question.is_mixed:
        return _why_level(question)
    rows = known.about_row_count
    if rows is None:
        return "nothing cheap tells how many rows there are"
    if rows < WORTHWHILE_ROWS:
        return f"{rows:,} rows are merged sooner than a second stage is set up"
    return None if question.is_mixed else _why_not_hot(question, facts, known)


def _why_level(question: Question) -> str:
    lists, distinct = question.of_kind("list"), question.of_kind("distinct")
    if lists:
        return f"{_listed(lists)} is all values of a group in one row, which one task must write in any case"
    if distinct:
        return "Spark counts distinct values in two stages itself, by group and value and then by group"
    return "Spark combines the rows of each task before it shuffles them, so that no group is large"


def _why_not_hot(question: Question, facts: Facts, known: InputFacts) -> str | None:
    ratio = _largest_ratio(question, known)
    if ratio is None:
        return "nothing cheap tells how the rows spread"
    cores = facts.core_count
    if ratio * cores <= _TIMES_THE_MEAN:
        what = "all rows, which one task merges, are" if not question.group_by else "the largest group is"
        return f"{what} no straggler on {cores} cores" if cores else "nobody tells how many cores there are"
    return None


def _largest_ratio(question: Question, known: InputFacts) -> float | None:
    """The share of the rows that one task merges in one stage."""
    if not question.group_by:
        return 1.0
    sample = known.sample
    return sample.largest_ratio if sample is not None and sample.row_count else None


def _plain(question: Question, known: InputFacts) -> str:
    reason = f"one aggregation of {_rows_text(known)}{_within(question)}"
    spread = _spread(known) if question.group_by else ""
    helped = question.of_kind(*_HELPED)
    ratio, rows = _largest_ratio(question, known), known.about_row_count
    if helped and ratio is not None and rows is not None:
        merged = f"one task merges the values of {round(ratio * rows):,} rows for {_listed(helped)}"
        return f"{reason}{spread}; {merged}"
    return f"{reason}{spread}"


def _two_stage(question: Question, known: InputFacts, salts: int) -> str:
    reason = f"{_rows_text(known)}{_within(question)}{_spread(known) if question.group_by else ''}"
    steps = []
    if question.of_kind("quantile") and salts > 1:
        bounded = _listed(question.of_kind("quantile"))
        steps.append(f"bounds leave about 1 in {salts} of a hot group's values for {bounded}")
    if question.of_kind("mode", "set"):
        steps.append(f"{_listed(question.of_kind('mode', 'set'))} from counts by group and value")
    if question.is_mixed:
        steps.append(f"{_listed(question.of_kind('distinct'))} apart from the others")
    left = question.of_kind("combined", *(() if question.is_mixed else ("distinct", "sketch", "list")))
    if left:
        steps.append(f"{_listed(left)} left to Spark")
    ratio, rows = _largest_ratio(question, known), known.about_row_count
    if ratio is not None and rows is not None and question.of_kind(*_HELPED) and salts > 1:
        whole = round(ratio * rows)
        parts = -(-whole // salts)
        steps.append(f"the largest task merges about {parts:,} rows' values, not {whole:,}")
    return "; ".join([reason, *steps])


def _why_not_plain(question: Question) -> str:
    if question.is_mixed:
        heavy = _listed(question.of_kind(*_HEAVY))
        return f"Spark would hold a partial result of {heavy} for each distinct value"
    return "one task would merge all values of a group" if question.of_kind(*_HELPED) else ""


def _spread(known: InputFacts) -> str:
    sample = known.sample
    if sample is None or not sample.row_count:
        return ""
    seen = f"{sample.distinct_count:,} groups seen in a sample of {sample.row_count:,} rows"
    return f"; {seen}, the largest ({sample.largest_key}) with {sample.largest_ratio:.1%}"


def _within(question: Question) -> str:
    return f" by {', '.join(question.group_by)}" if question.group_by else ""


def _rows_text(known: InputFacts) -> str:
    return "all rows" if known.row_count is None else f"{known.row_count:,} rows"


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(texts[:3]) + (", …" if len(texts) > 3 else "")


def _rates(known: InputFacts, facts: Facts, salts: int) -> dict[str, Any]:
    """Which groups are cut, and how large the sample is that their bounds come from."""
    rows = known.about_row_count or 0
    hot_rows = min(max(rows // (_CORE_PARTS * max(facts.core_count, 1)), _HOT_ROWS[0]), _HOT_ROWS[1])
    groups = _hot_groups(known, hot_rows)
    least_rows = min(groups.values(), default=hot_rows) if groups else hot_rows
    one_in = min(max(least_rows // _SAMPLED_ROWS, 1), _SPARSEST)
    rates: dict[str, Any] = {"salts": salts, "hot_rows": hot_rows, "one_in": one_in}
    return rates if groups is None else {**rates, "hot_groups": list(map(list, groups))}


def _hot_groups(known: InputFacts, hot_rows: int) -> dict[tuple[str, ...], int] | None:
    """The groups that may have so many rows, with about how many; None where the sample does not tell."""
    sample, rows = known.sample, known.about_row_count
    if sample is None or sample.is_clustered or not sample.row_count or not rows:
        return None
    found = candidates([sample], share=hot_rows / rows)
    shows_all = len(found) < len(sample.top_keys) or len(found) == sample.distinct_count
    seen = dict(sample.top_keys)
    return {key: seen[key] * rows // sample.row_count for key in found} if shows_all else None


def _evidence(question: Question, known: InputFacts, facts: Facts) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "rows": known.row_count,
        "files": known.file_count,
        "size_bytes": known.size_bytes,
        "core_count": facts.core_count,
        "kinds": {call.text: call.kind for call in question.calls},
    }
    sample = known.sample
    if sample is not None:
        evidence |= {
            "sample_rows": sample.row_count,
            "sample_groups": sample.distinct_count,
            "largest_group": sample.largest_key,
            "largest_group_ratio": round(sample.largest_ratio, 4),
        }
    return {key: value for key, value in evidence.items() if value is not None}
