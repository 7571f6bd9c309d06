"""Keys as users name them: on the command line, in a file of their own, or kept from an earlier run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.core.errors import FileCorruptError, UsageError

_VERSION = 1
_PART = "|"


def read_keys(values: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The keys that were typed; `@FILE` stands for those in a file, one in a line.

    Raises:
        UsageError: the file cannot be read.

    >>> read_keys(("UA", "EWR|5"))
    (('UA',), ('EWR', '5'))
    """
    found: dict[tuple[str, ...], None] = {}
    for value in values:
        for text in _lines(value[1:]) if value.startswith("@") else [value]:
            found[tuple(part.strip() for part in text.split(_PART))] = None
    return tuple(found)


def _lines(path: str) -> list[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise UsageError(
            "flag", "--drop-keys", expected="a readable file after @", got=f"{path} ({reason})"
        ) from error
    return [line for line in text.splitlines() if line.strip()]


@dataclass(frozen=True)
class Remembered:
    """The hot keys that an earlier run of the same join has kept.

    Attributes:
        keys: As text.
        hot_share: From which share of a side's rows on a key was hot; 1 where the file does not say.
        scans_skipped: Runs since the rows were last scanned for hot keys.
    """

    keys: tuple[tuple[str, ...], ...]
    hot_share: float = 1.0
    scans_skipped: int = 0


def remembered_keys(path: str, *, on: Sequence[tuple[str, str]]) -> Remembered | None:
    """The hot keys in a file.

    Args:
        path: Of the file.
        on: The join's key columns.

    Returns:
        None when there is no file yet, or when it is of a join on other columns.

    Raises:
        FileCorruptError: it is no such file.  UsageError: it cannot be read.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if content["version"] != _VERSION:
            raise KeyError("version")
        if [tuple(pair) for pair in content["on"]] != list(on):
            return None
        keys = tuple(tuple(map(str, item["key"])) for item in content["keys"])
        if any(len(key) != len(on) for key in keys):
            raise ValueError("a key of another number of columns")
        return Remembered(keys, float(content.get("hot_share", 1)), int(content.get("scans_skipped", 0)))
    except FileNotFoundError:
        return None
    except OSError as error:
        got = f"{path} ({error.strerror or error})"
        raise UsageError("flag", "--hot-keys", expected="a readable file after @", got=got) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        expected = "hot keys that an earlier run has kept"
        hint = "name another file: one that is not there yet is made by this run"
        raise FileCorruptError("file", path, expected=expected, got="something else", hint=hint) from error


def remembered_text(
    on: Iterable[tuple[str, str]],
    keys: Iterable[Mapping[str, Any]],
    *,
    hot_share: float,
    scans_skipped: int = 0,
) -> str:
    """What `remembered_keys` reads: the keys with their rows, which people may want to look at."""
    content = {
        "version": _VERSION,
        "on": [list(pair) for pair in on],
        "hot_share": hot_share,
        "scans_skipped": scans_skipped,
        "keys": [{name: key[name] for name in ("key", "left_rows", "right_rows")} for key in keys],
    }
    return json.dumps(content, ensure_ascii=False, indent=1)
