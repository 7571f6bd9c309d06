"""Columns by the names that users type, and what their types allow."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from common.core.errors import ColumnMissingError, ParameterError

# Types that Spark cannot compare with <. By name, because some exist only in newer releases.
_UNORDERED = frozenset({"map", "variant", "interval", "calendarinterval", "geometry", "geography"})


def named(name: str) -> Column:
    """The column of exactly this name; dots, commas and quotes in it are characters."""
    return F.col("`" + name.replace("`", "``") + "`")


def ordered_by(names: Sequence[str], descending: Sequence[str] = ()) -> list[Column]:
    """The columns of a sort, NULL last; those named in `descending` downwards."""
    columns = ((named(name), name in descending) for name in names)
    return [column.desc_nulls_last() if down else column.asc_nulls_last() for column, down in columns]


def resolve(names: Sequence[str], *, available: Sequence[str], where: str) -> tuple[str, ...]:
    """The real names of columns that were typed: exact first, else the only one that differs in case.

    Args:
        names: As typed.
        available: The columns there are.
        where: What has them, for the error ("the input", "the groups").

    Raises:
        ColumnMissingError: a name is not there; all missing ones are listed with the nearest names.
        ParameterError: two of the names are one column.
    """
    found = {name: match(name, available=available) for name in names}
    missing = [name for name, real in found.items() if real is None]
    if missing:
        raise ColumnMissingError.among(missing, available, where=where)
    real = tuple(name for name in found.values() if name is not None)
    if len(set(real)) < len(real):
        expected, got = "each column once", ", ".join(names)
        raise ParameterError("columns", got, expected=expected, got="one column in two spellings")
    return real


def match(name: str, *, available: Sequence[str]) -> str | None:
    """The column of this name: exact, or else the only one that differs in case; None when there is none."""
    if name in available:
        return name
    similar = [candidate for candidate in available if candidate.lower() == name.lower()]
    return similar[0] if len(similar) == 1 else None


def unused(name: str, taken: Sequence[str]) -> str:
    """The name, with underscores before it while another column has it.

    >>> unused("Part", ["id", "part", "_part"])
    '__Part'
    """
    lower = {other.lower() for other in taken}
    while name.lower() in lower:
        name = f"_{name}"
    return name


def unordered(df: DataFrame, *, names: Sequence[str]) -> tuple[str, ...]:
    """Those of `names` whose type has no order (maps, variants, and what contains them)."""
    return tuple(name for name in names if not is_orderable(df.schema[name].dataType))


def is_orderable(kind: DataType) -> bool:
    """True when Spark can sort by values of this type.

    >>> from pyspark.sql.types import ArrayType, IntegerType, MapType, StringType
    >>> is_orderable(ArrayType(IntegerType())), is_orderable(ArrayType(MapType(StringType(), StringType())))
    (True, False)
    """
    if isinstance(kind, ArrayType):
        return is_orderable(kind.elementType)
    if isinstance(kind, StructType):
        return all(is_orderable(field.dataType) for field in kind.fields)
    return not isinstance(kind, MapType) and kind.typeName() not in _UNORDERED
