"""The only writes: rows into a folder, in one of the formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, NullType, StructType

from common.core.errors import ColumnTypeError
from common.engine.storage import engine_path
from common.transforms.columns import ordered_by

OutputFormat = Literal["parquet", "orc", "csv", "json"]

# Options that make a written file readable again as the same values.
_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",  # Spark's own default drops the microseconds
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_OPTIONS = {
    "csv": {"header": "true", "escape": '"', "emptyValue": '""', "nullValue": "", **_TIMES},
    "json": {"ignoreNullFields": "false", **_TIMES},
}


def check_writable(df: DataFrame, *, file_format: OutputFormat) -> None:
    """Refuse, before anything runs, columns that the format cannot hold.

    Raises:
        ColumnTypeError: naming them.
    """
    nested = (ArrayType, MapType, StructType)
    refused = nested if file_format == "csv" else (NullType,) if file_format in ("parquet", "orc") else ()
    bad = [field for field in df.schema.fields if isinstance(field.dataType, refused)]
    if bad:
        kinds = ", ".join(f"`{field.name}` is {field.dataType.simpleString()}" for field in bad)
        expected = f"columns that {file_format} can hold"
        hint = "leave them out, cast them, or write another format"
        names = ", ".join(field.name for field in bad)
        raise ColumnTypeError("column", names, expected=expected, got=kinds, hint=hint)


def write_rows(
    df: DataFrame,
    folder: str,
    *,
    file_format: OutputFormat,
    file_count: int | None = None,
    order: Sequence[str] = (),
    descending: Sequence[str] = (),
) -> int:
    """Write the rows into a new folder and return how many there were.

    Args:
        df: Rows to write.
        folder: Absolute local path or URL of a folder that does not exist yet.
        file_format: parquet, orc, csv (with a header) or json (one object a line).
        file_count: Number of files; None leaves it to the plan.
        order: Columns by which the rows of each file are sorted.
        descending: Those of them whose largest value comes first.

    Plan:
        One action. `file_count` adds a shuffle when it is more than one, and puts all rows into one task
        when it is one.
    """
    rows = df
    if file_count == 1:
        rows = rows.coalesce(1)
    elif file_count is not None:
        rows = rows.repartition(file_count)
    if order:
        rows = rows.sortWithinPartitions(*ordered_by(order, descending))
    # Counted by the tasks that write: those before a shuffle run again when it is lost, and count twice then;
    # and where Spark sees that they have no rows it leaves them out, and the count with them.
    observation = Observation()
    rows = rows.observe(observation, F.count(F.lit(1)).alias("rows"))
    writer = rows.write.format(file_format).options(**_OPTIONS.get(file_format, {})).mode("error")
    writer.save(engine_path(folder))
    return int(observation.get["rows"])
