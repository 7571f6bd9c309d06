"""Counters: what a run counts beside its answer, declared by name, kind and expression.

A transform takes what attaches them (`Attach`) and calls it on the frame whose rows are to be counted. How
they are counted, and kept right when tasks run again, is the engine's: `common.engine.counters`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Literal, Protocol, get_args

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, IntegralType

from common.core.errors import ColumnTypeError, NotRunError, ParameterError, UnknownNameError, did_you_mean

Kind = Literal["count", "sum", "min", "max", "distinct"]
Attach = Callable[[DataFrame], DataFrame]

DISTINCT_ERROR_RATIO: Final = 0.02
# Why there are no numbers, and what to do, where an observation may have been left out of the plan.
NOT_SEEN: Final = "not run, or left out of the plan"
OR_SETTLE: Final = "run the action first, or call settle(), which counts by one of its own"


@dataclass(frozen=True)
class Counter:
    """A number with a name that rows add to while they pass.

    Attributes:
        name: Lower-case letters, digits and underscores: a key of the run record.
        kind: count: rows for which `of` is true, or all rows. sum: of whole numbers or decimals, exact, 0 for
            no rows. min, max: NULL for no rows. distinct: distinct values, within about 2 %.
        of: The column: SQL text or a Column; left out it is all rows (`count` only), or what Python tells.

    Raises:
        ParameterError: a name or a kind that cannot be.
    """

    name: str
    kind: Kind = "count"
    of: str | Column | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            expected = "lower-case letters, digits and underscores, a letter first"
            raise ParameterError("counter", self.name, expected=expected, got=repr(self.name))
        if self.kind not in get_args(Kind):
            raise ParameterError(
                "kind of counter", self.name, expected=" or ".join(get_args(Kind)), got=self.kind
            )

    @property
    def is_additive(self) -> bool:
        """True when counting the same rows twice gives another number."""
        return self.kind in {"count", "sum"}


@dataclass(frozen=True)
class Reading:
    """What counters say after an action.

    Attributes:
        values: Name to the right number.
        naive: Name to what a plain accumulator says, or Spark's own observation; NULL where it says nothing.
        why: Where they differ, what made them.
    """

    values: Mapping[str, Any]
    naive: Mapping[str, Any]
    why: str = ""

    @property
    def differing(self) -> dict[str, dict[str, Any]]:
        """Name to the naive number, what it has too many, and why; only where it is not the right one."""
        found: dict[str, dict[str, Any]] = {}
        for name, value in self.values.items():
            naive = self.naive.get(name)
            if naive != value:
                added = naive - value if isinstance(naive, int | Decimal) and value is not None else None
                found[name] = {"naive": recordable(naive), "added": recordable(added), "why": self.why}
        return found


class Counting(Protocol):
    """Counters that a run reads once its action is over."""

    def settle(self) -> Reading:
        """The numbers; may run an action where what was seen is not right."""

    def distrust(self, why: str) -> None:
        """Note that what was seen is not all."""


class Readable(ABC):
    """Counters that may have numbers, or not yet.

    Attributes:
        declared: What is counted.
    """

    declared: tuple[Counter, ...]

    @abstractmethod
    def read(self) -> Reading:
        """The numbers of an action that has run.

        Raises:
            NotRunError: there are none.

        Plan:
            No action.
        """

    def value(self, name: str) -> Any:
        """One number of `read`.

        Raises:
            UnknownNameError: no such counter.  NotRunError: as `read`.
        """
        of_name(self.declared, name)
        return self.read().values[name]

    def _not_run(self, why: str, *, hint: str) -> NotRunError:
        return NotRunError("counters", self._names, expected="numbers of an action", got=why, hint=hint)

    def _in_use(self) -> ParameterError:
        expected, hint = "counters not yet in use", "make new ones for each frame"
        return ParameterError("counters", self._names, expected=expected, got="those of a frame", hint=hint)

    @property
    def _names(self) -> str:
        return ", ".join(counter.name for counter in self.declared)


def checked(declared: Sequence[Counter]) -> tuple[Counter, ...]:
    """The counters, at least one, no two of one name.

    Raises:
        ParameterError: otherwise.
    """
    names = [counter.name for counter in declared]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        got = ", ".join(twice) + " twice" if twice else "none"
        raise ParameterError(
            "counters", ", ".join(twice), expected="counters with names of their own", got=got
        )
    return tuple(declared)


def of_name(declared: Iterable[Counter], name: str) -> Counter:
    """The counter of that name.

    Raises:
        UnknownNameError: naming the nearest.
    """
    by_name = {counter.name: counter for counter in declared}
    if name not in by_name:
        hint = did_you_mean(name, by_name)
        expected = f"one of {', '.join(by_name)}"
        raise UnknownNameError("counter", name, expected=expected, got="another name", hint=hint)
    return by_name[name]


def aggregates(df: DataFrame, declared: Iterable[Counter]) -> list[Column]:
    """One aggregate for each counter, under its name, over the rows of `df`.

    Raises:
        ColumnTypeError: a sum of what does not add up exactly.  ParameterError: no expression to count.

    Plan:
        Lazy; asks for the types of summed columns.
    """
    return [_aggregate(df, counter).alias(counter.name) for counter in declared]


def _aggregate(df: DataFrame, counter: Counter) -> Column:
    if counter.of is None:
        if counter.kind == "count":
            return F.count(F.lit(1))
        expected = f"an expression whose {counter.kind} is counted"
        raise ParameterError("counter", counter.name, expected=expected, got="none", hint="give it as `of`")
    column = F.expr(counter.of) if isinstance(counter.of, str) else counter.of
    match counter.kind:
        case "count":
            return F.count_if(column)
        case "sum":
            return F.coalesce(F.sum(_addend(df, counter, column)), F.lit(0))
        case "min":
            return F.min(column)
        case "max":
            return F.max(column)
        case "distinct":
            return F.approx_count_distinct(column, DISTINCT_ERROR_RATIO)


def _addend(df: DataFrame, counter: Counter, column: Column) -> Column:
    """What to sum: sums of floats depend on the order of rows, those of bigint overflow."""
    kind: DataType = df.select(column).schema.fields[0].dataType
    if isinstance(kind, IntegralType):
        return column.cast("decimal(20, 0)")
    if isinstance(kind, DecimalType):
        return column
    expected, hint = "whole numbers or decimals, whose sum is exact", "cast it to a decimal"
    raise ColumnTypeError("counter", counter.name, expected=expected, got=kind.simpleString(), hint=hint)


def whole(value: Any) -> Any:
    """The value; a decimal without a fraction, as sums of whole numbers come, is an int.

    >>> whole(Decimal("30")), whole(Decimal("1.50"))
    (30, Decimal('1.50'))
    """
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value


def recordable(value: Any) -> Any:
    """The value as JSON has it: numbers stay numbers where they stay exact, all else is text.

    >>> recordable(7), recordable(None), recordable(Decimal("1.50")), recordable(float("nan"))
    (7, None, '1.50', 'nan')
    """
    if value is None or isinstance(value, int | str):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    return str(value)
