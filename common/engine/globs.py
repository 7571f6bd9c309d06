"""Globs over any storage, matched as Python does: `*`, `?`, `[…]`, and `**` for folders at any depth."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from common.engine.storage import FileEntry, Storage

_ROOT = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]+:/(?:/[^/]*)?)?/?")


def is_glob(path: str) -> bool:
    """True when a path holds a wildcard.

    >>> is_glob("day=*/x"), is_glob("a{b,c} d")
    (True, False)
    """
    return any(character in path for character in "*?[")


def is_hidden(name: str) -> bool:
    """True for names that Spark skips in a folder.

    >>> [is_hidden(name) for name in ("_SUCCESS", ".part.crc", "_day=1", "x._COPYING_", "part.csv")]
    [True, True, False, True, False]
    """
    underscored = name.startswith("_") and "=" not in name
    return underscored or name.startswith(".") or name.endswith("._COPYING_")


def fixed_folder(pattern: str, *, storage: Storage | None = None) -> str:
    """The folder above the first wildcard; with a storage, names that exist literally are none.

    >>> fixed_folder("/data/events/day=*/*.csv"), fixed_folder("hdfs://host/a*")
    ('/data/events', 'hdfs://host')
    """
    root, parts = _split(pattern)
    fixed: list[str] = []
    for part in parts[:-1]:
        if is_glob(part) and (storage is None or not storage.exists(_joined(root, [*fixed, part]))):
            break
        fixed.append(part)
    return _joined(root, fixed)


def expand_glob(pattern: str, *, storage: Storage) -> list[FileEntry]:
    """What matches an absolute pattern, by path; only folders when it ends in a slash.

    A wildcard never matches a hidden name at its start. A part that exists literally is that name.
    """
    root, parts = _split(pattern)
    found = _expand(root or "/", parts, storage)
    matches = {entry.path: entry for entry in found if entry.is_folder or not pattern.endswith("/")}
    return [matches[path] for path in sorted(matches)]


def _expand(folder: str, parts: list[str], storage: Storage) -> Iterator[FileEntry]:
    if not parts:
        yield storage.entry(folder)
        return
    first, rest = parts[0], parts[1:]
    path = _joined(folder, [first])
    if storage.exists(path):
        yield from _expand(path, rest, storage)
        return
    if not is_glob(first):
        return
    if first == "**" and rest:
        yield from _expand(folder, rest, storage)
    deeper = parts if first == "**" else rest
    for child in _visible(folder, storage, first):
        if deeper and child.is_folder:
            yield from _expand(child.path, deeper, storage)
        if not rest:
            yield child


def _visible(folder: str, storage: Storage, pattern: str) -> Iterator[FileEntry]:
    try:
        children = storage.children(folder)
    except (NotADirectoryError, FileNotFoundError):
        return
    for child in children:
        named = pattern[0] not in "*?[" or not is_hidden(child.name)
        if named and fnmatchcase(child.name, pattern):
            yield child


def _split(pattern: str) -> tuple[str, list[str]]:
    match = _ROOT.match(pattern)
    root = match[0] if match else ""
    return root, [part for part in pattern[len(root) :].split("/") if part]


def _joined(folder: str, parts: list[str]) -> str:
    if not parts:
        return folder if folder == "/" else folder.rstrip("/")
    tail = "/".join(parts)
    return f"{folder}{tail}" if folder.endswith("/") else f"{folder}/{tail}"
