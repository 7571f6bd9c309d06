"""What a lookup is asked for."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Literal

Missing = Literal["null", "default", "fail", "quarantine"]
Duplicates = Literal["fail", "first", "last", "expand"]


@dataclass(frozen=True)
class Validity:
    """The versions of a slowly changing dimension that count: those valid on one day.

    Attributes:
        as_of: The day; a version is valid on it when from <= day < to.
        valid_from: Column of the first day or instant; NULL: since ever.
        valid_to: Column of the first one after; NULL: for ever.
    """

    as_of: dt.date
    valid_from: str
    valid_to: str


@dataclass(frozen=True)
class LookupSpec:
    """What a lookup is asked for; names as typed.

    Attributes:
        on: (column of the facts, column of the dimension) pairs that must be equal. NULL equals nothing.
        take: (column of the dimension, its name in the output; empty for its own).
        missing: What becomes of a fact without a match: NULL, `default` instead, the end of the run, or a row
            of the rejects instead of one of the answer.
        default: What the taken columns hold then, as text.
        duplicates: Which of several dimension rows of one key counts: none may be there, the first or the
            last by `order`, or all of them, each with a row of its own.
        order: Columns of the dimension; NULL is never preferred, and ties are broken by all other columns.
        validity: The versions that count; None for all rows.
    """

    on: tuple[tuple[str, str], ...]
    take: tuple[tuple[str, str], ...]
    missing: Missing = "null"
    default: str | None = None
    duplicates: Duplicates = "fail"
    order: tuple[str, ...] = ()
    validity: Validity | None = None
