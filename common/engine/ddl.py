"""Column lists in Spark's DDL, taken apart without a session: only names and types are looked at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from common.core.errors import UsageError

Columns = tuple[tuple[str, str], ...]

_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s:`]+))\s*(?::\s*|\s+)(\S.*?)\s*", re.DOTALL)
_SUFFIX = re.compile(
    r"\s+(?:NOT\s+NULL|COMMENT\s+(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"))\s*$", re.IGNORECASE
)
_TYPE = re.compile(r"[A-Za-z][A-Za-z_0-9]*\b.*", re.DOTALL)


def parse_columns(schema: str, *, flag: str = "schema") -> Columns:
    """Names and types of a DDL column list, in order.

    Args:
        schema: For example "zip STRING, amount DECIMAL(10,2) NOT NULL".
        flag: What the user calls it, for the error.

    Returns:
        (name, type) pairs; the types as written, without NOT NULL and COMMENT.

    Raises:
        UsageError: a part is not "NAME TYPE", or a name appears twice (without regard to case).

    >>> parse_columns("zip STRING, `unit price`: decimal(10,2) NOT NULL, m MAP<STRING,INT>")
    (('zip', 'STRING'), ('unit price', 'decimal(10,2)'), ('m', 'MAP<STRING,INT>'))
    """
    columns = tuple(_parse_one(part, flag) for part in _split(schema))
    seen: set[str] = set()
    for name, _ in columns:
        if name.lower() in seen:
            raise UsageError(flag, name, expected="each column once", got="it twice")
        seen.add(name.lower())
    return columns


def render_columns(columns: Iterable[tuple[str, str]]) -> str:
    """DDL of (name, type) pairs, names quoted.

    >>> render_columns([("a b", "INT"), ("c", "STRING")])
    '`a b` INT, `c` STRING'
    """
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)


def quoted(name: str) -> str:
    """A column name that dots and backticks in it do not change.

    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def _parse_one(part: str, flag: str) -> tuple[str, str]:
    match = _COLUMN.fullmatch(part)
    if match is not None:
        kind = match[3]
        while (shorter := _SUFFIX.sub("", kind)) != kind:
            kind = shorter
        if _TYPE.fullmatch(kind):
            return (match[1].replace("``", "`") if match[1] else match[2]), kind
    raise UsageError(
        flag, part.strip(), expected="NAME TYPE, … (DDL)", got="something else",
        hint='write for example "zip STRING, n INT"; put odd names in backticks',
    )  # fmt: skip


def _split(schema: str) -> Iterator[str]:
    depth, quote, start = 0, "", 0
    for index, character in enumerate(schema):
        if quote:
            quote = "" if character == quote else quote
        elif character in "`'\"":
            quote = character
        elif character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == "," and depth == 0:
            yield schema[start:index]
            start = index + 1
    yield schema[start:]
