"""Small text files that a flag names: word lists, dictionaries."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from common.core.errors import UsageError


@cache
def small_text(path: str, *, flag: str, others: str = "") -> str:
    """The content of a UTF-8 file, read once.

    Args:
        path: Of the file.
        flag: That names it.
        others: What else the flag takes, for the error.

    Raises:
        UsageError: there is no such file, or it is no UTF-8 text.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        got = f"{path} ({getattr(error, 'strerror', None) or 'not UTF-8 text'})"
        raise UsageError("flag", flag, expected=f"{others}a readable UTF-8 file", got=got) from error
