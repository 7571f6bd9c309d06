"""Word counts of text files that the workers read themselves: only (word, count) reaches the JVM."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from common.engine.formats import compression_of
from common.engine.listing import Listing
from common.engine.text_encodings import is_splittable
from common.engine.text_modules import ship_tokenizer
from common.engine.text_ranges import TextFile, tasks_of
from common.engine.text_work import Tasks, Work, counting
from common.transforms.columns import named
from common.transforms.words_packed import PACKED, merged_counts
from common.transforms.words_rules import OnDecodeError, WordRules


@dataclass(frozen=True)
class TextRanges:
    """The parts of text files, by the task that reads them.

    Attributes:
        spark: The session that will.
        tasks: What each one reads.
        encoding: Of the files.
        group: (name, type) of the partition column that each file's `group` is the value of.
    """

    spark: SparkSession
    tasks: Tasks
    encoding: str = "utf-8"
    group: tuple[str, str] | None = None


def text_ranges(
    spark: SparkSession, listing: Listing, *, split_bytes: int, group: str | None = None
) -> TextRanges:
    """Divide the files of an input of plain text among tasks.

    Args:
        spark: The session whose workers open the files.
        listing: Local files.
        split_bytes: About what a task reads.
        group: A partition column, whose value goes with each file.
    """
    encoding = listing.request.encoding or "utf-8"
    files = [
        TextFile(file.path, file.size_bytes, compression_of(file.path), dict(file.partition).get(group or ""))
        for file in listing.files
    ]
    tasks = tasks_of(files, split_bytes=split_bytes, splittable=is_splittable(encoding))
    kinds = dict(listing.partition_columns)
    return TextRanges(spark, tasks, encoding, (group, kinds[group]) if group else None)


def count_ranges(
    ranges: TextRanges,
    rules: WordRules,
    *,
    file_column: str | None = None,
    on_decode_error: OnDecodeError = "fail",
    buckets: int | None = None,
) -> DataFrame:
    """Count the words of text files.

    Args:
        ranges: What each task reads.
        rules: What a word is.
        file_column: Also by file, whose path is in a column of this name.
        on_decode_error: With "replace" a row of which the word is NULL holds the number of replacements.
        buckets: Of words, whose counts workers merge, one bucket at a time; None leaves all sums to Spark.
            Only where all files are counted together.

    Returns:
        `[file,] [group,] word: string, count: bigint`. Row order is undefined.

    Raises:
        ValueMalformedError: (when it runs) bytes that are no text of the encoding, by file and offset.

    Plan:
        Lazy. A task reads its ranges block by block and sums their counts as far as a bounded dictionary
        can, so that what it holds is one block and up to 32 MiB of counts; one shuffle, by bucket or by word
        after a partial sum. Guidelines D5, D6.
    """
    ship_tokenizer(ranges.spark, rules)
    group = ranges.group[0] if ranges.group else None
    keys = [name for name in (file_column, group) if name is not None]
    work = Work(
        ranges.tasks,
        rules,
        ranges.encoding,
        on_decode_error,
        names=(*keys, "word", "count"),
        by_file=file_column is not None,
        by_group=group is not None,
        buckets=None if keys else buckets,
    )
    numbers = ranges.spark.range(0, len(ranges.tasks), 1, max(1, len(ranges.tasks)))
    if work.buckets is not None:
        return merged_counts(numbers.mapInArrow(counting(work), PACKED))
    fields = [StructField(name, StringType()) for name in (*keys, "word")]
    counts = numbers.mapInArrow(counting(work), StructType([*fields, StructField("count", LongType())]))
    if ranges.group:
        name, kind = ranges.group
        counts = counts.withColumn(name, named(name).cast(kind))
    return counts.groupBy(*map(named, (*keys, "word"))).agg(F.sum("count").alias("count"))
