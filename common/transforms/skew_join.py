"""Joins that stay level under skew: the same rows as the plain join, by branches that share no key.

A branch is chosen by a hash that is equal for equal keys, by one rule on both sides. So every pair of rows
with one key meets in exactly one branch, whatever the hashes of other keys are: which keys are taken for hot
decides how fast the answer comes, never what it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from common.core.errors import StrategyError
from common.transforms.columns import named
from common.transforms.join_keys import any_null, same_key
from common.transforms.join_salts import salted
from common.transforms.join_sides import How, JoinSpec, Side, Sides, check_hashable, joined_sides

Which = Literal["left", "right"]
_BUILT: dict[Which, tuple[How, ...]] = {
    "right": ("inner", "left", "semi", "anti"),
    "left": ("inner", "right"),
}
_LEFT, _RIGHT = "left_salt", "right_salt"


@dataclass(frozen=True)
class Treatment:
    """How a join treats its keys; keys are named by their hash (`key_hash`).

    Attributes:
        broadcast: The side that is broadcast as a whole; then nothing else counts.
        broadcast_right: Keys with many left rows whose right rows are broadcast.
        broadcast_left: Keys with many right rows whose left rows are broadcast.
        split_left: Keys whose left rows are split into so many parts; the right ones are replicated.
        split_right: Keys whose right rows are split into so many parts; the left ones are replicated.
        nulls_apart: Rows with a NULL in the key go past the join, where the kind of join keeps them.
    """

    broadcast: Which | None = None
    broadcast_right: frozenset[int] = frozenset()
    broadcast_left: frozenset[int] = frozenset()
    split_left: Mapping[int, int] = field(default_factory=dict)
    split_right: Mapping[int, int] = field(default_factory=dict)
    nulls_apart: bool = False

    @property
    def names_keys(self) -> bool:
        """True when some keys are treated apart."""
        return bool(self.broadcast_right or self.broadcast_left or self.split_left or self.split_right)


def plain_join(left: DataFrame, right: DataFrame, spec: JoinSpec) -> DataFrame:
    """The join as Spark does it.

    Args:
        left: Any rows.
        right: Any rows.
        spec: What is asked.

    Returns:
        The columns that `joined_sides` describes. Row order is undefined.

    Raises:
        ColumnMissingError, ColumnTypeError, ParameterError: see `joined_sides`.

    Plan:
        Lazy. A broadcast or one shuffle of each side, as Spark chooses; adaptive execution splits large
        partitions where it may. Guidelines K3, K5.
    """
    sides = joined_sides(left, right, spec)
    return _joined(sides, sides.left, sides.right)


def skew_join(left: DataFrame, right: DataFrame, spec: JoinSpec, treatment: Treatment) -> DataFrame:
    """The rows of the plain join, with hot keys apart.

    Args:
        left: Any rows; read once for each branch.
        right: Any rows; read once for each branch.
        spec: What is asked.
        treatment: Which keys go which way.

    Returns:
        As `plain_join`.

    Raises:
        ColumnMissingError, ColumnTypeError, ParameterError: see `joined_sides`; a key in less than one part.
        StrategyError: a side may not be broadcast in this kind of join, or keys have no hash.

    Plan:
        Lazy. Cold keys: one shuffle of each side. Keys to broadcast: no shuffle of their many rows; the few
        rows of the other side are broadcast and must fit in memory. Split keys: in the shuffle of the cold
        ones, with the salt pmod(xxhash64(row), parts) in the key, the other side replicated. Outer joins
        whose kept rows would have to be replicated find the unmatched ones by the other side's keys alone.
        Guidelines K5, K6, K7, K8.
    """
    sides = joined_sides(left, right, spec)
    if treatment.broadcast is not None:
        return _broadcast_whole(sides, treatment.broadcast)
    if treatment.names_keys:
        check_hashable(sides, "isolate")
    branches = [*_null_branches(sides, treatment), *_branches(_without_nulls(sides, treatment), treatment)]
    return reduce(DataFrame.union, branches)


def _broadcast_whole(sides: Sides, which: Which) -> DataFrame:
    if sides.how not in _BUILT[which]:
        raise StrategyError(
            "strategy",
            "broadcast",
            expected=f"--how {' or '.join(_BUILT[which])} to broadcast the {which} side",
            got=sides.how,
            hint="use shuffle or isolate, or auto",
        )
    if which == "right":
        return _joined(sides, sides.left, _broadcast(sides.right))
    return _joined(sides, _broadcast(sides.left), sides.right)


def _null_branches(sides: Sides, treatment: Treatment) -> Iterable[DataFrame]:
    if not treatment.nulls_apart:
        return
    for side, keeps in ((sides.left, ("left", "full", "anti")), (sides.right, ("right", "full"))):
        if sides.how in keeps:
            yield sides.finished(side.having(any_null(side.keys)).rows)


def _without_nulls(sides: Sides, treatment: Treatment) -> Sides:
    if not treatment.nulls_apart:
        return sides
    return _with(sides, *(side.having(~any_null(side.keys)) for side in (sides.left, sides.right)))


def _with(sides: Sides, left: Side, right: Side) -> Sides:
    return Sides(left, right, sides.how, sides.outputs, sides.casts)


def _branches(sides: Sides, treatment: Treatment) -> Iterable[DataFrame]:
    apart: set[int] = set()
    for keys, join in (
        (treatment.broadcast_right, _broadcasting_right),
        (treatment.broadcast_left, _broadcasting_left),
    ):
        if keys:
            yield from join(_of_keys(sides, keys))
            apart |= keys
    split: dict[Which, Mapping[int, int]] = {"left": treatment.split_left, "right": treatment.split_right}
    for which, parts in split.items():
        # Where the other side may not be replicated: unmatched rows are found apart, for these keys alone.
        if parts and not _may_split(sides.how, which):
            yield from _split_in_two(_of_keys(sides, parts), parts, which)
            apart |= set(parts)
    rest = _of_keys(sides, apart, inside=False) if apart else sides
    yield _cold(rest, treatment)


def _of_keys(sides: Sides, keys: Collection[int], *, inside: bool = True) -> Sides:
    """The rows of both sides whose key is among these, or is not."""

    def chosen(side: Side) -> Side:
        found = side.hash.isin(sorted(keys))
        return side.having(found if inside else ~found)

    return _with(sides, chosen(sides.left), chosen(sides.right))


def _cold(sides: Sides, treatment: Treatment) -> DataFrame:
    """The join of the other keys, with salts where its kind allows them."""
    return _salted_join(
        sides,
        split_left=treatment.split_left if _may_split(sides.how, "left") else {},
        split_right=treatment.split_right if _may_split(sides.how, "right") else {},
    )


def _salted_join(
    sides: Sides,
    *,
    split_left: Mapping[int, int],
    split_right: Mapping[int, int],
    how: How | None = None,
) -> DataFrame:
    if not (split_left or split_right):
        return _joined(sides, sides.left, sides.right, how=how)
    left = salted(sides.left, _LEFT, split=split_left, copied=split_right)
    right = salted(sides.right, _RIGHT, split=split_right, copied=split_left)
    return _joined(sides, left, right, how=how)


def _may_split(how: How, which: Which) -> bool:
    """True when the other side may be replicated: its rows are not kept for themselves (c1, c3)."""
    return how in (("inner", "left", "semi", "anti") if which == "left" else ("inner", "right"))


def _split_in_two(sides: Sides, parts: Mapping[int, int], which: Which) -> Iterable[DataFrame]:
    """A join that must keep the rows it replicates: the matches, then what found none."""
    left, right = sides.left, sides.right
    if which == "left":
        kept: How = "left" if sides.how == "full" else "inner"
        yield _salted_join(sides, split_left=parts, split_right={}, how=kept)
        yield sides.finished(_unmatched(right, left))
    elif sides.how in ("semi", "anti"):
        yield _joined(sides, left, _broadcast(_distinct(right)))
    else:
        kept = "right" if sides.how == "full" else "inner"
        yield _salted_join(sides, split_left={}, split_right=parts, how=kept)
        yield sides.finished(_unmatched(left, right))


def _broadcasting_right(sides: Sides) -> Iterable[DataFrame]:
    """Many left rows, few right ones."""
    left, right = sides.left, sides.right
    if sides.how in ("semi", "anti"):
        yield _joined(sides, left, _broadcast(_distinct(right)))
        return
    kept: How = "left" if sides.how in ("left", "full") else "inner"
    yield _joined(sides, left, _broadcast(right), how=kept)
    if sides.how in ("right", "full"):
        yield sides.finished(_unmatched(right, left))


def _broadcasting_left(sides: Sides) -> Iterable[DataFrame]:
    """Many right rows, few left ones."""
    left, right = sides.left, sides.right
    if sides.how in ("semi", "anti"):
        yield _joined(sides, left, _broadcast(_distinct(right)))
        return
    kept: How = "right" if sides.how in ("right", "full") else "inner"
    yield _joined(sides, _broadcast(left), right, how=kept)
    if sides.how in ("left", "full"):
        yield sides.finished(_unmatched(left, right))


def _joined(sides: Sides, left: Side, right: Side, *, how: How | None = None) -> DataFrame:
    condition = same_key(left.keys, right.keys)
    if _LEFT in left.rows.columns:
        condition = condition & (named(_LEFT) == named(_RIGHT))
    return sides.finished(left.rows.join(right.rows, condition, how or sides.how))


def _broadcast(side: Side) -> Side:
    return Side(F.broadcast(side.rows), side.keys)


def _distinct(side: Side) -> Side:
    """Its keys alone, each once: combined in each task before the shuffle, so level under any skew."""
    return Side(side.rows.select(*map(named, side.keys)).distinct(), side.keys)


def _unmatched(kept: Side, other: Side) -> DataFrame:
    """Rows whose key is not on the other side; its keys, few, are broadcast."""
    keys = _broadcast(_distinct(other))
    return kept.rows.join(keys.rows, same_key(kept.keys, keys.keys), "anti")
