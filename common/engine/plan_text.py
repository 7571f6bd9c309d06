"""The text that Spark's explain prints, read into nodes. Pure text work; `plans` gives it meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_LINE = re.compile(r"^[ :]*?(?P<branch>[+:]- )?(?P<label>[^ :].*)$")
_NUMBERED = re.compile(r"^(?P<text>.*?)\s*\((?P<id>\d+)\)(?:, Statistics\(.*\))?$")
_HEADER = re.compile(r"^\((?P<id>\d+)\) \w+")
_SECTION = re.compile(r"^(?:== Physical Plan ==|Subquery:\d+ Hosting .*)$")
_CODEGEN = re.compile(r"^\*(?:\(\d+\))? ")
_KEY = r"[A-Z][A-Za-z ]+(?: \[\d+\])? ?: "
_ACCELERATED = re.compile(r"^(?:Comet|Gpu)(?=[A-Z])")


@dataclass(frozen=True)
class PlanNode:
    """One operator of a physical plan.

    Attributes:
        name: The operator as the plan names it: "Exchange", "CometSort", "Scan".
        detail: All else that the plan says about it; several lines in a formatted plan.
        depth: 0 at the root of the plan and of each subquery.
        children: Positions of its inputs in the plan's nodes.
    """

    name: str
    detail: str
    depth: int
    children: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        """The name without an accelerator's prefix.

        >>> PlanNode("CometSort", "", 0).kind
        'Sort'
        """
        return _ACCELERATED.sub("", self.name)

    def field(self, key: str) -> str:
        """The text after `key:` in the detail, or the empty string.

        >>> PlanNode("Join", "Left keys [1]: [k#7L]\\nJoin type: Inner", 0).field("Join type")
        'Inner'
        """
        lines = rf"^{re.escape(key)}(?: \[\d+\])? ?: (?P<value>.*?)(?=\n{_KEY}|\Z)"
        inline = rf"\b{re.escape(key)}: (?P<value>.*?)(?=, [A-Z]\w+: |$)"
        found = re.search(lines, self.detail, re.MULTILINE | re.DOTALL) or re.search(inline, self.detail)
        return found["value"].strip() if found else ""


def parse_nodes(text: str) -> tuple[PlanNode, ...]:
    """The nodes of the physical plan and its subqueries, parents first; none when there is no plan.

    An adaptive plan that ran gives its final plan only. Reads the modes formatted, simple, extended and cost;
    in the formatted mode, line breaks inside literals do no harm.
    """
    reader = _Reader()
    for line in text.splitlines():
        reader.read(line)
    return tuple(
        PlanNode(draft.name, "\n".join(draft.lines), draft.depth, tuple(draft.children))
        for draft in reader.drafts
    )


@dataclass
class _Draft:
    """A node while the text is being read."""

    name: str
    offset: int
    depth: int
    lines: list[str]
    children: list[int] = field(default_factory=list)


class _Reader:
    """Puts nodes together line by line."""

    def __init__(self) -> None:
        self.drafts: list[_Draft] = []
        self._state = ""
        self._numbered = False
        self._blank = True
        self._root_follows = False
        self._path: list[int] = []
        self._dropped_from: int | None = None
        self._by_id: dict[int, _Draft] = {}
        self._described: _Draft | None = None
        self._described_id = 0

    def read(self, line: str) -> None:
        blank = not line.strip()
        if _SECTION.match(line) and (self._blank or self._state != "detail"):
            self._state, self._root_follows, self._path, self._dropped_from = "tree", True, [], None
        elif self._state == "tree" and blank and self._numbered:
            self._state = "detail"
        elif self._state == "tree" and not blank:
            self._branch(line)
        elif self._state == "detail" and not blank:
            self._describe(line)
        self._blank = blank

    def _branch(self, line: str) -> None:
        found = _LINE.match(line)
        if found is None or not (found["branch"] or self._root_follows or self._numbered):
            self._continue(line)  # a line break inside a literal
            return
        offset, label = found.start("label"), found["label"]
        if self._dropped_from is not None and offset >= self._dropped_from:
            return
        self._dropped_from = offset if label == "== Initial Plan ==" else None
        self._root_follows = label == "== Final Plan =="
        if not label.startswith("== "):
            self._add(_CODEGEN.sub("", label), offset)

    def _continue(self, line: str) -> None:
        if self.drafts and self._dropped_from is None:
            self.drafts[-1].lines.append(line)

    def _add(self, text: str, offset: int) -> None:
        found = _NUMBERED.match(text) if self._numbered or not self.drafts else None
        self._numbered = self._numbered or found is not None
        identity = int(found["id"]) if found else 0
        while self._path and self.drafts[self._path[-1]].offset >= offset:
            self._path.pop()
        if identity in self._by_id and not self._path:
            self._dropped_from = 0  # a subquery that was printed before
            return
        name, rest = _name_and_rest(found["text"] if found else text)
        draft = _Draft(name, offset, len(self._path), [rest] if rest else [])
        if self._path:
            self.drafts[self._path[-1]].children.append(len(self.drafts))
        self._path.append(len(self.drafts))
        self.drafts.append(draft)
        if identity:
            self._by_id.setdefault(identity, draft)

    def _describe(self, line: str) -> None:
        found = _HEADER.match(line) if self._blank else None
        identity = int(found["id"]) if found else 0
        if identity > self._described_id:
            # None for a node of the initial plan: what the text says about it is not kept either.
            self._described, self._described_id = self._by_id.get(identity), identity
            suffix = re.search(r"\[Reuses operator id: \d+\]", line)
            if self._described is not None and suffix:
                self._described.lines.append(suffix[0])
        elif self._described is not None and not line.startswith("===== "):
            self._described.lines.append(line)


def _name_and_rest(text: str) -> tuple[str, str]:
    found = re.match(r"\w+", text)
    name = found[0] if found else text
    return name, text[len(name) :].strip()
