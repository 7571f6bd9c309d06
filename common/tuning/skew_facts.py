"""What is asked of a join, and what is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.tuning.facts import Facts
from common.tuning.hot_keys import (
    HotKey,
    SideFacts,
    TaskSizes,
    counted_keys,
    hot_keys,
    key_bytes,
    side_facts,
    task_count,
    task_sizes,
)


@dataclass(frozen=True)
class JoinQuestion:
    """What a join asks, as far as a planner needs to know.

    Attributes:
        on: (left, right) key columns.
        how: inner, left, right, full, semi or anti.
        hot_share: A key is hot from this share of a side's rows on.
        max_broadcast_bytes: What may be broadcast, decoded.
        replication_budget: Rows of both sides with the copies that salts make, as a multiple of those
            without, at most.
        salts: Parts of every salted key; None plans them by its share.
        drop: Keys to leave out, as asked.
        select: Output columns; empty for all.
    """

    on: tuple[tuple[str, str], ...]
    how: str = "inner"
    hot_share: float = 0.01
    max_broadcast_bytes: int = 256 * 1024**2
    replication_budget: float = 2.0
    salts: int | None = None
    drop: tuple[tuple[str, ...], ...] = ()
    select: tuple[str, ...] = ()


@dataclass(frozen=True)
class Known:
    """The facts of one join, brought together once.

    Attributes:
        question: What is asked.
        left: The left side.
        right: The right side.
        hot: Its hot keys, that of NULL among them; those with most rows first.
        tasks: How many join tasks there are, about.
        core_count: Task slots of the engine.
        dropped: What the keys that are left out, as asked, would have brought.
    """

    question: JoinQuestion
    left: SideFacts
    right: SideFacts
    hot: tuple[HotKey, ...]
    tasks: int
    core_count: int
    dropped: tuple[HotKey, ...] = ()

    @property
    def keys(self) -> tuple[HotKey, ...]:
        """The hot keys that can find a partner."""
        return tuple(key for key in self.hot if not key.is_null)

    @property
    def null(self) -> HotKey | None:
        """The rows with a NULL in the key, where they are many."""
        return next((key for key in self.hot if key.is_null), None)

    @property
    def nulls_matter(self) -> bool:
        """Rows with a NULL in the key that the join keeps are many."""
        kept = {"left": ("left", "full", "anti"), "right": ("right", "full")}
        null = self.null
        if null is None:
            return False
        sides = (("left", null.left_rows, self.left.rows), ("right", null.right_rows, self.right.rows))
        return any(
            self.question.how in kept[side] and rows and count / rows >= self.question.hot_share
            for side, count, rows in sides
        )

    @property
    def row_count(self) -> int:
        """Rows of both sides, as far as they are known."""
        return (self.left.rows or 0) + (self.right.rows or 0)

    @property
    def bytes(self) -> float:
        """What the rows of both sides weigh, as far as they are known."""
        return sum((side.rows or 0) * side.row_bytes for side in (self.left, self.right))

    @property
    def cold_bytes(self) -> float:
        """What a task has of rows that are of no hot key."""
        hot = sum(key_bytes(key, self.left, self.right) for key in self.hot)
        return max(0.0, self.bytes - hot) / self.tasks

    @property
    def shuffled(self) -> TaskSizes:
        """The tasks of a shuffle join of everything; the NULL keys that it keeps meet in one of them."""
        hot = self.hot if self.nulls_matter else self.keys
        return task_sizes(hot, self.left, self.right, tasks=self.tasks)


def known_of(question: JoinQuestion, facts: Facts) -> Known:
    """The facts of the inputs `left` and `right`, and the hot keys among what was probed."""
    needed = [[*question.select, *(pair[at] for pair in question.on)] for at in (0, 1)]
    left, right = (
        side_facts(facts.inputs[name], needed=columns if question.select else ())
        for name, columns in zip(("left", "right"), needed, strict=True)
    )
    dropped = counted_keys(facts.probed.get("dropped", ()))
    left = _counted(left, facts, "left", gone=sum(key.left_rows for key in dropped))
    right = _counted(right, facts, "right", gone=sum(key.right_rows for key in dropped))
    hot = hot_keys(counted_rows(facts), left, right, share=question.hot_share)
    tasks = task_count(left, right, core_count=facts.core_count)
    return Known(question, left, right, hot, tasks, facts.core_count, dropped)


def counted_rows(facts: Facts) -> tuple[Mapping[str, Any], ...]:
    """The counts of hot keys: those of a scan, where what was kept or sampled did not do."""
    return facts.probed.get("scanned", facts.probed.get("hot_keys", ()))


def _counted(side: SideFacts, facts: Facts, name: str, *, gone: int) -> SideFacts:
    """The side with its exact rows, where they had to be counted, less those that are left out."""
    counted = facts.probed.get(f"{name}_rows", ())
    rows = counted[0]["rows"] if counted else side.rows
    return SideFacts(None if rows is None else max(0, rows - gone), side.row_bytes)
