"""What one start-up check found: fine, worth a warning, or a reason not to start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from common.core.errors import SuiteError

State = Literal["ok", "warning", "error"]


@dataclass(frozen=True)
class Checked:
    """One start-up check that was made.

    Attributes:
        name: Of the check ("Java", "disk space").
        state: "error" keeps Spark from starting or from a right answer; a "warning" may do so later.
        sentence: What was found, without a full stop.
        hint: What to do about it.
    """

    name: str
    state: State
    sentence: str
    hint: str | None = None


def checked(name: str, check: Callable[[], Checked]) -> Checked:
    """Make the check; the error that it raises becomes its result."""
    try:
        return check()
    except SuiteError as error:
        sentence = f"{error.what} `{error.name}`: expected {error.expected}, got {error.got}"
        return Checked(name, "error", sentence, error.hint)
