"""What --explain shows: the facts, the decision and Spark's plan; nothing runs."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame

from common.core import console
from common.core.units import format_bytes
from common.engine.plans import read_plan
from common.tuning.decision import Decision
from common.tuning.facts import Facts, InputFacts


def explain(df: DataFrame, *, facts: Facts, decision: Decision) -> None:
    """Print to stdout what would run and why."""
    plan = read_plan(df)
    lines = [*_inputs(facts), *_decision(decision), f"plan      {plan.summary()}", "", plan.text.rstrip()]
    console.print_text("\n".join(lines))


def _inputs(facts: Facts) -> Iterable[str]:
    for item in facts.inputs.values():
        yield f"{item.name:<10}{describe_input(item)}"


def _decision(decision: Decision) -> Iterable[str]:
    yield f"{'decision':<10}{decision.choice}{' (forced)' if decision.forced else ''}"
    yield f"{'because':<10}{decision.reason}"
    for choice, reason in decision.rejected:
        yield f"{'not':<10}{choice}: {reason}"
    if decision.guidelines:
        yield f"{'follows':<10}{', '.join(decision.guidelines)}"
    for key, value in decision.evidence.items():
        yield f"{'':<10}{key} = {value}"


def describe_input(facts: InputFacts) -> str:
    """One line: rows, files, bytes and where from.

    >>> describe_input(InputFacts("input", "parquet", ("in",), file_count=2, size_bytes=2048, row_count=30))
    '30 rows in 2 parquet files (2 KiB) from in'
    """
    rows = [] if facts.row_count is None else [counted(facts.row_count, "row")]
    files = [] if facts.file_count is None else [counted(facts.file_count, f"{facts.format} file")]
    size = "" if facts.size_bytes is None else f" ({format_bytes(facts.size_bytes)})"
    return f"{' in '.join(rows + files) or facts.format}{size} from {', '.join(facts.paths)}"


def counted(count: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"
