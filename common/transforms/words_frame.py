"""What all counts of text rows share: the columns they read, and the sums they end in."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, VariantType

from common.core.errors import ColumnMissingError, ColumnTypeError, ParameterError
from common.transforms.columns import named

WORD, COUNT, DOCUMENTS = "word", "count", "documents"
TEXT, GROUP = "text", "group"


class TextFrame(NamedTuple):
    """Rows of `text` and, to count by, `group`; none of them NULL in `text`."""

    rows: DataFrame
    by: str | None
    group_type: DataType | None

    @property
    def keys(self) -> list[str]:
        """The column to count by, if there is one."""
        return [] if self.by is None else [GROUP]


def text_frame(df: DataFrame, column: str, by: str | None) -> TextFrame:
    """The text, and the column to count by, under fixed names.

    Raises:
        ColumnMissingError: no column of that name.
        ColumnTypeError: the text column is no string, or `by` is of a type without an order.
        ParameterError: `by` has the name of a column of the result.
    """
    missing = [name for name in (column, by) if name is not None and name not in df.columns]
    if missing:
        raise ColumnMissingError.among(missing, df.columns, where="the input")
    kind = df.schema[column].dataType
    if not isinstance(kind, StringType):
        raise ColumnTypeError("column", column, expected="a string", got=kind.simpleString())
    own = (WORD, COUNT, DOCUMENTS)
    if by is not None and by.lower() in own:
        hint = "rename it before"
        expected = f"another name than {', '.join(own)}, which the result has"
        raise ParameterError("column", by, expected=expected, got=by, hint=hint)
    if by is not None and isinstance(df.schema[by].dataType, VariantType):
        expected, hint = "values that can be compared", "cast it before"
        raise ColumnTypeError("column", by, expected=expected, got="variant", hint=hint)
    keys = [] if by is None else [named(by).alias(GROUP)]
    # A collation would make one word of several: the cast leaves it out, and costs nothing without one.
    rows = df.select(named(column).cast(StringType()).alias(TEXT), *keys).where(F.col(TEXT).isNotNull())
    return TextFrame(rows, by, None if by is None else df.schema[by].dataType)


def summed(counts: DataFrame, text: TextFrame, *, documents: bool) -> DataFrame:
    """Partial counts, `[group,] word, count [, documents]`, summed and with their names."""
    sums = [F.sum(name).alias(name) for name in (COUNT, *([DOCUMENTS] if documents else []))]
    return with_names(counts.groupBy(*text.keys, WORD).agg(*sums), text, documents=documents)


def with_names(counts: DataFrame, text: TextFrame, *, documents: bool) -> DataFrame:
    """The columns of the result, in their order."""
    first: list[Column] = [] if text.by is None else [F.col(GROUP).alias(text.by)]
    return counts.select(*first, WORD, COUNT, *([DOCUMENTS] if documents else []))
