"""How the CSV files of one input fit together: one set of columns, groups of files by header order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.core.errors import ColumnMissingError, PathEmptyError, SchemaConflictError, did_you_mean
from common.engine.csv_headers import CsvHeader, read_headers
from common.engine.data_files import DataFile
from common.engine.ddl import Columns
from common.engine.listing import Listing
from common.engine.reader_options import csv_dialect, mode_of, reject_column
from common.engine.storage import Storage


@dataclass(frozen=True)
class CsvGroup:
    """Files whose columns come in the same order.

    Attributes:
        columns: (name, DDL type) of every column in the files' order, with the names of the input.
        files: The files.
    """

    columns: Columns
    files: tuple[DataFile, ...]


@dataclass(frozen=True)
class CsvLayout:
    """The columns of a CSV input (those of folders aside), and the groups that hold them."""

    columns: Columns
    groups: tuple[CsvGroup, ...]


def csv_layout(listing: Listing, *, storage: Storage) -> CsvLayout:
    """Read every file's header and fit the files together.

    Columns without a declared type are STRING. With a declared schema other columns are read but dropped.

    Raises:
        ColumnMissingError: a file lacks a declared column.
        SchemaConflictError: two files with other columns; a column twice; a column that folders hold too.
        PathEmptyError: no file holds anything, and nothing is declared.
        FileCorruptError, ParameterError: as `read_headers`.
    """
    options = listing.options
    dialect = csv_dialect(options)
    headers = read_headers(listing.files, dialect=dialect, storage=storage)
    filled = [header for header in headers if header.names is not None]
    empty = tuple(header.file for header in headers if header.names is None)
    rejects = reject_column(options)
    if not filled:
        return _without_records(listing, empty)
    if not dialect.header:
        columns, groups = _by_position(
            listing, filled, strict=mode_of(options) == "FAILFAST", rejects=rejects
        )
    else:
        columns, groups = _by_name(listing, filled, rejects=rejects)
    first, *others = groups
    return CsvLayout(columns, (CsvGroup(first.columns, first.files + empty), *others))


def _without_records(listing: Listing, empty: tuple[DataFile, ...]) -> CsvLayout:
    columns = listing.declared_columns
    if columns is None:
        raise without_records(listing)
    return CsvLayout(columns, (CsvGroup(columns, empty),))


def without_records(listing: Listing) -> PathEmptyError:
    """The error for files from which no column can be told."""
    name = listing.request.name
    hint = f"declare the columns with --{name}-schema"
    return PathEmptyError("input", name, expected="columns", got="files without any record", hint=hint)


def _by_position(
    listing: Listing, headers: Sequence[CsvHeader], *, strict: bool, rejects: str
) -> tuple[Columns, list[CsvGroup]]:
    """Files without a header: the declared columns, or `_c0`, … of type STRING."""
    columns = listing.declared_columns
    first = headers[0].names or ()
    if columns is None:
        columns = tuple((name, "STRING") for name in first)
    width = sum(1 for name, _ in columns if name.lower() != rejects)
    for header in headers:
        found = len(header.names or ())
        if strict and found != width:
            raise SchemaConflictError(
                "file", header.file.path, expected=f"{width} columns", got=f"{found} in its first record"
            )
    return columns, [CsvGroup(columns, tuple(header.file for header in headers))]


def _by_name(
    listing: Listing, headers: Sequence[CsvHeader], *, rejects: str
) -> tuple[Columns, list[CsvGroup]]:
    declared = listing.declared_columns
    _check_folder_columns(listing, headers[0])
    if declared is None:
        columns: Columns = tuple((name, "STRING") for name in headers[0].names or ())
        _check_same(listing, headers)
    else:
        columns = declared
        _check_declared([name for name, _ in columns if name.lower() != rejects], headers)
    wanted = {name.lower(): (name, kind) for name, kind in columns}
    folders = {name.lower() for name, _ in listing.partition_columns}
    grouped: dict[tuple[str, ...], list[DataFile]] = {}
    for header in headers:
        grouped.setdefault(tuple(name.lower() for name in header.names or ()), []).append(header.file)
    groups = [
        CsvGroup(_file_columns(names, wanted, folders, rejects), tuple(files))
        for names, files in grouped.items()
    ]
    return columns, groups


def _file_columns(
    names: Sequence[str], wanted: Mapping[str, tuple[str, str]], folders: set[str], rejects: str
) -> Columns:
    """One file's columns as Spark is to read them; those that nobody wants get names that clash with none."""
    columns = [
        wanted[name] if name in wanted and name not in folders else (f"__dropped_{position}", "STRING")
        for position, name in enumerate(names)
    ]
    if rejects in wanted and rejects not in names:
        columns.append(wanted[rejects])
    return tuple(columns)


def _check_folder_columns(listing: Listing, header: CsvHeader) -> None:
    declared = {name.lower() for name, _ in listing.partition_columns}
    if listing.request.schema is not None:
        return
    both = [name for name in header.names or () if name.lower() in declared]
    if both:
        raise folder_conflict(listing, both[0], header.file)


def folder_conflict(listing: Listing, column: str, file: DataFile) -> SchemaConflictError:
    """The error for a column that both the files and the folders' names hold."""
    return SchemaConflictError(
        "column", column, expected="one source of its values",
        got=f"it in the names of folders and in `{file.path}`",
        hint=f"declare the columns with --{listing.request.name}-schema: then the folders' values count",
    )  # fmt: skip


def _check_declared(names: Sequence[str], headers: Sequence[CsvHeader]) -> None:
    for header in headers:
        there = {name.lower() for name in header.names or ()}
        missing = [name for name in names if name.lower() not in there]
        if missing:
            raise ColumnMissingError.among(missing, header.names or (), where=f"the file {header.file.path}")


def _check_same(listing: Listing, headers: Sequence[CsvHeader]) -> None:
    first = headers[0]
    reference = {name.lower() for name in first.names or ()}
    for header in headers:
        names = {name.lower() for name in header.names or ()}
        if names == reference:
            continue
        lacking = [name for name in first.names or () if name.lower() not in names]
        added = [name for name in header.names or () if name.lower() not in reference]
        sides = [f"no {name}" for name in lacking[:5]] + added[:5]
        near = did_you_mean(lacking[0], added) if lacking else None
        hint = near or f"name the columns to read with --{listing.request.name}-schema"
        raise SchemaConflictError(
            "input", listing.request.name, expected=f"the columns of `{first.file.path}` in all files",
            got=f"`{header.file.path}` with {', '.join(sides)}", hint=hint,
        )  # fmt: skip
