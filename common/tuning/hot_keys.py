"""Hot keys of a join: who they are, and how large the tasks are that they make."""

from __future__ import annotations

import heapq
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
# A key in a broadcast, about.
KEY_BYTES = _ROW_OVERHEAD_BYTES + _UNKNOWN_WIDTH
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
        median_bytes: The lower one of those in the middle.
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
    gone: Iterable[HotKey] = (),
) -> TaskSizes:
    """What the tasks of a shuffle join read, when hot keys fall on them as evenly as they can.

    Args:
        keys: The hot keys that it shuffles.
        left: The left side.
        right: The right side.
        tasks: How many there are.
        parts: Into how many parts a key, by hash, is split; 1 for the others.
        gone: Hot keys that it does not shuffle.
    """
    sizes = [(key.key_hash, key_bytes(key, left, right)) for key in keys]
    total = (left.rows or 0) * left.row_bytes + (right.rows or 0) * right.row_bytes
    elsewhere = sum(key_bytes(key, left, right) for key in gone)
    cold = max(0.0, total - elsewhere - sum(size for _, size in sizes)) / tasks
    # More parts than a few for each task fall as evenly as these.
    counts = {key: min(count, 4 * tasks) for key, count in (parts or {}).items()}
    pieces = [size / counts.get(key, 1) for key, size in sizes for _ in range(counts.get(key, 1))]
    loads = _spread(pieces, tasks)
    return TaskSizes(cold + loads[-1], max(cold + loads[(tasks - 1) // 2], 1.0))


def _spread(pieces: Iterable[float], tasks: int) -> list[float]:
    """What each task gets of the pieces, rising: the largest first, each to the task that has least."""
    loads = [0.0] * tasks
    for size in sorted(pieces, reverse=True):
        heapq.heapreplace(loads, loads[0] + size)
    return sorted(loads)


def key_bytes(key: HotKey, left: SideFacts, right: SideFacts) -> float:
    """What the rows of a key weigh, on both sides."""
    return key.left_rows * left.row_bytes + key.right_rows * right.row_bytes
