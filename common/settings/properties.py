r"""Files in spark-defaults form, read as Java reads them: `key value`, `key=value`, `# why`, `\` escapes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_KEY = re.compile(r"(?:[^\\=:\s]|\\.)*")
_BETWEEN = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Entry(NamedTuple):
    """A key, its value ("" when there is none), and the line it begins in, from 1."""

    line: int
    key: str
    value: str


def entries(text: str) -> Iterator[Entry]:
    r"""The settings of a file, in its order, repeated keys included.

    >>> [tuple(entry) for entry in entries("spark.a  1 2\n# why\nspark.b=x\\\n  y")]
    [(1, 'spark.a', '1 2'), (3, 'spark.b', 'xy')]
    """
    for number, line in _logical_lines(text):
        found = _KEY.match(line)
        key = found[0] if found else ""
        between = _BETWEEN.match(line, len(key))
        value = line[between.end() if between else len(key) :]
        yield Entry(number, _unescaped(key), _unescaped(value).strip())


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with content; one that ends in an odd number of backslashes goes on in the next."""
    start, held = 0, ""
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = raw.lstrip(" \t\f")
        if not held and (not line or line[0] in "#!"):
            continue
        start = start if held else number
        if (len(line) - len(line.rstrip("\\"))) % 2:
            held += line[:-1]
            continue
        yield start, held + line
        held = ""
    if held:
        yield start, held


def _unescaped(text: str) -> str:
    def letter(found: re.Match[str]) -> str:
        code = found[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _LETTERS.get(code, code)

    return _ESCAPE.sub(letter, text)
