"""The data files below an input's paths: markers are skipped as Spark does, plain sub-folders never are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from common.core.errors import (
    FileUnreadableError,
    FormatError,
    OnlyMarkersError,
    PathEmptyError,
)
from common.engine.globs import is_hidden
from common.engine.input_paths import Root, reading, resolve_path
from common.engine.partitions import Partition, folders_between, parse_folder
from common.engine.storage import FileEntry, Storage
from common.settings.inputs import InputRequest, SubFolders


@dataclass(frozen=True)
class DataFile:
    """One file of rows.

    Attributes:
        path: Full path.
        size_bytes: On disk.
        modified_seconds: Since the epoch, UTC.
        partition: (column, value) of the partition folders above it, outermost first; None is NULL.
    """

    path: str
    size_bytes: int
    modified_seconds: float
    partition: Partition = ()

    @property
    def base(self) -> str:
        """The folder above the outermost partition folder.

        >>> DataFile("/data/day=1/hour=2/f.csv", 1, 0.0, (("day", "1"), ("hour", "2"))).base
        '/data'
        """
        return self.path.rsplit("/", len(self.partition) + 1)[0] or "/"


@dataclass(frozen=True)
class Roots:
    """All that the paths of one input hold."""

    roots: tuple[str, ...]
    files: tuple[DataFile, ...]
    skipped: tuple[str, ...]
    passed_over: tuple[str, ...] = ()


@dataclass
class _Found:
    sub_folders: SubFolders = "refuse"
    files: list[DataFile] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)


def find_files(request: InputRequest, *, storage: Storage) -> Roots:
    """All data files of an input, each once, by path.

    Raises:
        PathAbsentError, FileUnreadableError: as `resolve_path`.
        PathEmptyError, OnlyMarkersError: a path without data files, unless an empty input is allowed and
            its columns are declared.
        FormatError: sub-folders that are neither partitions nor hidden, unless the request says what is
            done with them; a hidden file by name.
    """
    files: dict[str, DataFile] = {}
    roots: list[str] = []
    skipped: list[str] = []
    nested: list[str] = []
    repeated = False
    for path in request.paths:
        found = _Found(request.sub_folders)
        for root in _with_given_base(request, resolve_path(path, storage=storage)):
            roots.append(root.entry.path)
            with reading(root.entry.path):
                _collect(root, storage, found)
        if not found.files and not (request.allow_empty and request.schema is not None):
            raise _empty(request, path, found)
        repeated = repeated or any(file.path in files for file in found.files)
        files.update((file.path, file) for file in found.files)
        skipped += found.skipped
        nested += found.nested
    ordered = tuple(files[path] for path in sorted(files))
    by_name = repeated or (nested and request.sub_folders == "read")
    once = [file.path for file in ordered] if by_name else dict.fromkeys(roots)
    over = sorted(set(nested)) if request.sub_folders == "skip" else ()
    return Roots(tuple(once), ordered, tuple(sorted(set(skipped))), tuple(over))


def _with_given_base(request: InputRequest, roots: list[Root]) -> Iterator[Root]:
    """Spark's option basePath: partition folders above a named path count too."""
    given = next((value for name, value in request.options.items() if name.lower() == "basepath"), None)
    for root in roots:
        inside = given is not None and f"{root.base}/".startswith(f"{given.rstrip('/')}/")
        yield Root(root.entry, given.rstrip("/"), root.from_glob) if given and inside else root


def _collect(root: Root, storage: Storage, found: _Found) -> None:
    if root.entry.is_folder:
        _collect_folder(root.entry, root.base, storage, found)
        return
    if is_hidden(root.entry.name):
        raise FormatError(
            "file", root.entry.path, expected="a name that does not begin with `_` or `.`",
            got="a hidden file, which Spark skips", hint="rename it",
        )  # fmt: skip
    folder = root.entry.path.rsplit("/", 1)[0]
    found.files.append(_data_file(root.entry, folders_between(root.base, folder=folder), storage))


def _collect_folder(folder: FileEntry, base: str, storage: Storage, found: _Found) -> None:
    _check_readable(folder, storage)
    partition = folders_between(base, folder=folder.path)
    plain: list[FileEntry] = []
    before = len(found.files)
    for child in storage.children(folder.path):
        if is_hidden(child.name):
            found.skipped.append(child.path)
        elif not child.is_folder:
            found.files.append(_data_file(child, partition, storage))
        elif parse_folder(child.name) is not None:
            _collect_folder(child, base, storage, found)
        else:
            plain.append(child)
    if plain and found.sub_folders == "refuse":
        names = [child.name for child in plain]
        raise _nested(folder.path, names, beside_files=len(found.files) > before)
    found.nested += [child.path for child in plain]
    for child in plain if found.sub_folders == "read" else ():
        if storage.is_local and _leads_up(child.path):
            found.skipped.append(child.path)
        else:
            _collect_folder(child, base, storage, found)


def _leads_up(path: str) -> bool:
    """True for a link to a folder that it is in: what is below it is read already, and has no end."""
    here, there = Path(path).parent.resolve(), Path(path).resolve()
    return here == there or there in here.parents


def _data_file(entry: FileEntry, partition: Partition, storage: Storage) -> DataFile:
    _check_readable(entry, storage)
    return DataFile(entry.path, entry.size_bytes, entry.modified_seconds, partition)


def _check_readable(entry: FileEntry, storage: Storage) -> None:
    refusal = storage.refusal(entry)
    if refusal is not None:
        kind = "folder" if entry.is_folder else "file"
        got, _, hint = refusal.partition("; ")
        raise FileUnreadableError(
            kind, entry.path, expected="one that can be read", got=got, hint=hint or None
        )


def _nested(folder: str, names: list[str], *, beside_files: bool) -> FormatError:
    shown = ", ".join(f"`{name}`" for name in names[:5])
    got = f"the sub-folders {shown}" + (" beside data files" if beside_files else " and no data files")
    expected = "data files, or partition folders NAME=VALUE"
    hint = f"read them by the glob `{folder}/*/`" + (
        f", or the files by `{folder}/*.*`" if beside_files else ""
    )
    return FormatError("folder", folder, expected=expected, got=got, hint=hint)


def _empty(request: InputRequest, path: str, found: _Found) -> PathEmptyError:
    allow = f"--{request.name}-allow-empty with --{request.name}-schema makes it zero rows"
    if found.skipped:
        names = ", ".join(f"`{skipped.rsplit('/', 1)[-1]}`" for skipped in found.skipped[:5])
        hint = f"the job that wrote it made no rows, or is not done; {allow}"
        return OnlyMarkersError("path", path, expected="data files", got=f"only markers ({names})", hint=hint)
    return PathEmptyError("path", path, expected="data files", got="an empty folder", hint=allow)
