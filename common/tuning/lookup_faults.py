"""What stops a lookup, and how it is said: duplicates, intervals, missing keys, too many rejects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from common.core.errors import SeveralErrors, UsageError
from common.core.key_errors import KeyDuplicateError, KeyMissingError, ValidityError

Row = Mapping[str, Any]


def check_duplicates(row: Row, *, on: Sequence[str]) -> None:
    """Refuse a dimension with several rows of one key.

    Args:
        row: Of `dimension_summary`.
        on: The dimension's key columns.

    Raises:
        KeyDuplicateError: naming some keys with their rows.
    """
    count = row["duplicate_keys"]
    if not count:
        return
    shown = {entry["key"]: entry["n"] for name in ("most", "first", "last") if (entry := row[name])}
    keys = ", ".join(f"{key} ({rows:,} rows)" for key, rows in shown.items())
    raise KeyDuplicateError(
        "dimension",
        ",".join(on),
        expected="one row for each key",
        got=f"{_counted(count, 'key')} with several, such as {keys}",
        hint="choose with --duplicates first:COLUMN, last:COLUMN or expand",
    )


_HALF_OPEN = "an interval holds its first day and not its last one"
# What is expected of versions, what some are instead, and what to do.
_FAULTS = {
    "empty": ("intervals that begin before they end", "with an interval that does not", _HALF_OPEN),
    "overlapping": (
        "intervals of one key that do not overlap",
        "with versions that are valid at once",
        _HALF_OPEN,
    ),
    "gap": (
        "intervals of one key that follow each other without a gap",
        "with days between two versions that have none",
        f"{_HALF_OPEN}; where keys may be gone for a while, say --gaps allow",
    ),
}


def check_validity(row: Row, *, on: Sequence[str], allows_gaps: bool = False) -> None:
    """Refuse versions that are never valid, or valid at once, or that leave days without one between them.

    Args:
        row: Of `validity_summary`.
        on: The dimension's key columns.
        allows_gaps: A key may be gone for a while.

    Raises:
        ValidityError: naming some keys; SeveralErrors for several kinds.
    """
    errors = [
        ValidityError(
            "dimension",
            ",".join(on),
            expected=expected,
            got=f"{_counted(row[f'{kind}_keys'], 'key')} {what}: {_some(row, kind)}",
            hint=hint,
        )
        for kind, (expected, what, hint) in _FAULTS.items()
        if row[f"{kind}_keys"] and not (allows_gaps and kind == "gap")
    ]
    if len(errors) > 1:
        raise SeveralErrors(errors)
    if errors:
        raise errors[0]


def absent_in_words(row: Row, *, day: object) -> str | None:
    """Which keys have versions and none for the day; None when all have one.

    >>> absent_in_words({"absent_keys": 2, "absent_first": "a", "absent_last": "b"}, day="2013-06-01")
    '2 keys of the dimension have versions, and none that is valid on 2013-06-01: a, b'
    """
    count = row["absent_keys"]
    if not count:
        return None
    have = "has versions, and none that is valid" if count == 1 else "have versions, and none that is valid"
    return f"{_counted(count, 'key')} of the dimension {have} on {day}: {_some(row, 'absent')}"


def check_defaults(row: Row, *, default: str) -> None:
    """Refuse a default that a taken column cannot hold.

    Args:
        row: Of `unfit_defaults`.
        default: As text.

    Raises:
        UsageError: naming the columns.
    """
    if row["unfit"]:
        expected, got = "a value that each taken column can hold", f"none for {', '.join(row['unfit'])}"
        hint = "take columns of one type, or use --missing null"
        raise UsageError("flag", f"--missing default:{default}", expected=expected, got=got, hint=hint)


def check_missing(count: int, examples: Iterable[Row], *, on: Sequence[str]) -> None:
    """Refuse facts without a match.

    Args:
        count: How many there are.
        examples: Of `missing_keys`; looked at only when there are some.
        on: The facts' key columns.

    Raises:
        KeyMissingError: naming up to five keys with their rows.
    """
    if not count:
        return
    keys = ", ".join(f"{row['key']} ({_counted(row['rows'], 'row')})" for row in examples)
    raise KeyMissingError(
        "facts",
        ",".join(on),
        expected="a match for every row",
        got=f"{_counted(count, 'row')} without one; the keys of most: {keys}",
        hint="use --missing null, default:VALUE or quarantine",
    )


def _some(row: Row, kind: str) -> str:
    first, last = row[f"{kind}_first"], row[f"{kind}_last"]
    return ", ".join(dict.fromkeys([first, last])) + (", …" if row[f"{kind}_keys"] > 2 else "")


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
