"""What a typed path stands for: the file or folder of that name, else what its glob matches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from common.core.errors import EngineError, FileUnreadableError, PathAbsentError, SuiteError, nearest
from common.engine.globs import expand_glob, fixed_folder, is_glob
from common.engine.storage import FileEntry, Storage


@dataclass(frozen=True)
class Root:
    """A file or folder to read, and the folder below which folder names may hold columns."""

    entry: FileEntry
    base: str
    from_glob: bool


def resolve_path(path: str, *, storage: Storage) -> list[Root]:
    """The roots of one typed path.

    Raises:
        PathAbsentError: nothing has that name, nothing matches.
        FileUnreadableError: a folder on the way may not be read.
    """
    full = storage.resolve(path)
    with reading(full):
        try:
            entry = storage.entry(full)
        except FileNotFoundError:
            if storage.exists(full):
                raise FileUnreadableError(
                    "path", full, expected="a file or folder", got="a link to nothing"
                ) from None
        else:
            return [Root(entry, entry.path if entry.is_folder else _parent(entry.path), from_glob=False)]
        if is_glob(path):
            matches = expand_glob(full + "/" if path.endswith("/") else full, storage=storage)
            if matches:
                base = fixed_folder(full, storage=storage)
                return [Root(match, base, from_glob=True) for match in matches]
    if is_glob(path):
        raise _absent(full, storage, expected="a glob that matches something", got="no match")
    raise _absent(full, storage, expected="a file or folder", got="nothing")


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn a file system's refusals into the suite's errors."""
    try:
        yield
    except PermissionError as error:
        if isinstance(error, FileUnreadableError):
            raise
        place = str(error.filename or path)
        raise FileUnreadableError(
            "path", place, expected="the right to read it", got="no permission"
        ) from error
    except FileNotFoundError as error:
        if isinstance(error, PathAbsentError):
            raise
        place = str(error.filename or path)
        raise PathAbsentError("path", place, expected="a file or folder", got="nothing any more") from error
    except OSError as error:
        if isinstance(error, SuiteError):
            raise
        got = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EngineError("storage", path, expected="an answer", got=got) from error


def _absent(full: str, storage: Storage, *, expected: str, got: str) -> PathAbsentError:
    """The error with the names that the first missing component is most like."""
    folder: str
    missing: str | None
    if is_glob(full):
        folder, missing = fixed_folder(full, storage=storage), None
    else:
        folder, missing = _first_missing(full, storage)
    hint = None
    try:
        names = [child.name for child in storage.children(folder)]
    except OSError:
        names = []
    if missing is not None:
        near = nearest(missing, names)
        if near:
            hint = "did you mean " + ", ".join(f"`{folder.rstrip('/')}/{name}`" for name in near)
    if hint is None and names:
        shown = ", ".join(f"`{name}`" for name in sorted(names)[:5])
        hint = f"`{folder}` holds {shown}{', …' if len(names) > 5 else ''}"
    return PathAbsentError("path", full, expected=expected, got=got, hint=hint)


def _first_missing(full: str, storage: Storage) -> tuple[str, str]:
    missing, folder = full, _parent(full)
    while folder != missing and not storage.exists(folder):
        missing, folder = folder, _parent(folder)
    return folder, missing.rstrip("/").rsplit("/", 1)[-1]


def _parent(path: str) -> str:
    head, _, _ = path.rstrip("/").rpartition("/")
    return head if head and not head.endswith((":", ":/")) else (f"{head}/" if head else "/")
