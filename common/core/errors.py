"""What can go wrong, with one text form, one stable condition id and one exit code per kind.

Text: ``[CONDITION] what `name`: expected <set, range, unit>, got <value>. Hint: <next step>``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, ClassVar


class ExitCode(IntEnum):
    """The process exit codes of every command."""

    OK = 0
    BUG = 1
    USAGE = 2
    DATA = 3
    ENGINE = 4
    LOCKED = 5
    DIFFERENCE = 6
    SIGINT = 130
    SIGTERM = 143


class SuiteError(Exception):
    """Root of all errors that the suite raises on purpose.

    Args:
        what: The kind of thing that is wrong ("input", "flag", "column").
        name: Its name as the user knows it.
        expected: What would have been right: a set, a range, a unit.
        got: What was found.
        hint: The nearest right thing to do; complete, without a full stop.
    """

    condition: ClassVar[str] = "INTERNAL"
    exit_code: ExitCode = ExitCode.BUG

    def __init__(self, what: str, name: str, *, expected: str, got: str, hint: str | None = None) -> None:
        Exception.__init__(self, what, name)  # OSError's own would take `what` for its errno
        self.what, self.name, self.expected, self.got, self.hint = what, name, expected, got, hint

    def __str__(self) -> str:
        hint = f". Hint: {self.hint}" if self.hint else ""
        found = f"expected {self.expected}, got {self.got}"
        return f"[{self.condition}] {self.what} `{self.name}`: {found}{hint}."

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {"expected": self.expected, "got": self.got, "hint": self.hint}
        return (_rebuild, (type(self), self.what, self.name, fields), dict(vars(self)))  # notes travel too

    def attributes(self) -> dict[str, str | int | None]:
        """The error as data, for the run record."""
        return {
            "condition": self.condition,
            "exit_code": int(self.exit_code),
            "what": self.what,
            "name": self.name,
            "expected": self.expected,
            "got": self.got,
            "hint": self.hint,
        }


def _rebuild(kind: type[SuiteError], what: str, name: str, fields: dict[str, Any]) -> SuiteError:
    return kind(what, name, **fields)


class UsageError(SuiteError, ValueError):
    """Raised when what was typed (arguments, configuration, SQL) cannot be right."""

    condition = "ARGUMENT_INVALID"
    exit_code = ExitCode.USAGE


class ParameterError(UsageError):
    """Raised when a function's parameter is outside its documented range."""

    condition = "PARAMETER_INVALID"


class UnknownNameError(UsageError):
    """Raised when a flag, key, job, profile or strategy of that name does not exist."""

    condition = "NAME_UNKNOWN"


class ConfigurationError(UsageError):
    """Raised when a configuration file or key cannot be used as it stands."""

    condition = "CONFIGURATION_INVALID"


class JobError(UsageError):
    """Raised when a user's job file or a method in it is not what the protocol asks."""

    condition = "JOB_INVALID"


class SqlError(UsageError):
    """Raised when an SQL expression of the user does not parse or does not fit its place."""

    condition = "SQL_INVALID"


class StrategyError(UsageError):
    """Raised when a forced strategy cannot give the right answer for these settings or on this engine."""

    condition = "STRATEGY_UNSUITABLE"


class NotRunError(UsageError, LookupError):
    """Raised when a counter is read that no action has counted yet."""

    condition = "COUNTER_NOT_RUN"


class DataError(SuiteError, ValueError):
    """Raised when what a path or the data holds stops the run."""

    condition = "DATA_INVALID"
    exit_code = ExitCode.DATA


class PathAbsentError(DataError, FileNotFoundError):
    """Raised when there is nothing at a path, or nothing matches a glob."""

    condition = "PATH_ABSENT"


class PathEmptyError(DataError):
    """Raised when a folder holds no data file at all."""

    condition = "PATH_EMPTY"


class OnlyMarkersError(PathEmptyError):
    """Raised when a folder holds only markers such as _SUCCESS: a job wrote it, but no rows."""

    condition = "PATH_ONLY_MARKERS"


class FileUnreadableError(DataError, PermissionError):
    """Raised when a file or folder may not be read."""

    condition = "FILE_UNREADABLE"


class FileCorruptError(DataError):
    """Raised when a file's content is not what its format promises."""

    condition = "FILE_CORRUPT"


class FormatError(DataError):
    """Raised when the format of an input cannot be told, or is mixed."""

    condition = "FORMAT_UNCLEAR"


class ColumnMissingError(DataError, LookupError):
    """Raised when a named column is not there."""

    condition = "COLUMN_MISSING"

    @classmethod
    def among(cls, missing: Sequence[str], available: Sequence[str], *, where: str) -> ColumnMissingError:
        """Build the error from the missing and the available names, nearest ones first."""
        names = ", ".join(missing)
        near = [hit for name in missing for hit in nearest(name, available)]
        known = f"the columns are {_quoted(available[:20])}" if available else None
        hint = f"did you mean {_quoted(near)}" if near else known
        count = f"{len(available)} other columns" if available else "no columns"
        return cls("column", names, expected=f"a column of {where}", got=count, hint=hint)


class ColumnTypeError(DataError, TypeError):
    """Raised when a column's type does not fit what is asked of it."""

    condition = "COLUMN_TYPE"


class SchemaConflictError(DataError):
    """Raised when the files of one input do not have the same columns or types."""

    condition = "SCHEMA_CONFLICT"


class ValueMalformedError(DataError):
    """Raised when a record or a value cannot be read as its declared type."""

    condition = "VALUE_MALFORMED"


class OutputExistsError(DataError, FileExistsError):
    """Raised when the output is there already and --mode is error."""

    condition = "OUTPUT_EXISTS"


class OutputUnwritableError(DataError, PermissionError):
    """Raised when the output's folder cannot be written."""

    condition = "OUTPUT_UNWRITABLE"


class EngineError(SuiteError, RuntimeError):
    """Raised when the engine or the machine stops the run."""

    condition = "ENGINE_FAILED"
    exit_code = ExitCode.ENGINE


class JavaError(EngineError):
    """Raised when Java is missing or too old."""

    condition = "JAVA_UNSUITABLE"


class InstallationError(EngineError):
    """Raised when Spark, Python or the suite itself are not installed as the run needs them."""

    condition = "INSTALLATION_UNSUITABLE"


class LockedError(SuiteError, BlockingIOError):
    """Raised when another run holds the output."""

    condition = "OUTPUT_LOCKED"
    exit_code = ExitCode.LOCKED


class DifferenceError(SuiteError, AssertionError):
    """Raised when --verify finds that the planned answer is not the plain one."""

    condition = "ANSWER_DIFFERS"
    exit_code = ExitCode.DIFFERENCE


class SeveralErrors(SuiteError, ValueError):  # noqa: N818  it is a list of errors
    """Raised when several things are wrong at once: each keeps its own sentence.

    The exit code is that of what was typed if any of them is, else the first one's.
    """

    condition = "SEVERAL_INVALID"
    exit_code = ExitCode.USAGE

    def __init__(self, problems: Iterable[SuiteError]) -> None:
        self.problems = tuple(problems)
        count = str(len(self.problems))
        super().__init__("arguments", count, expected="valid values", got=f"{count} problems")
        codes = [problem.exit_code for problem in self.problems]
        self.exit_code = ExitCode.USAGE if ExitCode.USAGE in codes else next(iter(codes), ExitCode.USAGE)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.problems,), dict(vars(self)))


class Interrupted(KeyboardInterrupt):
    """Raised in the main thread when SIGINT or SIGTERM asks the run to stop."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.exit_code = ExitCode(128 + signal_number)


def nearest(name: str, available: Iterable[str], *, limit: int = 3) -> list[str]:
    """The names most like `name`, best first, compared without regard to case.

    >>> nearest("--ouput", ["--output", "--input", "--mode"])[0]
    '--output'
    """
    by_lower: dict[str, list[str]] = {}
    for candidate in dict.fromkeys(available):
        by_lower.setdefault(candidate.lower(), []).append(candidate)
    hits = difflib.get_close_matches(name.lower(), by_lower, n=limit, cutoff=0.6)
    return [candidate for hit in hits for candidate in by_lower[hit]][:limit]


def did_you_mean(name: str, available: Iterable[str]) -> str | None:
    """A hint that names the nearest names, or None when none is near."""
    hits = nearest(name, available)
    return f"did you mean {_quoted(hits)}" if hits else None


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))
