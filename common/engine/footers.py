"""What Parquet and ORC files say about themselves: exact rows, columns, types. Local files, no session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from common.core.errors import ColumnMissingError, ColumnTypeError, FileCorruptError, SchemaConflictError
from common.engine.data_files import DataFile
from common.engine.footer_types import parquet_columns
from common.engine.input_paths import reading
from common.engine.listing import Listing
from common.engine.reader_options import option

if TYPE_CHECKING:
    import pyarrow.parquet as pq

FILE_LIMIT = 2000


@dataclass(frozen=True)
class Footer:
    """One file's own description.

    Attributes:
        file: The file.
        row_count: Its exact number of rows.
        columns: (name, Spark type) in the file's order.
        column_bytes: Stored bytes of each column in the first row groups, by lower-case name; ORC's
            are not told.
    """

    file: DataFile
    row_count: int
    columns: tuple[tuple[str, str], ...]
    column_bytes: Mapping[str, int] = field(default_factory=dict)

    def types(self) -> dict[str, str]:
        """Spark type by lower-case name."""
        return {name.lower(): kind for name, kind in self.columns}


@dataclass(frozen=True)
class Footers:
    """The footers of one input.

    Attributes:
        read: One per file that was looked at: all, or evenly spaced ones of very many.
        row_count: Exact rows of the whole input; None when not all files were looked at.
    """

    read: tuple[Footer, ...]
    row_count: int | None


def read_footers(listing: Listing) -> Footers | None:
    """Read and compare the footers of a local Parquet or ORC input.

    Returns:
        None for other formats, other file systems and inputs without files.

    Raises:
        FileCorruptError: a file that does not end as its format promises.
        SchemaConflictError: two files with other columns or types, or a column twice in one.
        ColumnMissingError: a declared column that a file lacks.
        ColumnTypeError: a type that Spark does not read.
    """
    if not listing.is_local or listing.format not in ("parquet", "orc") or not listing.files:
        return None
    footers = _read_all(listing.files, listing.format)
    declared = listing.declared_columns
    if declared is not None:
        _check_declared([name for name, _ in declared], footers)
    merging = option(listing.request.options, "mergeSchema").lower() == "true"
    _check_alike(listing, footers, merging=merging)
    _check_readable(listing, footers)
    whole = len(footers) == len(listing.files)
    return Footers(footers, sum(footer.row_count for footer in footers) if whole else None)


def evenly_spaced(count: int, *, limit: int) -> list[int]:
    """At most `limit` positions among `count`, the first and the last among them.

    >>> evenly_spaced(10, limit=4), evenly_spaced(3, limit=5)
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if count <= limit:
        return list(range(count))
    if limit == 1:
        return [(count - 1) // 2]
    return [position * (count - 1) // (limit - 1) for position in range(limit)]


@lru_cache(maxsize=8)  # facts, checks and the reader ask for the same files
def _read_all(files: tuple[DataFile, ...], file_format: str) -> tuple[Footer, ...]:
    chosen = [files[position] for position in evenly_spaced(len(files), limit=FILE_LIMIT)]
    read = _read_parquet if file_format == "parquet" else _read_orc
    with ThreadPoolExecutor(max_workers=8) as pool:
        return tuple(pool.map(read, chosen))


def _read_parquet(file: DataFile) -> Footer:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with reading(file.path):
        try:
            metadata = pq.read_metadata(file.path)
            columns = parquet_columns(metadata)
        except (FileNotFoundError, PermissionError):
            raise
        except (pa.ArrowException, OSError) as error:
            raise _corrupt(file, "Parquet", error) from error
    return Footer(file, metadata.num_rows, columns, _column_bytes(metadata))


def _column_bytes(metadata: pq.FileMetaData) -> dict[str, int]:
    """A row group tells enough: what is wanted is which columns are wide."""
    found: dict[str, int] = {}
    if metadata.num_row_groups:
        group = metadata.row_group(0)
        for at in range(group.num_columns):
            column = group.column(at)
            name = column.path_in_schema.partition(".")[0].lower()
            found[name] = found.get(name, 0) + column.total_compressed_size
    return found


def _read_orc(file: DataFile) -> Footer:
    import pyarrow as pa
    from pyarrow import orc

    with reading(file.path):
        try:
            content = orc.ORCFile(file.path)
            columns = tuple((field.name, str(field.type)) for field in content.schema)
        except (FileNotFoundError, PermissionError):
            raise
        except (pa.ArrowException, OSError) as error:
            raise _corrupt(file, "ORC", error) from error
    return Footer(file, content.nrows, columns)


def _corrupt(file: DataFile, kind: str, error: Exception) -> FileCorruptError:
    reason = " ".join(str(error).split()).removesuffix(".")[:160]
    return FileCorruptError("file", file.path, expected=f"a {kind} file", got=reason or type(error).__name__)


def _check_declared(names: Sequence[str], footers: Sequence[Footer]) -> None:
    for footer in footers:
        there = footer.types()
        missing = [name for name in names if name.lower() not in there]
        if missing:
            available = [name for name, _ in footer.columns]
            raise ColumnMissingError.among(missing, available, where=f"the file {footer.file.path}")


def _check_alike(listing: Listing, footers: Sequence[Footer], *, merging: bool) -> None:
    declared = listing.declared_columns
    first = footers[0]
    reference = first.types()
    for footer in footers:
        if footer.columns == first.columns and footer is not first:
            continue
        if len(footer.types()) != len(footer.columns):
            twice = _first_twice([name for name, _ in footer.columns])
            raise SchemaConflictError(
                "file", footer.file.path, expected="each column once", got=f"`{twice}` twice (case aside)"
            )
        if declared is not None:
            continue
        differing = _differences(reference, footer.types(), merging=merging)
        if differing is not None:
            raise SchemaConflictError(
                "input", listing.request.name, expected="the same columns and types in all files",
                got=f"`{first.file.path}` with {differing[0]} and `{footer.file.path}` with {differing[1]}",
                hint=f"name the columns and types to read with --{listing.request.name}-schema",
            )  # fmt: skip


def _differences(
    left: Mapping[str, str], right: Mapping[str, str], *, merging: bool
) -> tuple[str, str] | None:
    names = [name for name in {**left, **right} if left.get(name) != right.get(name)]
    if merging:
        names = [name for name in names if name in left and name in right]
    if not names:
        return None
    shown = names[:5]
    more = f", … ({len(names)} columns)" if len(names) > 5 else ""
    sides = [
        ", ".join(f"{name} {side[name]}" if name in side else f"no {name}" for name in shown) + more
        for side in (left, right)
    ]
    return sides[0], sides[1]


def _check_readable(listing: Listing, footers: Sequence[Footer]) -> None:
    declared = listing.declared_columns
    wanted = None if declared is None else {name.lower() for name, _ in declared}
    for footer in footers:
        for name, kind in footer.columns:
            if kind.startswith("unreadable") and (wanted is None or name.lower() in wanted):
                raise ColumnTypeError(
                    "column", name, expected="a type that Spark reads",
                    got=f"{kind.removeprefix('unreadable ')} in `{footer.file.path}`",
                    hint="write it in microseconds, or leave it out with "
                    f"--{listing.request.name}-schema",
                )  # fmt: skip


def _first_twice(names: Sequence[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            return name
        seen.add(name.lower())
    return ""
