"""Hot keys of a join: who they are, and how large the tasks are that they make."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.tuning.facts import InputFacts, KeySample

# A task of adaptive execution: spark.sql.adaptive.advisoryPartitionSizeInBytes.
TASK_BYTES = 64 * 1024**2
# A row in a hash table of a broadcast besides its values: null bits, pointer, hash.
_ROW_OVERHEAD_BYTES = 32
_UNKNOWN_WIDTH = 20
# What a sample shows of a key scatters: one that holds the asked share shows at least so much of it.
SEEN_RATIO = 0.7


@dataclass(frozen=True)
class HotKey:
    """One key and its rows on both sides, counted exactly.

    Attributes:
        key: Its values as text; None for all keys with a NULL in them, which are equal to none.
        key_hash: Its hash in the join; None with `key`.
        left_rows: Rows on the left.
        right_rows: Rows on the right.
    """

    key: tuple[str, ...] | None
    key_hash: int | None
    left_rows: int
    right_rows: int

    @property
    def is_null(self) -> bool:
        """True for the rows whose key holds a NULL."""
        return self.key_hash is None


@dataclass(frozen=True)
class SideFacts:
    """One side of a join.

    Attributes:
        rows: How many, about; None when nothing cheap tells.
        row_bytes: A row's size in memory, about.
    """

    rows: int | None
    row_bytes: float

    @property
    def decoded_bytes(self) -> float | None:
        """All rows as a broadcast would hold them."""
        return None if self.rows is None else self.rows * (self.row_bytes + _ROW_OVERHEAD_BYTES)


def side_facts(facts: InputFacts, *, needed: Sequence[str] = ()) -> SideFacts:
    """Rows and width of one side.

    Args:
        facts: What is known.
        needed: The columns that the join reads; empty for all.
    """
    widths = facts.column_widths
    names = [name.lower() for name in needed] or list(widths)
    known = [widths.get(name, _UNKNOWN_WIDTH) for name in names]
    if not known:
        known = [_UNKNOWN_WIDTH] * len(facts.column_names or range(10))
    return SideFacts(facts.about_row_count, float(sum(known)))


def candidates(samples: Iterable[KeySample | None], *, share: float) -> tuple[tuple[str, ...], ...]:
    """The keys of which the samples show so much that they may hold the share.

    >>> sample = KeySample(("k",), 1_000, 3, "a", 0.5, top_keys=((("a",), 500), (("b",), 3)))
    >>> candidates([sample, None], share=0.01)
    (('a',),)
    """
    found: dict[tuple[str, ...], None] = {}
    for sample in samples:
        if sample is not None:
            least = share * SEEN_RATIO * sample.row_count
            found |= {key: None for key, count in sample.top_keys if count >= least}
    return tuple(found)


def hot_keys(
    rows: Iterable[Mapping[str, Any]], left: SideFacts, right: SideFacts, *, share: float
) -> tuple[HotKey, ...]:
    """The keys that hold at least the share of either side's rows, those with most rows first.

    Args:
        rows: `key, key_hash, left_rows, right_rows`, counted exactly.
        left: The left side.
        right: The right side.
        share: 0 to 1.
    """
    hot = [key for key in counted_keys(rows) if max(shares(key, left, right)) >= share]
    return tuple(sorted(hot, key=lambda key: (-(key.left_rows + key.right_rows), key.key or ())))


def counted_keys(rows: Iterable[Mapping[str, Any]]) -> tuple[HotKey, ...]:
    """Rows of `key, key_hash, left_rows, right_rows` as keys."""
    return tuple(
        HotKey(
            None if row["key"] is None else tuple(row["key"]),
            row["key_hash"],
            row["left_rows"],
            row["right_rows"],
        )
        for row in rows
    )


def shares(key: HotKey, left: SideFacts, right: SideFacts) -> tuple[float, float]:
    """Which share of the left and of the right rows a key holds; 0 where the rows are not known."""
    return (
        key.left_rows / left.rows if left.rows else 0.0,
        key.right_rows / right.rows if right.rows else 0.0,
    )


@dataclass(frozen=True)
class TaskSizes:
    """What a strategy's join tasks read, about.

    Attributes:
        largest_bytes: The largest task.
        median_bytes: A task without a hot key.
    """

    largest_bytes: float
    median_bytes: float

    @property
    def ratio(self) -> float:
        """How many times the median the largest task is."""
        return self.largest_bytes / self.median_bytes if self.median_bytes else 1.0

    def record(self) -> dict[str, int]:
        """As plain numbers."""
        return {"largest_bytes": round(self.largest_bytes), "median_bytes": round(self.median_bytes)}


def task_count(left: SideFacts, right: SideFacts, *, core_count: int) -> int:
    """How many join tasks there are, about: as adaptive execution sizes them, and one per core at least."""
    total = (left.rows or 0) * left.row_bytes + (right.rows or 0) * right.row_bytes
    return max(1, core_count, math.ceil(total / TASK_BYTES))


def task_sizes(
    keys: Iterable[HotKey],
    left: SideFacts,
    right: SideFacts,
    *,
    tasks: int,
    parts: Mapping[int | None, int] | None = None,
) -> TaskSizes:
    """What the tasks of a shuffle join read.

    Args:
        keys: The hot keys that it shuffles.
        left: The left side.
        right: The right side.
        tasks: How many there are.
        parts: Into how many parts a key, by hash, is split; 1 for the others.
    """
    sizes = {key.key_hash: key.left_rows * left.row_bytes + key.right_rows * right.row_bytes for key in keys}
    total = (left.rows or 0) * left.row_bytes + (right.rows or 0) * right.row_bytes
    cold = max(0.0, total - sum(sizes.values())) / tasks
    split = parts or {}
    largest = max((size / split.get(key, 1) for key, size in sizes.items()), default=0.0)
    return TaskSizes(cold + largest, max(cold, 1.0))
