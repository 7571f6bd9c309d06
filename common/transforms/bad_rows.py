"""Rows that cannot be read as declared: told from the others by one predicate over all columns, and located.

Which columns are read must not decide which rows are bad (SPARK-28058), so every column takes part in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from common.transforms.columns import named

if TYPE_CHECKING:
    import pyarrow as pa

RECORD: Final = "__saltpan_record"  # the text of a record that a reader could not read; else NULL
BAD_ROWS: Final = "input STRING, reason STRING, columns STRING, file STRING, record BIGINT, raw STRING"
"""`reason`: MALFORMED (no record of the format, or too few or many fields) or BAD_VALUE, then with the
`columns` whose values are wrong where that is known. `record`: its number in the file, the first after a
header is 1; NULL where it is not known."""
_LEAST_LONG = -(2**63)
_PLACE, _IS_FROM_START = "__place", "__is_from_start"


def is_readable(columns: Sequence[str]) -> Column:
    """True for the rows of which a permissive reader could read every value.

    Args:
        columns: All that the reader parses; at least one.
    """
    return named(RECORD).isNull() & all_read(columns)


def is_unreadable(columns: Sequence[str]) -> Column:
    """True for the others."""
    return named(RECORD).isNotNull() & all_read(columns)


def all_read(columns: Sequence[str]) -> Column:
    """True for each row, which the optimizer cannot see: it has a reader check these columns too.

    A reader checks the values of the columns that are asked for, and no others.

    Args:
        columns: At least one.
    """
    return F.xxhash64(*(named(name).isNull() for name in columns)) >= F.lit(_LEAST_LONG)


def unread_values(columns: Mapping[str, str]) -> dict[str, Column]:
    """For each column, the condition that its value does not fit its declared type (DDL).

    Args:
        columns: Name to type.
    """
    return {
        name: named(name).isNotNull() & named(name).try_cast(kind).isNull() for name, kind in columns.items()
    }


def spoilt_columns(faults: Mapping[str, Column]) -> Column:
    """The names, by comma, of the columns whose condition holds; NULL when it holds for none."""
    said = F.concat_ws(", ", *(F.when(fault, F.lit(name)) for name, fault in faults.items()))
    return F.nullif(said, F.lit(""))


def record_faults(
    columns: Mapping[str, str],
    *,
    file_format: Literal["csv", "json"],
    strings: str,
    options: Mapping[str, str],
) -> tuple[Column, Column]:
    """The reason and the columns of an unreadable record, by reading its text once more, all as strings.

    Args:
        columns: Name to declared type, in the order of the file.
        file_format: Of the text in `RECORD`.
        strings: The same columns and `RECORD`, all STRING, as DDL.
        options: The reader's.
    """
    parse = {"csv": F.from_csv, "json": F.from_json}[file_format]
    read = parse(named(RECORD), strings, {**options, "columnNameOfCorruptRecord": RECORD})
    malformed = read.getField(RECORD).isNotNull() | read.isNull()
    faults = {
        name: read.getField(name).isNotNull() & named(name).isNull()
        for name, kind in columns.items()
        if kind.upper() != "STRING"
    }
    spoilt = F.when(~malformed, spoilt_columns(faults)) if faults else F.lit(None).cast("string")
    return F.when(malformed, F.lit("MALFORMED")).otherwise(F.lit("BAD_VALUE")), spoilt


def located(rows: DataFrame, *, input_name: str) -> DataFrame:
    """The bad ones among all rows of some files, each with its number in its file.

    Args:
        rows: All rows as they were read: `reason, columns, file, raw`, NULL but for bad rows, and
            `__place: bigint`, equal for the rows of one part of a file, `__is_from_start: boolean`, true in a
            part from which records can be numbered.
        input_name: What the first column shall hold.

    Returns:
        `BAD_ROWS`.

    Plan:
        Lazy; no shuffle. All rows go through a Python worker, two narrow columns of each.
    """
    schema = BAD_ROWS.removeprefix("input STRING, ")
    found = rows.select("reason", "columns", "file", "raw", _PLACE, _IS_FROM_START)
    return found.mapInArrow(numbered, schema).select(F.lit(input_name).alias("input"), "*")


def place_of(metadata: Column | None) -> list[Column]:
    """`__place` and `__is_from_start`, from the metadata column of a file; of a table nothing is known."""
    if metadata is None:
        return [F.lit(0).cast("bigint").alias(_PLACE), F.lit(False).alias(_IS_FROM_START)]
    start = metadata.getField("file_block_start")
    place = F.xxhash64(metadata.getField("file_path"), start).alias(_PLACE)
    return [place, (start == 0).alias(_IS_FROM_START)]


def numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows with a `raw` among all of them, with their numbers; rows of one place follow each other.

    Args:
        batches: `reason, columns, file, raw: string, __place: int64, __is_from_start: bool`.

    Returns:
        `reason, columns, file: string, record: int64, raw: string`.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    place: int | None = None
    seen = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        places = batch.column(_PLACE).to_numpy()
        rows = np.arange(batch.num_rows)
        begins = np.append(True, places[1:] != places[:-1])
        records = rows - np.maximum.accumulate(np.where(begins, rows, 0)) + 1
        if places[0] == place:
            records[np.logical_and.accumulate(places == place)] += seen
        place, seen = int(places[-1]), int(records[-1])
        numbers = pc.if_else(batch.column(_IS_FROM_START), pa.array(records, pa.int64()), None)
        names = ["reason", "columns", "file", "record", "raw"]
        arrays = [numbers if name == "record" else batch.column(name) for name in names]
        yield pa.record_batch(arrays, names).filter(pc.is_valid(batch.column("raw")))
