"""What an input consists of: files, format, the columns in folder names. Local paths need no session."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from common.core.errors import SchemaConflictError, UsageError
from common.engine.data_files import DataFile, Roots, find_files
from common.engine.ddl import Columns, parse_columns
from common.engine.formats import are_tab_separated, format_of_name, resolve_format
from common.engine.input_paths import reading
from common.engine.partitions import check_values, guess_type
from common.engine.reader_options import reader_options
from common.engine.storage import FileEntry, Storage, is_local_path, storage_for
from common.engine.text_checks import check_text_files
from common.settings.inputs import InputRequest

TABLE_PREFIX = "table:"
_WITHOUT_FOOTERS = ("exact rows", "the columns of every file")


@dataclass(frozen=True)
class Listing:
    """One input, looked at.

    Attributes:
        request: What the user asked for.
        format: parquet, orc, csv, json, text, or table; "auto" only when nothing could be looked at.
        roots: The files and folders that the paths and globs stand for.
        files: The data files, by path; empty for a table, an unlisted input and an allowed empty one.
        partition_columns: (name, DDL type) of the columns that folder names hold, outermost first.
        skipped: Paths with hidden names (markers, temporary files) that are not read, as Spark does.
        passed_over: Plain sub-folders that are not read, because the request says so.
        fingerprint: SHA-256 of the files' paths, sizes and times; None when not listed.
        is_local: The files can be opened by Python.
        is_listed: False for tables, and for other file systems before there is a classic session.
        tab_separated: CSV files named .tsv.
        unchecked: The checks that could not be made, for the run record.
    """

    request: InputRequest
    format: str
    roots: tuple[str, ...] = ()
    files: tuple[DataFile, ...] = ()
    partition_columns: Columns = ()
    skipped: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    fingerprint: str | None = None
    is_local: bool = False
    is_listed: bool = True
    tab_separated: bool = False
    unchecked: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """The files' size on disk."""
        return sum(file.size_bytes for file in self.files)

    @property
    def declared_columns(self) -> Columns | None:
        """The declared columns that files hold (not folders); None when nothing is declared."""
        if self.request.schema is None:
            return None
        folders = {name.lower() for name, _ in self.partition_columns}
        return tuple(column for column in declared(self.request) if column[0].lower() not in folders)

    @property
    def options(self) -> dict[str, str]:
        """Spark's reader options."""
        return reader_options(self.request, file_format=self.format, tab_separated=self.tab_separated)


def list_input(request: InputRequest, storage: Storage | None = None) -> Listing:
    """Find and check the files of an input.

    Args:
        request: What the user asked for.
        storage: Where its paths are; chosen by the first path when left out.

    Returns:
        An unlisted Listing (`is_listed` False) for `table:NAME`, and for paths that the suite cannot look
        at yet.

    Raises:
        UsageError: no path, an empty one, a table among paths, two file systems, a bad schema or option.
        PathAbsentError, PathEmptyError, OnlyMarkersError, FileUnreadableError: what is at a path.
        FormatError, FileCorruptError: what the files are.
        SchemaConflictError, ValueMalformedError: what the folders' names say.
    """
    _check_paths(request)
    declared(request)
    if request.paths[0].startswith(TABLE_PREFIX):
        return Listing(request, "table", is_listed=False)
    storage = storage or storage_for(request.paths[0])
    if storage is None:
        return _unlisted(request)
    found = find_files(request, storage=storage)
    return _described(request, found, storage)


def declared(request: InputRequest) -> Columns:
    """The declared columns, partition columns among them; none when there is no schema."""
    if request.schema is None:
        return ()
    return parse_columns(request.schema, flag=f"--{request.name}-schema")


def _described(request: InputRequest, found: Roots, storage: Storage) -> Listing:
    files = found.files
    if files:
        entries = [FileEntry(file.path, file.size_bytes, file.modified_seconds, False) for file in files]
        with reading(files[0].path):
            kind: str = resolve_format(request, files=entries, storage=storage)
    else:
        kind = request.format
    if request.encoding is not None:
        check_text_files(files, encoding=request.encoding, storage=storage)
    reader_options(request, file_format=kind)
    return Listing(
        request,
        kind,
        roots=found.roots,
        files=files,
        partition_columns=_partition_columns(request, files),
        skipped=found.skipped,
        passed_over=found.passed_over,
        fingerprint=_fingerprint(files),
        is_local=storage.is_local,
        unchecked=() if storage.is_local or kind not in ("parquet", "orc") else _WITHOUT_FOOTERS,
        tab_separated=kind == "csv" and are_tab_separated(request, paths=[file.path for file in files]),
    )


def _partition_columns(request: InputRequest, files: Sequence[DataFile]) -> Columns:
    if not files:
        return ()
    first = files[0]
    names = tuple(name for name, _ in first.partition)
    for file in files:
        if tuple(name for name, _ in file.partition) != names:
            raise SchemaConflictError(
                "input", request.name, expected="the same partition folders above all files",
                got=f"{_shown(first)} and {_shown(file)}", hint="read the folders that agree, by a glob",
            )  # fmt: skip
    wanted = {name.lower(): kind for name, kind in declared(request)}
    columns = []
    for name in names:
        kind = wanted.get(name.lower())
        if kind is None:
            kind = guess_type(dict(file.partition)[name] for file in files)
        else:
            partitions, paths = [file.partition for file in files], [file.path for file in files]
            check_values(name, kind=kind, partitions=partitions, paths=paths)
        columns.append((name, kind))
    return tuple(columns)


def _shown(file: DataFile) -> str:
    return f"{', '.join(name for name, _ in file.partition) or 'none'} (`{file.path}`)"


def _fingerprint(files: Sequence[DataFile]) -> str:
    digest = hashlib.sha256()
    for file in files:
        line = f"{file.path}\0{file.size_bytes}\0{file.modified_seconds!r}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _unlisted(request: InputRequest) -> Listing:
    kind: str = request.format
    if kind == "auto":
        told = {format_of_name(path) for path in request.paths} - {None}
        kind = next(iter(told), None) or "auto" if len(told) == 1 else "auto"
    reader_options(request, file_format=kind)
    unchecked = ("existence", "hidden files", "sizes", "partition folders", *_WITHOUT_FOOTERS)
    tabs = all(path.lower().endswith(".tsv") for path in request.paths)
    return Listing(request, kind, is_listed=False, tab_separated=tabs, unchecked=unchecked)


def _check_paths(request: InputRequest) -> None:
    flag = f"--{request.name}"
    if not request.paths or not all(request.paths):
        raise UsageError("input", flag, expected="a path, a glob, a URL or table:NAME", got="nothing")
    tables = [path for path in request.paths if path.startswith(TABLE_PREFIX)]
    if tables and len(request.paths) > 1:
        raise UsageError(
            "input", flag, expected="one table and nothing else, or paths", got=f"`{tables[0]}` and others"
        )
    if len({is_local_path(path) for path in request.paths}) > 1:
        raise UsageError("input", flag, expected="paths of one file system", got="local and remote ones")
