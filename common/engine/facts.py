"""What planners are told about an input, gathered without reading its rows."""

from __future__ import annotations

from collections import Counter

from common.engine.csv_layout import csv_layout
from common.engine.footers import Footers, evenly_spaced, read_footers
from common.engine.formats import compression_of
from common.engine.key_samples import sample_keys, sampled_facts
from common.engine.listing import Listing, declared
from common.engine.storage import LocalStorage
from common.settings.inputs import InputRequest
from common.tuning.facts import InputFacts

__all__ = ["sample_keys", "sampled_facts", "static_facts", "static_facts_of_table"]


def static_facts(listing: Listing) -> InputFacts:
    """The facts of a listed input: files, sizes, exact rows and columns where the files tell them.

    Raises:
        FileCorruptError, SchemaConflictError, ColumnMissingError, ColumnTypeError: as the checks of footers
            and headers, which this makes.
    """
    request = listing.request
    if not listing.is_listed:
        return static_facts_of_table(request) if listing.format == "table" else _unlisted_facts(listing)
    footers = read_footers(listing)
    row_count = footers.row_count if footers is not None else None
    return InputFacts(
        request.name,
        listing.format,
        request.paths,
        file_count=len(listing.files),
        size_bytes=listing.size_bytes,
        row_count=row_count if listing.files else 0,
        column_names=_column_names(listing),
        partition_columns=tuple(name for name, _ in listing.partition_columns),
        schema_declared=_is_declared(listing),
        fingerprint=listing.fingerprint,
        column_bytes=_column_bytes(footers),
        is_reachable=listing.is_local,
        packed_files=_packed_files(listing),
    )


def _packed_files(listing: Listing) -> tuple[str, ...]:
    files = listing.files if listing.format == "text" else ()
    return tuple(file.path for file in files if compression_of(file.path))


def _column_bytes(footers: Footers | None) -> dict[str, int]:
    """Stored bytes by column, over a few files: hundreds would tell no more."""
    total: Counter[str] = Counter()
    if footers is not None:
        for position in evenly_spaced(len(footers.read), limit=8):
            total.update(footers.read[position].column_bytes)
    return dict(total)


def static_facts_of_table(request: InputRequest) -> InputFacts:
    """The facts of `table:NAME` before there is a session: its name, and the columns if declared."""
    names = tuple(name for name, _ in declared(request)) or None
    return InputFacts(request.name, "table", request.paths, column_names=names)


def _unlisted_facts(listing: Listing) -> InputFacts:
    request = listing.request
    names = tuple(name for name, _ in declared(request)) or None
    return InputFacts(
        request.name, listing.format, request.paths, column_names=names, schema_declared=_is_declared(listing)
    )


def _column_names(listing: Listing) -> tuple[str, ...] | None:
    names = _data_columns(listing)
    if names is None:
        return None
    folders = {name.lower() for name, _ in listing.partition_columns}
    inner = [name for name in names if name.lower() not in folders]
    return (*inner, *(name for name, _ in listing.partition_columns))


def _data_columns(listing: Listing) -> tuple[str, ...] | None:
    columns = listing.declared_columns
    if listing.format == "csv" and listing.is_local and listing.files:
        columns = csv_layout(listing, storage=LocalStorage()).columns
    if columns is not None:
        return tuple(name for name, _ in columns)
    if listing.format == "text":
        return ("value",)
    footers = read_footers(listing)
    if footers is None:
        return None
    return tuple(dict.fromkeys(name for footer in footers.read for name, _ in footer.columns))


def _is_declared(listing: Listing) -> bool:
    return listing.request.schema is not None or listing.format in ("parquet", "orc", "text", "table")
