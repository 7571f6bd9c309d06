"""What Spark plans to do, as data: shuffles, joins, scans, Python; read from explain, as Connect has it."""

from __future__ import annotations

import contextlib
import io
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from common.core.errors import EngineError
from common.engine.plan_text import PlanNode, parse_nodes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Join", "Plan", "PlanNode", "Scan", "parse_plan", "read_plan"]

_SHUFFLES = ("Exchange", "ColumnarExchange")
_WINDOWS = ("Window", "WindowInPandas", "ArrowWindowPython")
_JOINS = frozenset(
    {
        "BroadcastHashJoin",
        "BroadcastNestedLoopJoin",
        "CartesianProduct",
        "HashJoin",
        "ShuffledHashJoin",
        "SortMergeJoin",
    }
)
_JOIN_TYPE = re.compile(
    r"\b(Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi|LeftAnti|LeftSingle|ExistenceJoin)\b"
)
_PYTHON = re.compile(r"Python|PySpark|Pandas|InArrow")

# What differs between two runs of one query, and what takes its place in `Plan.normalised`.
_CHANGING = (
    (re.compile(r" ?\[codegen id : \d+\]"), ""),
    (re.compile(r"#\d+L?"), "#"),
    (re.compile(r"(plan_id=|operator id: )\d+"), r"\1#"),
    (re.compile(r"\b[a-z][a-z0-9+.-]*:/[^\s,\]]*"), "PATH"),
    (re.compile(r"(?<![\w./])/(?:[\w.@=%+-]+/)+[\w.@=%+-]*"), "PATH"),
)


class Scan(NamedTuple):
    """One read of files or of a table; filters as Spark writes them."""

    source: str
    location: str
    pushed_filters: tuple[str, ...]
    partition_filters: tuple[str, ...]
    read_schema: str


class Join(NamedTuple):
    """One join: its strategy ("SortMergeJoin", "BroadcastHashJoin", …) and type ("Inner", "LeftSemi", …)."""

    strategy: str
    type: str


@dataclass(frozen=True)
class Plan:
    """A physical plan. Of an adaptive one, the final plan once it ran and the initial one before.

    Attributes:
        nodes: Its operators, parents first; subqueries after the main plan.
        text: What Spark printed.
    """

    nodes: tuple[PlanNode, ...]
    text: str = field(default="", repr=False, compare=False)

    def of(self, *kinds: str) -> tuple[PlanNode, ...]:
        """The nodes of these kinds, accelerated ones included, in the plan's order."""
        return tuple(node for node in self.nodes if node.kind in kinds)

    @property
    def exchanges(self) -> tuple[PlanNode, ...]:
        """The shuffles; broadcasts and reused shuffles are not among them."""
        return self.of(*_SHUFFLES)

    @property
    def broadcasts(self) -> tuple[PlanNode, ...]:
        """The broadcast exchanges."""
        return self.of("BroadcastExchange")

    @property
    def reused_exchanges(self) -> tuple[PlanNode, ...]:
        """Exchanges whose rows another branch has made already."""
        return self.of("ReusedExchange")

    @property
    def joins(self) -> tuple[Join, ...]:
        """The joins, outermost first."""
        return tuple(_join(node) for node in self.nodes if node.kind in _JOINS)

    @property
    def python_nodes(self) -> tuple[PlanNode, ...]:
        """The operators that send rows to Python workers."""
        return tuple(node for node in self.nodes if _PYTHON.search(node.name))

    @property
    def scans(self) -> tuple[Scan, ...]:
        """The reads of files and tables; rows made in memory are not among them."""
        return tuple(_scan(node) for node in self.nodes if node.field("ReadSchema"))

    @property
    def sorts(self) -> tuple[PlanNode, ...]:
        """The full sorts; a top-k (TakeOrderedAndProject) is not one."""
        return self.of("Sort")

    @property
    def windows(self) -> tuple[PlanNode, ...]:
        """The window operators, those of Python among them."""
        return self.of(*_WINDOWS)

    @property
    def has_cartesian(self) -> bool:
        """True when both sides of some join are shuffled to pair every row with every row."""
        return bool(self.of("CartesianProduct"))

    @property
    def is_final(self) -> bool:
        """False while adaptive execution may still change the plan."""
        return not any("isFinalPlan=false" in node.detail for node in self.nodes)

    def normalised(self) -> str:
        """The plan without what changes from run to run: expression ids, plan ids, places."""
        lines: list[str] = []
        for node in self.nodes:
            indent = "  " * node.depth
            first, *others = _normalised(f"{node.name} {node.detail}").split("\n")
            lines += [f"{indent}{first}".rstrip(), *(f"{indent}  | {line}" for line in others)]
        return "\n".join(lines)

    def summary(self) -> str:
        """The plan in a few words.

        >>> Plan((PlanNode("Sort", "", 0, (1,)), PlanNode("Exchange", "", 1))).summary()
        '1 shuffle, 1 sort, no Python'
        """
        joins = Counter(join.strategy for join in self.joins)
        python = Counter(node.kind for node in self.python_nodes)
        parts = [
            _count(len(self.exchanges), "shuffle") or "no shuffle",
            _count(len(self.broadcasts), "broadcast"),
            *(f"{count} {name}" for name, count in joins.items()),
            _count(len(self.sorts), "sort"),
            _count(len(self.windows), "window"),
            *(f"{count} {name}" for name, count in python.items()),
            "" if python else "no Python",
        ]
        return ", ".join(part for part in parts if part)


def read_plan(df: DataFrame) -> Plan:
    """Ask Spark for the physical plan of `df`.

    Args:
        df: Any DataFrame, classic or Connect. Not run.

    Raises:
        EngineError: Spark's answer holds no plan.

    Plan:
        No job; the query is analysed, optimised and planned.
    """
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        df.explain(mode="formatted")
    return parse_plan(text.getvalue())


def parse_plan(text: str) -> Plan:
    """Read the text of `explain`, best of the "formatted" mode: it is never truncated.

    Raises:
        EngineError: there is no physical plan in the text.
    """
    nodes = parse_nodes(text)
    if not nodes:
        first = next((line.strip()[:80] for line in text.splitlines() if line.strip()), "nothing")
        raise EngineError("plan", "explain", expected="a physical plan", got=first)
    return Plan(nodes, text)


def _join(node: PlanNode) -> Join:
    found = _JOIN_TYPE.search(node.field("Join type")) or _JOIN_TYPE.search(node.detail)
    return Join(node.kind, found[0] if found else "")


def _scan(node: PlanNode) -> Scan:
    source = re.match(r"(?:\[\w+\] )?(\w*)", node.detail)
    return Scan(
        source=source[1] if source else "",
        location=node.field("Location"),
        pushed_filters=_items(node.field("PushedFilters")),
        partition_filters=_items(node.field("PartitionFilters")),
        read_schema=node.field("ReadSchema"),
    )


def _items(text: str) -> tuple[str, ...]:
    """The items of "[a, f(b, c)]", split at commas outside brackets."""
    items, depth = [""], 0
    for character in text.removeprefix("[").removesuffix("]"):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth <= 0:
            items.append("")
        else:
            items[-1] += character
    return tuple(item.strip() for item in items if item.strip())


def _normalised(text: str) -> str:
    for pattern, replacement in _CHANGING:
        text = pattern.sub(replacement, text)
    return text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if number else ""
