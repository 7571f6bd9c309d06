"""What Python workers raise, in the suite's errors; the suite's own errors come back as they were."""

from __future__ import annotations

import re
from collections.abc import Sequence

import common.core.errors as leaves
from common.core.errors import EngineError, InstallationError, SuiteError
from common.engine.clues import Clue

_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.+)$')
_OURS = re.compile(
    r"\[(?P<condition>[A-Z_]+)\] (?P<what>.+?) `(?P<name>.*?)`: expected (?P<expected>.*?), got (?P<got>.*?)"
    r"(?:\. Hint: (?P<hint>.*?))?\.$",
    re.DOTALL | re.MULTILINE,  # newer releases put more text below
)


def worker_failure(clues: Sequence[Clue]) -> SuiteError | None:
    """What a Python worker raised: the suite's own errors as they were, others by their last line."""
    text = next((clue.text for clue in clues if _TRACEBACK in clue.text), "")
    if not text:
        return None
    raised, where = _last_raised(text)
    ours = _OURS.search(raised)
    leaf = _leaf(ours["condition"]) if ours else None
    if ours and leaf is not None:
        fields = ours.groupdict()
        return leaf(
            fields["what"],
            fields["name"],
            expected=fields["expected"],
            got=fields["got"],
            hint=fields["hint"],
        )
    return _version_mismatch(raised) or _module_missing(raised) or _python_raised(raised, where)


def _version_mismatch(raised: str) -> SuiteError | None:
    found = re.search(r"version:? ?(\S+) than that in driver:? ?(\d+\.\d+)", raised)
    if not found:
        return None
    hint = "set PYSPARK_PYTHON to a Python of the driver's version on every worker"
    expected, got = f"Python {found[2]}, the driver's", f"Python {found[1].strip('(),')}"
    return InstallationError("Python", "worker", expected=expected, got=got, hint=hint)


def _module_missing(raised: str) -> SuiteError | None:
    found = re.search(r"ModuleNotFoundError: No module named '([^']+)'", raised)
    if not found:
        return None
    hint = "install it on the workers, or send it with --py-files or spark.archives"
    return InstallationError("Python package", found[1], expected="it on every worker", got="none", hint=hint)


def _python_raised(raised: str, where: str) -> SuiteError:
    first = raised.split("\n", 1)[0]
    return EngineError("Python function", where, expected="a result for every row", got=first)


def _last_raised(text: str) -> tuple[str, str]:
    """The exception that ends the last traceback, and "file:line in function" of its innermost frame."""
    lines = text.rpartition(_TRACEBACK)[2].split("\n\tat ", 1)[0].strip("\n").split("\n")
    frames = [number for number, line in enumerate(lines) if line.startswith("  ")]
    after = frames[-1] + 1 if frames else 0
    places = [found for line in lines if (found := _FRAME.match(line))]
    last = places[-1] if places else None
    where = f"{last['name']} ({last['file'].rpartition('/')[2]}:{last['line']})" if last else "worker"
    return "\n".join(lines[after:]).strip(), where


def _leaf(condition: str) -> type[SuiteError] | None:
    kinds = [
        kind for kind in vars(leaves).values() if isinstance(kind, type) and issubclass(kind, SuiteError)
    ]
    kinds.remove(leaves.SeveralErrors)  # it cannot be made from one text
    return next((kind for kind in kinds if kind.condition == condition), None)
