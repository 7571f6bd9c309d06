"""An input in two parts: the rows that can be read as declared, and the others with the reason.

A row is bad when a strict run, which reads all columns, would stop at it: the readers are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Literal, cast

from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from common.core.errors import ParameterError, UsageError
from common.engine.catalog import read_table
from common.engine.counters import Counters
from common.engine.csv_layout import csv_layout
from common.engine.listing import Listing
from common.engine.storage import is_local_path
from common.engine.tables import (
    by_base,
    declared_pairs,
    escape_glob,
    is_nested,
    json_schema,
    load,
    load_columnar,
    read_input,
    storage_of,
)
from common.engine.text_rows import plain_path
from common.transforms.bad_rows import (
    BAD_ROWS,
    RECORD,
    is_readable,
    is_unreadable,
    located,
    place_of,
    record_faults,
    spoilt_columns,
    unread_values,
)
from common.transforms.columns import named
from common.transforms.counters import Counter

RECORDS = Counter("records")
_SHOWN = 5
_TEXTS = ("csv", "json")
# Of the reader: what a single record, already a string, has not.
_OF_FILES = ("header", "mode", "multiline", "encoding", "charset", "columnnameofcorruptrecord")


def can_be_bad(listing: Listing) -> bool:
    """False where every row fits: plain text, and types that are the files' own."""
    if listing.format in _TEXTS:
        return True
    declared = listing.declared_columns or ()
    return listing.format != "text" and any(not is_nested(kind) for _, kind in declared)


def read_readable(spark: SparkSession, listing: Listing) -> DataFrame:
    """What `read_input` reads, without the rows at which it would stop.

    Args:
        spark: The session.
        listing: What was found; its request rejects bad rows.

    Raises:
        UsageError: CSV or JSON files that only the server can look at.

    Plan:
        Lazy, as `read_input`; every column is parsed whichever are asked for.
    """
    _refuse_unlisted(listing)
    if not can_be_bad(listing) or (listing.is_listed and not listing.files):
        return read_input(spark, listing)
    if listing.format in _TEXTS:
        return reduce(DataFrame.unionByName, _readable_texts(spark, listing))
    return reduce(DataFrame.unionByName, (_fitting(frame, listing) for frame in _raw(spark, listing)))


def read_bad(spark: SparkSession, listing: Listing) -> tuple[DataFrame, list[Counters]]:
    """The rows that `read_readable` leaves out, and counters of all records on the way.

    Returns:
        `BAD_ROWS`, and counters that hold `records` once the frame was run whole.

    Plan:
        Lazy; no shuffle. All rows go through Python workers for their numbers, two narrow columns of each.
    """
    _refuse_unlisted(listing)
    if not can_be_bad(listing) or (listing.is_listed and not listing.files):
        return spark.createDataFrame([], BAD_ROWS), []
    marked = _marked_texts if listing.format in _TEXTS else _marked_values
    frames, counters = [], []
    for rows in marked(spark, listing):
        counters.append(Counters(RECORDS))
        frames.append(located(counters[-1].attach(rows), input_name=listing.request.name))
    return reduce(DataFrame.unionByName, frames), counters


def _refuse_unlisted(listing: Listing) -> None:
    if listing.format in (*_TEXTS, "auto") and not listing.is_listed:
        got = "files that only the server can look at"
        raise UsageError(
            "flag", "--bad-rows reject", expected="CSV and JSON files that this machine can list", got=got,
            hint="leave it out, or write the input as Parquet first",
        )  # fmt: skip


def _texts(spark: SparkSession, listing: Listing) -> Iterator[tuple[DataFrame, dict[str, str]]]:
    """Files of records alike, with `RECORD`; and what their parser makes: name to type, in order.

    Raises:
        ParameterError: a column has our name.
    """
    if listing.format == "csv":
        for group in csv_layout(listing, storage=storage_of(spark, listing)).groups:
            _refuse_name([name for name, _ in group.columns])
            schema = (*group.columns, (RECORD, "STRING"))
            for files in by_base(listing, group.files):
                yield load(spark, listing, files, schema=schema), dict(group.columns)
        return
    found = json_schema(spark, listing)
    if isinstance(found, StructType):
        fields = [field for field in found if field.name != RECORD]
        whole = StructType([*fields]).add(RECORD, "string")
        kinds = {field.name: field.dataType.simpleString() for field in fields}
    for files in by_base(listing, listing.files):
        if isinstance(found, StructType):
            yield load(spark, listing, files, schema=whole), kinds
        else:
            _refuse_name([name for name, _ in found])
            yield load(spark, listing, files, schema=(*found, (RECORD, "STRING"))), dict(found)


def _refuse_name(names: Sequence[str]) -> None:
    if RECORD in map(str.lower, names):
        expected, got = "another name, with --bad-rows reject", "the one that the text of a bad row has"
        raise ParameterError("column", RECORD, expected=expected, got=got)


def _readable_texts(spark: SparkSession, listing: Listing) -> Iterator[DataFrame]:
    folders = [name for name, _ in listing.partition_columns]
    for frame, kinds in _texts(spark, listing):
        declared = listing.declared_columns
        names = list(kinds) if declared is None else [name for name, _ in declared]
        yield frame.where(is_readable(list(kinds))).select(*map(named, names + folders))


def _marked_texts(spark: SparkSession, listing: Listing) -> Iterator[DataFrame]:
    kind = cast("Literal['csv', 'json']", listing.format)
    options = {name: value for name, value in listing.options.items() if name.lower() not in _OF_FILES}
    for frame, kinds in _texts(spark, listing):
        reason, columns = record_faults(kinds, file_format=kind, options=options)
        is_bad = is_unreadable(list(kinds))
        bad = {"reason": reason, "columns": columns, "raw": named(RECORD)}
        yield _marked(frame, listing, bad, is_bad)


def _marked(frame: DataFrame, listing: Listing, bad: Mapping[str, Column], is_bad: Column) -> DataFrame:
    """All rows, narrow; NULL but for the bad ones."""
    file = None if listing.format == "table" else frame.metadataColumn("_metadata")
    path = F.lit(None).cast("string")
    if file is not None:
        path = plain_path(file.getField("file_path"), local=listing.is_local)
    shown = {**bad, "file": path}
    columns = [F.when(is_bad, value).alias(name) for name, value in shown.items()]
    return frame.select(*columns, *place_of(file))


def _raw(spark: SparkSession, listing: Listing) -> list[DataFrame]:
    if listing.format == "table":
        return [read_table(spark, listing.request.paths[0])]
    if not listing.is_listed:
        paths = list(listing.request.paths)
        return [spark.read.format(listing.format).options(**listing.options).load(paths)]
    return load_columnar(spark, listing)


def _faults(frame: DataFrame, listing: Listing) -> dict[str, Column]:
    casts = {real: kind for _, real, kind in declared_pairs(frame, listing) if not is_nested(kind)}
    return unread_values(casts)


def _fitting(frame: DataFrame, listing: Listing) -> DataFrame:
    pairs = declared_pairs(frame, listing)
    columns = [
        (named(real) if is_nested(kind) else named(real).try_cast(kind)).alias(name)
        for name, real, kind in pairs
    ]
    fits = reduce(lambda left, right: left & right, (~fault for fault in _faults(frame, listing).values()))
    return frame.where(fits).select(*columns, *(named(name) for name, _ in listing.partition_columns))


def _marked_values(spark: SparkSession, listing: Listing) -> Iterator[DataFrame]:
    for frame in _raw(spark, listing):
        spoilt = spoilt_columns(_faults(frame, listing))
        raw = F.to_json(F.struct(*(named(real) for _, real, _ in declared_pairs(frame, listing))))
        bad = {"reason": F.lit("BAD_VALUE"), "columns": spoilt, "raw": raw}
        yield _marked(frame, listing, bad, spoilt.isNotNull())


def bad_row_summary(spark: SparkSession, files: Sequence[str], *, file_format: str) -> list[dict[str, Any]]:
    """What is in files of bad rows, by input and reason, with the places of the first few.

    Args:
        spark: The session.
        files: As written, with a row at least.
        file_format: Theirs.

    Plan:
        Two actions over the files, which hold at most a few rows for each reason.
    """
    paths = [f"file://{escape_glob(file)}" if is_local_path(file) else escape_glob(file) for file in files]
    multi_line = str(file_format == "csv").lower()  # a line of JSON is a row
    reader = spark.read.format(file_format).schema(BAD_ROWS)
    rows = reader.options(header="true", escape='"', multiLine=multi_line).load(paths)
    counts = rows.groupBy("input", "reason").count().orderBy("input", "reason").collect()
    order = Window.partitionBy("input", "reason").orderBy("file", "record", "columns")
    first = rows.withColumn("at", F.row_number().over(order)).where(F.col("at") <= _SHOWN)
    shown: dict[tuple[str, str], list[str]] = {}
    for row in first.orderBy("input", "reason", "at").collect():
        shown.setdefault((row["input"], row["reason"]), []).append(_example(row))
    return [
        {"input": name, "reason": reason, "rows": count, "examples": shown[name, reason]}
        for name, reason, count in counts
    ]


def _example(row: Row) -> str:
    """Where it is; not what it holds, which may be a secret."""
    number = f" record {row['record']:,}" if row["record"] is not None else ""
    columns = f" ({row['columns']})" if row["columns"] else ""
    return f"{row['file'] or 'a table'}{number}{columns}"


def first_bad(spark: SparkSession, listing: Listing) -> Row | None:
    """A row at which a strict run stops, of `BAD_ROWS`: the first of some file.

    Plan:
        An action that reads until it finds one.
    """
    found = read_bad(spark, replace(listing, request=replace(listing.request, bad_rows="reject")))
    return found[0].first()
