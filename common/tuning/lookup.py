"""How a lookup finds its rows: a broadcast join, a shuffle join, or a broadcast variable in workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from common.core.errors import StrategyError
from common.core.units import format_bytes
from common.tuning.decision import Decision
from common.tuning.facts import Facts

Mode = Literal["auto", "variable", "join"]
# A row in the hash table of Spark's broadcast besides its values: null bits, pointer, hash.
_ROW_OVERHEAD_BYTES = 32
# Spark's own limits for one broadcast.
_SPARK_BYTES, _SPARK_ROWS = 8 * 1024**3, 512_000_000


@dataclass(frozen=True)
class LookupQuestion:
    """What a lookup asks, as far as a planner needs to know.

    Attributes:
        on: (column of the facts, column of the dimension).
        max_broadcast_bytes: What may be broadcast, decoded; for a variable in all workers of one executor.
        has_hashable_keys: False for keys that a variable cannot be searched by.
    """

    on: tuple[tuple[str, str], ...]
    max_broadcast_bytes: int = 256 * 1024**2
    has_hashable_keys: bool = True


@dataclass(frozen=True)
class _Size:
    """The dimension, counted."""

    rows: int
    duplicates: int
    decoded_bytes: int

    @property
    def joined_bytes(self) -> int:
        return self.decoded_bytes + self.rows * _ROW_OVERHEAD_BYTES


def plan_lookup(mode: Mode, question: LookupQuestion, facts: Facts) -> Decision:
    """Choose how facts find their rows.

    Args:
        mode: "auto", or the choice that the user forces.
        question: What is asked.
        facts: Of the engine; `probed["dimension"]` has the dimension's rows, duplicates and bytes.

    Raises:
        StrategyError: a variable that is forced, and that cannot be or would be too large.
    """
    row = facts.probed["dimension"][0]
    size = _Size(row["rows"], row["duplicates"], row["decoded_bytes"])
    forced = mode != "auto"
    if mode == "variable":
        _refuse_variable(question, facts, size)
    choice = "variable" if mode == "variable" else "join"
    broadcast = choice == "join" and _fits(size, question)
    reason = _reason(choice, size, question, facts, broadcast=broadcast)
    return Decision(
        choice,
        f"as asked; {reason}" if forced else reason,
        () if forced else (("variable", _why_not_variable(question, facts, size)),),
        _evidence(size, facts, broadcast=broadcast),
        ("D9",) if choice == "variable" else ("D4", "K5") if broadcast else ("K3",),
        forced=forced,
    )


def refuse_decoded(decoded_bytes: int, *, workers: int, max_bytes: int) -> None:
    """Refuse a variable whose decoded copies would take too much of an executor's memory.

    Args:
        decoded_bytes: One copy.
        workers: Python workers of one executor.
        max_bytes: What all may take.

    Raises:
        StrategyError: with both numbers.
    """
    problem = _too_large(decoded_bytes, workers=workers, max_bytes=max_bytes)
    if problem is not None:
        raise StrategyError(
            "strategy",
            "variable",
            expected="what --max-broadcast-bytes allows",
            got=problem,
            hint="use join or auto, or raise --max-broadcast-bytes if the memory is there",
        )


def _too_large(decoded_bytes: int, *, workers: int, max_bytes: int) -> str | None:
    total = decoded_bytes * workers
    if total <= max_bytes:
        return None
    copies = f"{format_bytes(decoded_bytes)} decoded in each of {workers:,} workers of an executor"
    return f"{copies}, {format_bytes(total)} together, the limit is {format_bytes(max_bytes)}"


def _fits(size: _Size, question: LookupQuestion) -> bool:
    limit = min(question.max_broadcast_bytes, _SPARK_BYTES)
    return size.joined_bytes <= limit and size.rows < _SPARK_ROWS


def _refuse_variable(question: LookupQuestion, facts: Facts, size: _Size) -> None:
    impossible = _impossible(question, facts)
    if impossible is not None:
        raise StrategyError(
            "strategy",
            "variable",
            expected="an engine and keys that a broadcast variable works with",
            got=impossible,
            hint="use join or auto",
        )
    refuse_decoded(size.decoded_bytes, workers=facts.python_workers, max_bytes=question.max_broadcast_bytes)


def _impossible(question: LookupQuestion, facts: Facts) -> str | None:
    if "broadcast_variable" not in facts.capabilities:
        return "it needs broadcast variables, which this engine does not have"
    if not question.has_hashable_keys:
        return "keys whose equal values may differ, such as collated text, arrays or structs"
    return None


def _why_not_variable(question: LookupQuestion, facts: Facts, size: _Size) -> str:
    impossible = _impossible(question, facts)
    if impossible is not None:
        return impossible
    limit = question.max_broadcast_bytes
    large = _too_large(size.decoded_bytes, workers=facts.python_workers, max_bytes=limit)
    if large is not None:
        return large
    if facts.accelerator == "comet":
        return "it would take the keys out of Comet and through Python"
    return "each key would go through Python, which costs more than the join"


def _reason(choice: str, size: _Size, question: LookupQuestion, facts: Facts, *, broadcast: bool) -> str:
    limit = format_bytes(question.max_broadcast_bytes)
    rows = f"{size.rows:,} dimension {'row' if size.rows == 1 else 'rows'}"
    if choice == "variable":
        copies = f"{format_bytes(size.decoded_bytes)} decoded, for each of {facts.python_workers:,} workers"
        return f"{rows}, {copies}, within {limit}: only the keys go to Python"
    about = f"{rows}, about {format_bytes(size.joined_bytes)} decoded"
    if broadcast:
        return f"{about}, within {limit}: no shuffle of the facts"
    return f"{about}, more than {limit}: both sides are shuffled once"


def _evidence(size: _Size, facts: Facts, *, broadcast: bool) -> Mapping[str, Any]:
    return {
        "dimension_rows": size.rows,
        "duplicates": size.duplicates,
        "decoded_bytes": size.decoded_bytes,
        "workers_per_executor": facts.python_workers,
        "broadcast": broadcast,
    }
