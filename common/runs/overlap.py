"""Whether an output would replace, or end up inside, what the same run reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from common.core.errors import UsageError
from common.engine.globs import expand_glob, is_glob, is_hidden
from common.engine.storage import LocalStorage, is_local_path
from common.runs.targets import resolve

_SAME_SCHEME = {"s3": "s3a", "s3n": "s3a"}


def refuse_overlap(target: str, inputs: Sequence[str]) -> None:
    """Refuse an output that is an input, lies inside one or holds one.

    Links are followed, globs are expanded and also compared as patterns (the output may not exist yet), and
    two local paths that reach the same folder in different ways count as one. A `table:` input is not
    compared: where a table lies is not known here.

    Args:
        target: The output, as typed.
        inputs: Paths, globs, URLs and `table:` names, as typed.

    Raises:
        UsageError: Naming the first input that overlaps.

    >>> refuse_overlap("/data/out", ["/data/in", "/data/in*/day=*"])
    """
    for given in inputs:
        if given.startswith("table:") or is_local_path(given) != is_local_path(target):
            continue
        relation = next(filter(None, (_relation(target, each) for each in _expanded(given))), None)
        if relation is not None:
            raise UsageError(
                "output",
                target,
                expected="a folder apart from all inputs",
                got=f"{relation} input `{given}`",
                hint="write to a new folder, or name the input's files more narrowly",
            )


def _expanded(given: str) -> Iterator[str]:
    yield given
    if is_local_path(given) and is_glob(given):
        storage = LocalStorage()
        yield from (entry.path for entry in expand_glob(storage.resolve(given), storage=storage))


def _relation(target: str, given: str) -> str | None:
    """How `target` lies to the input, which may be a pattern; None when they are apart."""
    ours, theirs = _parts(target), _parts(given)
    if "**" in theirs:  # folders at any depth: all that is below
        theirs = theirs[: theirs.index("**")]
    if all(_matches(mine, other) for mine, other in zip(ours, theirs, strict=False)):
        if len(ours) == len(theirs):
            return "the same as"
        return "a folder inside" if len(ours) > len(theirs) else "a folder that holds"
    return _identity_relation(target, given) if is_local_path(target) else None


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or (fnmatchcase(name, pattern) and not is_hidden(name))


def _parts(path: str) -> list[str]:
    resolved = resolve(path)
    if is_local_path(path):
        return resolved.split("/")[1:]
    root, _, rest = resolved.partition("://")
    authority, *parts = rest.split("/")
    return [_SAME_SCHEME.get(root.lower(), root.lower()), authority.lower(), *parts]


def _identity_relation(target: str, given: str) -> str | None:
    """The same by device and inode: bind mounts, and file systems that ignore case."""
    ours, theirs = _identities(resolve(target)), _identities(resolve(given))
    if ours[0] is not None and ours[0] in theirs:
        return "the same as" if ours[0] == theirs[0] else "a folder that holds"
    return "a folder inside" if theirs[0] is not None and theirs[0] in ours else None


def _identities(path: str) -> list[tuple[int, int] | None]:
    """Device and inode of `path` (None when absent), then of each folder above it."""
    found: list[tuple[int, int] | None] = []
    for place in (Path(path), *Path(path).parents):
        try:
            status = place.stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_dev, status.st_ino))
    return found
