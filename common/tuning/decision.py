"""A choice that the suite makes for the user: what, why, what else, on which numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Decision:
    """One choice, explained.

    Attributes:
        choice: The name of what was chosen, as a user would force it.
        reason: One sentence with the numbers it rests on; no full stop.
        rejected: (choice, reason) of each alternative that was not taken.
        evidence: The facts behind it, as plain JSON values.
        guidelines: Ids of the tuning catalogue (D5, K4, …) that it follows.
        forced: True when the user named the choice.
    """

    choice: str
    reason: str
    rejected: tuple[tuple[str, str], ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    guidelines: tuple[str, ...] = ()
    forced: bool = False

    def line(self) -> str:
        """The decision as one line.

        >>> others = (("window", "one task would sort all"),)
        >>> Decision("sort", "one global ranking, 10 rows", others, guidelines=("D5",)).line()
        'sort: one global ranking, 10 rows; not window (one task would sort all) [D5]'
        """
        others = "".join(f"; not {name} ({why})" for name, why in self.rejected)
        ids = f" [{' '.join(self.guidelines)}]" if self.guidelines else ""
        return f"{self.choice}: {self.reason}{others}{ids}"

    def record(self) -> dict[str, Any]:
        """The decision as JSON-ready data for the run record."""
        return asdict(self)
