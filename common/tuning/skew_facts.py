"""What is asked of a join, and what is known about it."""

from __future__ import annotations

from dataclasses import dataclass

from common.tuning.facts import Facts
from common.tuning.hot_keys import (
    HotKey,
    SideFacts,
    TaskSizes,
    counted_keys,
    hot_keys,
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
    def nulls_matter(self) -> bool:
        """Rows with a NULL in the key that the join keeps are many."""
        kept = {"left": ("left", "full", "anti"), "right": ("right", "full")}
        null = next((key for key in self.hot if key.is_null), None)
        if null is None:
            return False
        sides = (("left", null.left_rows, self.left.rows), ("right", null.right_rows, self.right.rows))
        return any(
            self.question.how in kept[side] and rows and count / rows >= self.question.hot_share
            for side, count, rows in sides
        )

    @property
    def hot_ratio(self) -> float:
        """Which share of all rows need no shuffle when hot keys go apart."""
        total = (self.left.rows or 0) + (self.right.rows or 0)
        hot = self.keys if not self.nulls_matter else self.hot
        return sum(key.left_rows + key.right_rows for key in hot) / total if total else 0.0

    @property
    def shuffled(self) -> TaskSizes:
        """The tasks of a shuffle join of everything."""
        return task_sizes(self.keys, self.left, self.right, tasks=self.tasks)


def known_of(question: JoinQuestion, facts: Facts) -> Known:
    """The facts of the inputs `left` and `right`, and the hot keys among what was probed."""
    needed = [[*question.select, *(pair[at] for pair in question.on)] for at in (0, 1)]
    left, right = (
        side_facts(facts.inputs[name], needed=columns if question.select else ())
        for name, columns in zip(("left", "right"), needed, strict=True)
    )
    left, right = (_counted(side, facts, name) for name, side in (("left", left), ("right", right)))
    gone = set(question.drop)
    rows = [row for row in facts.probed.get("hot_keys", ()) if tuple(row["key"] or ()) not in gone]
    hot = hot_keys(rows, left, right, share=question.hot_share)
    tasks = task_count(left, right, core_count=facts.core_count)
    dropped = counted_keys(facts.probed.get("dropped", ()))
    return Known(question, left, right, hot, tasks, facts.core_count, dropped)


def _counted(side: SideFacts, facts: Facts, name: str) -> SideFacts:
    """The side with its exact rows, where they had to be counted."""
    counted = facts.probed.get(f"{name}_rows", ())
    return SideFacts(counted[0]["rows"], side.row_bytes) if counted else side
