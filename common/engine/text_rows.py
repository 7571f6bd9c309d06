"""The lines of text files as rows, each with its file's path: where workers cannot open the files."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from common.engine.listing import Listing
from common.engine.tables import by_base, load
from common.transforms.columns import named, unused

_TEXT = "line of text"  # not Spark's `value`, which a partition folder may be called


def read_lines(spark: SparkSession, listing: Listing, *, file_column: str) -> DataFrame:
    """The lines of an input of plain text.

    Args:
        spark: The session.
        listing: What was found.
        file_column: Name of the column that holds the path of a line's file.

    Returns:
        The line: string; the file column; the partition columns, without one of the file column's name. A
        line ends at \\n, \\r\\n or \\r. Its bytes are those of the file, UTF-8 or not.

    Plan:
        Lazy.
    """
    text = unused(_TEXT, [name for name, _ in listing.partition_columns])
    if not listing.is_listed:
        reader = spark.read.format("text").options(**listing.options).schema(f"`{text}` STRING")
        lines = reader.load(list(listing.request.paths))
        return _with_file(lines, file_column, local=False)
    if not listing.files:
        return spark.createDataFrame([], f"`{text}` STRING, `{file_column}` STRING")
    schema = ((text, "STRING"),)
    frames = [load(spark, listing, files, schema=schema) for files in by_base(listing, listing.files)]
    return reduce(
        DataFrame.unionByName, [_with_file(frame, file_column, local=listing.is_local) for frame in frames]
    )


def _with_file(lines: DataFrame, name: str, *, local: bool) -> DataFrame:
    path = plain_path(F.col("_metadata.file_path"), local=local)
    text, *partitions = lines.columns
    others = [named(column) for column in partitions if column.lower() != name.lower()]
    return lines.select(named(text), path.alias(name), *others)


def plain_path(url: Column, *, local: bool) -> Column:
    """A path as a person writes it, from the URL that Spark gives; a plus sign is one."""
    decoded = F.url_decode(F.replace(url, F.lit("+"), F.lit("%2B")))
    return F.regexp_replace(decoded, "^file:/+", "/") if local else decoded
