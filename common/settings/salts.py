"""The type of --salts: in how many parts something hot is cut."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from common.core.errors import UsageError

_AUTO, _MOST = "auto", 10_000


def _checked(value: str) -> str:
    if value != _AUTO and not (value.isdecimal() and 1 <= int(value) <= _MOST):
        expected = f"{_AUTO}, or a whole number from 1 to {_MOST:,}"
        raise UsageError("setting", "--salts", expected=expected, got=value)
    return value


Salts = Annotated[str, AfterValidator(_checked)]
"""auto, or a number of parts."""


def salt_count(value: str) -> int | None:
    """The number of parts; None where they are to be planned.

    >>> salt_count("8"), salt_count("auto")
    (8, None)
    """
    return None if value == _AUTO else int(value)
