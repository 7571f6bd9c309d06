"""An input in two parts: the rows that can be read as declared, and the others with the reason.

A row is bad when a strict run, which reads all columns, would stop at it: the readers are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal, cast

from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from common.core.errors import ParameterError, UsageError
from common.engine.counters import Counters
from common.engine.csv_layout import csv_layout
from common.engine.ddl import render_columns
from common.engine.listing import Listing
from common.engine.storage import engine_path
from common.engine.tables import (
    by_base,
    declared_pairs,
    escape_glob,
    is_nested,
    json_schema,
    load,
    load_values,
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


@dataclass(frozen=True)
class Sifted:
    """An input in two parts, which come of one look at its files.

    Attributes:
        readable: What `read_input` reads, without the rows at which it would stop.
        marked: All rows, of files alike, as `located` takes them; none where no row can be bad.
        input_name: Which input it is.
    """

    readable: DataFrame
    marked: tuple[DataFrame, ...]
    input_name: str

    def bad(self) -> tuple[DataFrame, list[Counters]]:
        """The rows that `readable` leaves out, and counters of all records on the way.

        Returns:
            `BAD_ROWS`, and counters that hold `records` once the frame was run whole.

        Plan:
            Lazy; no shuffle. All rows go through Python workers for their numbers, two narrow columns each.
        """
        if not self.marked:
            return self.readable.sparkSession.createDataFrame([], BAD_ROWS), []
        counters = [Counters(RECORDS) for _ in self.marked]
        frames = [
            located(each.attach(rows), input_name=self.input_name)
            for each, rows in zip(counters, self.marked, strict=True)
        ]
        return reduce(DataFrame.unionByName, frames), counters


def sift(spark: SparkSession, listing: Listing) -> Sifted:
    """Read one input in two parts.

    Args:
        spark: The session.
        listing: What was found; its request rejects bad rows.

    Raises:
        UsageError: CSV or JSON files that only the server can look at.  Else as `read_input`.

    Plan:
        Lazy, as `read_input`; every column is parsed whichever are asked for.
    """
    _refuse_unlisted(listing)
    if not can_be_bad(listing) or (listing.is_listed and not listing.files):
        return Sifted(read_input(spark, listing), (), listing.request.name)
    parts = (_sifted_texts if listing.format in _TEXTS else _sifted_values)(spark, listing)
    readable, marked = zip(*parts, strict=True)
    return Sifted(reduce(DataFrame.unionByName, readable), marked, listing.request.name)


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


def _sifted_texts(spark: SparkSession, listing: Listing) -> Iterator[tuple[DataFrame, DataFrame]]:
    kind = cast("Literal['csv', 'json']", listing.format)
    options = {name: value for name, value in listing.options.items() if name.lower() not in _OF_FILES}
    folders = [name for name, _ in listing.partition_columns]
    declared = listing.declared_columns
    for frame, kinds in _texts(spark, listing):
        names = list(kinds) if declared is None else [name for name, _ in declared]
        strings = render_columns([(name, "STRING") for name in (*kinds, RECORD)])
        reason, columns = record_faults(kinds, file_format=kind, strings=strings, options=options)
        bad = {"reason": reason, "columns": columns, "raw": named(RECORD)}
        readable = frame.where(is_readable(list(kinds))).select(*map(named, names + folders))
        yield readable, _marked(frame, listing, bad, is_unreadable(list(kinds)))


def _marked(frame: DataFrame, listing: Listing, bad: Mapping[str, Column], is_bad: Column) -> DataFrame:
    """All rows, narrow; NULL but for the bad ones."""
    file = None if listing.format == "table" else frame.metadataColumn("_metadata")
    path = F.lit(None).cast("string")
    if file is not None:
        path = plain_path(file.getField("file_path"), local=listing.is_local)
    shown = {**bad, "file": path}
    columns = [F.when(is_bad, value).alias(name) for name, value in shown.items()]
    return frame.select(*columns, *place_of(file))


def _sifted_values(spark: SparkSession, listing: Listing) -> Iterator[tuple[DataFrame, DataFrame]]:
    for frame in load_values(spark, listing):
        pairs = declared_pairs(frame, listing)
        faults = unread_values({real: kind for _, real, kind in pairs if not is_nested(kind)})
        fits = reduce(lambda left, right: left & right, (~fault for fault in faults.values()))
        columns = [
            (named(real) if is_nested(kind) else named(real).try_cast(kind)).alias(name)
            for name, real, kind in pairs
        ]
        spoilt = spoilt_columns(faults)
        raw = F.to_json(F.struct(*(named(real) for _, real, _ in pairs)))
        bad = {"reason": F.lit("BAD_VALUE"), "columns": spoilt, "raw": raw}
        readable = frame.where(fits).select(*columns, *(named(name) for name, _ in listing.partition_columns))
        yield readable, _marked(frame, listing, bad, spoilt.isNotNull())


def bad_row_summary(spark: SparkSession, files: Sequence[str], *, file_format: str) -> list[dict[str, Any]]:
    """What is in files of bad rows, by input and reason, with the places of the first few.

    Args:
        spark: The session.
        files: As written, with a row at least.
        file_format: Theirs.

    Plan:
        An action over the files, which holds at most a few rows for each reason.
    """
    paths = [engine_path(escape_glob(file)) for file in files]
    multi_line = str(file_format == "csv").lower()  # a line of JSON is a row
    reader = spark.read.format(file_format).schema(BAD_ROWS)
    rows = reader.options(header="true", escape='"', multiLine=multi_line).load(paths)
    alike = Window.partitionBy("input", "reason")
    placed = rows.select(
        "*",
        F.count(F.lit(1)).over(alike).alias("rows"),
        F.row_number().over(alike.orderBy("file", "record", "columns")).alias("at"),
    )
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in placed.where(F.col("at") <= _SHOWN).orderBy("input", "reason", "at").collect():
        named_so = {name: row[name] for name in ("input", "reason", "rows")}
        found.setdefault((row["input"], row["reason"]), {**named_so, "examples": []})["examples"].append(
            _example(row)
        )
    return list(found.values())


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
    rows, _ = sift(spark, replace(listing, request=replace(listing.request, bad_rows="reject"))).bad()
    return rows.first()
