"""Rows for people and for pipes: all when there are few, else the first ones and the count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, TimestampType

from common.core import console
from common.runs.job import Display, Job
from common.settings.job import JobSettings
from common.transforms.columns import named, ordered_by, unordered

ALL_UP_TO_ROWS = 100
ELSE_FIRST_ROWS = 20


def displayed(job: Job[Any], settings: JobSettings, answer: DataFrame) -> Display:
    """How the job wants its rows shown, less the order of columns that have none (maps, for one)."""
    display = job.display(settings, answer.columns)
    without = unordered(answer, names=display.order)
    return replace(display, order=tuple(name for name in display.order if name not in without))


def present(df: DataFrame, *, style: Literal["table", "csv", "json"], display: Display) -> int:
    """Print the rows to stdout and return how many there are.

    Plan:
        One action that brings at most 101 rows to the driver; a second one counts when there are more.
    """
    ordered = df.orderBy(*ordered_by(display.order, display.descending)) if display.order else df
    ordered = ordered.select(*(_shown(field) for field in df.schema.fields))
    head = [tuple(row) for row in ordered.limit(ALL_UP_TO_ROWS + 1).collect()]
    cut = len(head) > ALL_UP_TO_ROWS
    rows = head[:ELSE_FIRST_ROWS] if cut else head
    count = df.count() if cut else len(head)
    caption = f"the first {len(rows)} of {count:,} rows; --output writes all" if cut else None
    if style == "table":
        console.print_table(df.columns, rows, measures=display.measures, caption=caption)
    else:
        printer = console.print_csv if style == "csv" else console.print_json
        printer(df.columns, rows)
        if caption:
            console.say(caption)
    return count


def _shown(field: StructField) -> Column:
    """Instants as text in the session's zone: collected, they would be in that of this machine."""
    column = named(field.name)
    if not isinstance(field.dataType, TimestampType):
        return column
    return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX").alias(field.name)
