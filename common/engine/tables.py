"""The only reads: an input's files or table as a DataFrame, in the columns and types that were promised."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from common.core.errors import ColumnMissingError, FormatError
from common.engine.catalog import read_table
from common.engine.csv_layout import csv_layout, folder_conflict, without_records
from common.engine.data_files import DataFile
from common.engine.ddl import Columns, quoted, render_columns
from common.engine.footers import read_footers
from common.engine.listing import Listing, declared
from common.engine.partitions import json_type
from common.engine.reader_options import csv_dialect, mode_of, option
from common.engine.storage import Storage, engine_path, storage_for
from common.transforms.bad_rows import RECORD, all_read

_NESTED = ("struct", "array", "map")
_GLOB_CHARACTERS = re.compile(r"([\\{}\[\]*?])")


def read_input(spark: SparkSession, listing: Listing) -> DataFrame:
    """Read one input.

    Args:
        spark: The session, classic or Connect.
        listing: What was found.

    Returns:
        The declared columns, or those of the files, then the partition columns. CSV columns without a
        declared type are STRING.

    Raises:
        ColumnMissingError, SchemaConflictError, ColumnTypeError: the files do not hold what is promised.
        PathAbsentError: no table of that name.
        PathEmptyError: CSV or JSON files without any record, and no columns declared.
        FormatError: the format of an unlisted input is not named.

    Plan:
        Lazy, but for the small job in which Spark reads one file's schema (Parquet, ORC), or all of a JSON
        input whose columns are not declared. Files that differ are united by name.
    """
    if listing.format == "table":
        return as_declared(read_table(spark, listing.request.paths[0]), listing)
    if not listing.is_listed:
        return _read_unlisted(spark, listing)
    if not listing.files:
        return spark.createDataFrame([], render_columns(declared(listing.request)))
    frames = {"csv": _read_csv, "json": _read_json, "text": _read_text}.get(listing.format, _read_columnar)
    return reduce(DataFrame.unionByName, frames(spark, listing))


def _read_csv(spark: SparkSession, listing: Listing) -> list[DataFrame]:
    layout = csv_layout(listing, storage=storage_of(spark, listing))
    wanted = [quoted(name) for name, _ in (*layout.columns, *listing.partition_columns)]
    return [
        _consistently_dropped(load(spark, listing, files, schema=group.columns), listing).select(*wanted)
        for group in layout.groups
        for files in by_base(listing, group.files)
    ]


def _read_text(spark: SparkSession, listing: Listing) -> list[DataFrame]:
    columns = (("value", "STRING"),)
    groups = by_base(listing, listing.files)
    return [as_declared(load(spark, listing, files, schema=columns), listing) for files in groups]


def _read_json(spark: SparkSession, listing: Listing) -> list[DataFrame]:
    schema = json_schema(spark, listing)
    groups = by_base(listing, listing.files)
    return [_consistently_dropped(load(spark, listing, files, schema=schema), listing) for files in groups]


def json_schema(spark: SparkSession, listing: Listing) -> Columns | StructType:
    """The declared columns, or what all files hold, since a field may be in some only."""
    if listing.declared_columns is not None:
        return listing.declared_columns
    # Without partition discovery, which guesses types.
    reader = spark.read.format("json").options(**listing.options).option("recursiveFileLookup", "true")
    schema = reader.load(_paths(listing, listing.files)).schema
    _check_folder_columns(listing, schema)
    if not [name for name in schema.names if name != RECORD]:
        raise without_records(listing)
    return schema


def _read_columnar(spark: SparkSession, listing: Listing) -> list[DataFrame]:
    return [as_declared(frame, listing) for frame in _load_columnar(spark, listing)]


def load_values(spark: SparkSession, listing: Listing) -> list[DataFrame]:
    """A table, or Parquet and ORC files, in the types that are there; `as_declared` casts them."""
    if listing.format == "table":
        return [read_table(spark, listing.request.paths[0])]
    return _load_columnar(spark, listing) if listing.is_listed else [_load_unlisted(spark, listing)]


def _load_columnar(spark: SparkSession, listing: Listing) -> list[DataFrame]:
    """Parquet and ORC: each group of files in its own types."""
    merging = option(listing.request.options, "mergeSchema").lower() == "true"
    frames = []
    for alike in [listing.files] if merging else _alike(listing):
        reader = spark.read.format(listing.format).options(**listing.options)
        # One file by its own path: by its folder Spark would add the folder's columns.
        found = reader.load(_paths(listing, alike) if merging else [_escaped(alike[0].path)]).schema
        _check_folder_columns(listing, found)
        schema = _reading_schema(found, listing)
        frames += [load(spark, listing, files, schema=schema) for files in by_base(listing, alike)]
    return frames


def _alike(listing: Listing) -> list[tuple[DataFile, ...]]:
    """Files grouped by their types of the declared columns; one group where footers cannot tell."""
    footers = read_footers(listing)
    wanted = listing.declared_columns
    if footers is None or wanted is None or footers.row_count is None:
        return [listing.files]
    groups: dict[tuple[str, ...], list[DataFile]] = {}
    for footer in footers.read:
        types = footer.types()
        groups.setdefault(tuple(types[name.lower()] for name, _ in wanted), []).append(footer.file)
    return [tuple(files) for files in groups.values()]


def _reading_schema(found: StructType, listing: Listing) -> Columns | StructType:
    """What the reader is told: the files' own types, so that a declared one is a checked cast.

    A nested type is declared to the reader, which matches fields by name; a cast would go by position.
    """
    wanted = listing.declared_columns
    if wanted is None:
        return found
    types = {field.name.lower(): field.dataType.simpleString() for field in found}
    _check_present([name for name, _ in wanted], found.names, listing)
    return tuple(
        (name, kind if is_nested(kind) or is_nested(types[name.lower()]) else types[name.lower()])
        for name, kind in wanted
    )


def load(
    spark: SparkSession, listing: Listing, files: Sequence[DataFile], *, schema: Columns | StructType
) -> DataFrame:
    """Some files of an input, below one base; `schema` is without the partition columns. Lazy."""
    partitions = listing.partition_columns
    reader = spark.read.format(listing.format).options(**listing.options)
    if isinstance(schema, StructType):
        whole = StructType(list(schema.fields))
        for name, kind in partitions:
            whole.add(name, json_type(name, kind=kind))
        reader = reader.schema(whole)
    else:
        reader = reader.schema(render_columns([*schema, *partitions]))
    if partitions:
        base = files[0].base
        reader = reader.option("basePath", engine_path(base))
    return reader.load(_paths(listing, files))


def _paths(listing: Listing, files: Sequence[DataFile]) -> list[str]:
    """What Spark is given: the folders when all their files are meant, glob characters escaped."""
    whole = len(files) == len(listing.files)
    paths = listing.roots if whole else [file.path for file in files]
    return [_escaped(path) for path in paths]


def _escaped(path: str) -> str:
    return engine_path(escape_glob(path))


def escape_glob(path: str) -> str:
    """The path for a reader that takes globs."""
    return _GLOB_CHARACTERS.sub(r"\\\1", path)


def by_base(listing: Listing, files: Sequence[DataFile]) -> list[tuple[DataFile, ...]]:
    """Files grouped by the folder from which their partition columns count."""
    if not listing.partition_columns:
        return [tuple(files)]
    groups: dict[str, list[DataFile]] = {}
    for file in files:
        groups.setdefault(file.base, []).append(file)
    return [tuple(group) for group in groups.values()]


def as_declared(df: DataFrame, listing: Listing) -> DataFrame:
    """The declared columns in their types, or all; then the partition columns."""
    last = [name for name, _ in listing.partition_columns]
    if listing.declared_columns is None:
        found = [name for name in df.columns if name not in last]
        return df.select(*(quoted(name) for name in (*found, *last)))
    columns = [
        _typed(F.col(quoted(real)), kind).alias(name) for name, real, kind in declared_pairs(df, listing)
    ]
    return df.select(*columns, *(F.col(quoted(name)) for name in last))


def declared_pairs(df: DataFrame, listing: Listing) -> list[tuple[str, str, str]]:
    """The declared columns of files or a table: name, the name that is there, type.

    Raises:
        ColumnMissingError: one is not there.
    """
    last = [name for name, _ in listing.partition_columns]
    found = [name for name in df.columns if name not in last]
    wanted = listing.declared_columns or ()
    _check_present([name for name, _ in wanted], found, listing)
    real = {name.lower(): name for name in found}
    return [(name, real[name.lower()], kind) for name, kind in wanted]


def _typed(column: Column, kind: str) -> Column:
    return column if is_nested(kind) else column.cast(kind)


def _consistently_dropped(df: DataFrame, listing: Listing) -> DataFrame:
    """DROPMALFORMED drops a row for a bad value only when that column is read: so read them all."""
    if mode_of(listing.options) != "DROPMALFORMED":
        return df
    parsed = [
        name
        for name, kind in df.dtypes
        if name not in dict(listing.partition_columns)
        and "map<" not in kind
        and (kind != "string" or listing.format == "json")
    ]
    return df.where(all_read(parsed)) if parsed else df


def _read_unlisted(spark: SparkSession, listing: Listing) -> DataFrame:
    """Paths that only the server can look at. What could not be checked is named in the listing."""
    request = listing.request
    if listing.format == "auto":
        got = "paths that tell nothing"
        hint = f"name it with --{request.name}-format"
        raise FormatError("input", request.name, expected="a format", got=got, hint=hint)
    frame = _load_unlisted(spark, listing)
    return frame if listing.format == "json" and request.schema is not None else as_declared(frame, listing)


def _load_unlisted(spark: SparkSession, listing: Listing) -> DataFrame:
    request, options = listing.request, listing.options
    if listing.format == "csv" and csv_dialect(options).header:
        options = {"enforceSchema": "false"} | options  # Spark then compares every file's header itself
    base = {name: value for name, value in request.options.items() if name.lower() == "basepath"}
    reader = spark.read.format(listing.format).options(**options, **base)
    if listing.format == "json" and request.schema is not None:
        reader = reader.schema(request.schema)
    return reader.load([re.sub(r"([{}\\])", r"\\\1", path) for path in request.paths])


def storage_of(spark: SparkSession, listing: Listing) -> Storage:
    """Where the files of a listing are."""
    storage = storage_for(listing.files[0].path, spark)
    assert storage is not None  # it was listed by one
    return storage


def _check_folder_columns(listing: Listing, found: StructType) -> None:
    folders = {name.lower() for name, _ in listing.partition_columns}
    both = [name for name in found.names if name.lower() in folders]
    if both and listing.request.schema is None:
        raise folder_conflict(listing, both[0], listing.files[0])


def _check_present(names: Sequence[str], found: Sequence[str], listing: Listing) -> None:
    there = {name.lower() for name in found}
    missing = [name for name in names if name.lower() not in there]
    if missing:
        raise ColumnMissingError.among(missing, found, where=f"the input {listing.request.name}")


def is_nested(kind: str) -> bool:
    """True for types that are declared to the reader, not cast."""
    return kind.lower().startswith(_NESTED)
