"""What Python code counts in one task, and how the tallies of tasks become the right numbers.

Workers import this module.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import reduce
from typing import Any, Final, NamedTuple

from common.core.errors import ColumnTypeError, ParameterError
from common.transforms.counters import Counter, Kind, Reading, of_name

SKETCH_SIZE: Final = 1024  # distinct values up to which a sketch is exact; beyond, within about 3 %

States = dict[str, Any]


class Origin(NamedTuple):
    """Whose tally it is.

    Attributes:
        scope: The action: an SQL execution of Spark, or a stage where there is none.
        partition: Of the counted rows; 0 and up.
        attempt: The task's number, which no other task of the application has; later ones are greater.
    """

    scope: str
    partition: int
    attempt: int


Tallies = dict[Origin, States]


class Tally:
    """Counts of one task. Only a task that ends well hands it in.

    >>> tally = Tally((Counter("lines"), Counter("longest", "max"), Counter("words", "distinct")))
    >>> tally.add("lines"); tally.add("lines", 4); tally.see("longest", 7); tally.see("longest", 3)
    >>> tally.see_all("words", ["a", "b", "a"])
    >>> [value_of(kind, tally.states[name]) for name, kind in tally.kinds.items()]
    [5, 7, 2]
    """

    def __init__(self, declared: Iterable[Counter]) -> None:
        self._declared = tuple(declared)
        self.kinds: dict[str, Kind] = {counter.name: counter.kind for counter in self._declared}
        self.states: States = {name: empty(kind) for name, kind in self.kinds.items()}

    def add(self, name: str, amount: int | Decimal = 1) -> None:
        """Add to a counter of kind count or sum.

        Raises:
            UnknownNameError: no such counter.  ParameterError: it is of another kind.
            ColumnTypeError: a float, whose sums depend on their order.
        """
        self._check(name, "count", "sum")
        if not isinstance(amount, int | Decimal):
            kind = type(amount).__name__
            raise ColumnTypeError("counter", name, expected="an int or a Decimal", got=kind)
        self.states[name] += amount

    def see(self, name: str, value: Any) -> None:
        """Show a value to a counter of kind min, max or distinct; None is passed over."""
        self.see_all(name, (value,))

    def see_all(self, name: str, values: Iterable[Any]) -> None:
        """Show several; those of one counter are of one type, `distinct` wants hashable ones."""
        kind = self._check(name, "min", "max", "distinct")
        shown = {value for value in values if value is not None}
        if not shown:
            return
        if kind == "distinct":
            self.states[name] = _smallest({*self.states[name], *map(_hash, shown)})
            return
        best = min(shown) if kind == "min" else max(shown)
        self.states[name] = combined(kind, self.states[name], best)

    def _check(self, name: str, *kinds: Kind) -> Kind:
        kind = of_name(self._declared, name).kind
        if kind not in kinds:
            call = "add" if kind in {"count", "sum"} else "see"
            raise ParameterError("counter", name, expected=" or ".join(kinds), got=kind, hint=f"call {call}")
        return kind


def empty(kind: Kind) -> Any:
    """The state of a counter that has seen nothing; a new object each time (case e3)."""
    match kind:
        case "count" | "sum":
            return 0
        case "min" | "max":
            return None
        case "distinct":
            return frozenset()


def combined(kind: Kind, one: Any, other: Any) -> Any:
    """The state of a counter over the rows of both; neither is changed."""
    if kind in {"count", "sum"}:
        return one + other
    if kind == "distinct":
        return _smallest({*one, *other})
    if one is None or other is None:
        return other if one is None else one
    return min(one, other) if kind == "min" else max(one, other)


def value_of(kind: Kind, state: Any) -> Any:
    """The number that a state stands for."""
    if kind != "distinct":
        return state
    if len(state) < SKETCH_SIZE:
        return len(state)
    # The k-th smallest of n hashes spread over 2^64 lies near k/n: Bar-Yossef et al., RANDOM 2002.
    return round((SKETCH_SIZE - 1) * 2.0**64 / max(state))


def gather(kinds: Mapping[str, Kind], into: Tallies, more: Tallies) -> Tallies:
    """Put more tallies to the others, and return those. One task may hand in several: they add up."""
    for origin, states in more.items():
        before = into.get(origin)
        into[origin] = states if before is None else _added(kinds, before, states)
    return into


def reading(kinds: Mapping[str, Kind], tallies: Tallies) -> Reading | None:
    """The numbers of the last action, each partition once; None when no task has handed in anything.

    What "the same work" is. A tally is a function of the rows of one partition of the counted frame. A task
    that is tried again, its speculative copy, and a stage that runs again because its shuffle was lost make
    the same rows of the same partition; so does a plan that runs a frame twice (a sort looks at its input
    before it shuffles it). All that happens within one SQL execution, where the frame's partitions are fixed:
    the key is (execution, partition), and one success counts. The last is taken, since it is its output that
    was read. Stage numbers would not do: they differ for the same work. Across actions partitions may be cut
    otherwise (adaptive execution), so that tallies of two actions are never mixed: the last action counts.
    """
    if not tallies:
        return None
    last_scope = max(tallies, key=lambda origin: origin.attempt).scope
    chosen: dict[int, Origin] = {}
    for origin in sorted(tallies, key=lambda origin: origin.attempt):
        if origin.scope == last_scope:
            chosen[origin.partition] = origin
    mine = [origin for origin in tallies if origin.scope == last_scope]
    again, actions = len(mine) - len(chosen), len({origin.scope for origin in tallies}) - 1
    causes = [
        *([f"{_plural(again, 'task')} of this action ran again"] if again else []),
        *([f"{_plural(actions, 'earlier action')} ran the same rows"] if actions else []),
    ]
    return Reading(
        _values(kinds, [tallies[origin] for origin in chosen.values()]),
        _values(kinds, list(tallies.values())),
        "; ".join(causes),
    )


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _values(kinds: Mapping[str, Kind], found: list[States]) -> dict[str, Any]:
    total = reduce(lambda one, other: _added(kinds, one, other), found)
    return {name: value_of(kind, total[name]) for name, kind in kinds.items()}


def _added(kinds: Mapping[str, Kind], one: States, other: States) -> States:
    return {name: combined(kind, one[name], other[name]) for name, kind in kinds.items()}


def _smallest(hashes: Iterable[int]) -> frozenset[int]:
    return frozenset(sorted(hashes)[:SKETCH_SIZE])


def _hash(value: Any) -> int:
    """64 bits that every process finds alike, unlike Python's own hash."""
    return int.from_bytes(hashlib.blake2b(repr(value).encode(), digest_size=8).digest())
