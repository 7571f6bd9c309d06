"""Aggregates with what Spark leaves open decided: the order of lists, ties, -0.0 beside 0.0, bytes."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, DoubleType, FloatType, StringType, StructType

from common.core.errors import ColumnTypeError
from common.transforms.aggregate_text import Call
from common.transforms.columns import is_orderable
from common.transforms.two_stage_calls import LISTS, kind_of, quantile_of, where

_BINARY_COLLATION = "UTF8_BINARY"
_BEST_OF = {"max_by": "max", "min_by": "min"}


def settled(call: Call, rows: DataFrame) -> str:
    """The call as SQL whose answer no partitioning changes.

    Lists and sets are sorted; a set holds NaN once. Among equally frequent values mode takes the smallest.
    Among rows of one order max_by takes the largest value, min_by the smallest. In all of these -0.0 is 0.0,
    as it is to `=` and GROUP BY.

    Args:
        call: What was asked.
        rows: What it is asked of: for the type of its value.

    Raises:
        ColumnTypeError: the values of a list, a set or mode have no order, or equal ones that differ.
    """
    kind = kind_of(call)
    if kind == "set":
        return f"sort_array(array_distinct(collect_set({value_of(call, rows)})))"
    if kind == "list" and call.function in LISTS:
        return f"sort_array(collect_list({value_of(call, rows)}))"
    if kind == "mode":
        value = value_of(call, rows)
        # Spark counts bytes by the place they are kept in, so that each is another value.
        is_binary = isinstance(_type_of(value, rows), BinaryType)
        return f"unhex(mode(hex({value}), true))" if is_binary else f"mode({value}, true)"
    found = quantile_of(call) if kind == "quantile" else None
    if found is not None and _holds_floats(_type_of(found[0], rows)):
        return quantile_on(call, canonical(where(found[0], call.condition), rows))
    if kind == "combined" and call.function in _BEST_OF and len(call.arguments) == 2:
        return _best_of(call, rows)
    return call.text


def value_of(call: Call, rows: DataFrame) -> str:
    """SQL of the call's value where its FILTER holds, with one form for equal values.

    Raises:
        ColumnTypeError: as `settled`.
    """
    value = where(call.arguments[0], call.condition)
    kind = _type_of(value, rows)
    expected, got = "values with an order", kind.simpleString()
    if not is_orderable(kind):
        hint = "an answer would depend on which row comes first; aggregate a part of it, or to_json(…)"
        raise ColumnTypeError("aggregate", call.text[:120], expected=expected, got=got, hint=hint)
    if _is_collated(kind):
        hint = f"which of two equal texts is kept depends on the order of rows; COLLATE {_BINARY_COLLATION}"
        hint += " tells them apart, lower(…) makes them one"
        raise ColumnTypeError("aggregate", call.text[:120], expected=expected, got=got, hint=hint)
    return _canonical(value, kind)


def canonical(value: str, rows: DataFrame) -> str:
    """The value with 0.0 for each -0.0 in it, at any depth."""
    return _canonical(value, _type_of(value, rows))


def quantile_on(call: Call, value: str) -> str:
    """The call on another value, which has the condition of its FILTER in it."""
    found = quantile_of(call)
    assert found is not None  # only calls that have quantiles come here
    if call.order:
        way = call.order[len(found[0]) :]
        return f"{call.function}({call.arguments[0]}) WITHIN GROUP (ORDER BY {value}{way})"
    return f"{call.function}({', '.join([value, *call.arguments[1:]])})"


def _best_of(call: Call, rows: DataFrame) -> str:
    value, order = call.arguments
    kind = _type_of(value, rows)
    if not is_orderable(kind):
        return call.text
    condition = f"({order}) IS NOT NULL" + (f" AND ({call.condition})" if call.condition else "")
    pair = f"named_struct('by', {order}, 'value', {_canonical(value, kind)})"
    return f"{_BEST_OF[call.function]}(CASE WHEN {condition} THEN {pair} END).value"


def _type_of(value: str, rows: DataFrame) -> DataType:
    return rows.select(F.expr(value)).schema[0].dataType


def _is_collated(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _is_collated(kind.elementType)
    if isinstance(kind, StructType):
        return any(_is_collated(field.dataType) for field in kind.fields)
    return isinstance(kind, StringType) and getattr(kind, "collation", _BINARY_COLLATION) != _BINARY_COLLATION


def _holds_floats(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _holds_floats(kind.elementType)
    if isinstance(kind, StructType):
        return any(_holds_floats(field.dataType) for field in kind.fields)
    return isinstance(kind, (FloatType, DoubleType))


def _canonical(value: str, kind: DataType, depth: int = 0) -> str:
    if not _holds_floats(kind):
        return value
    if isinstance(kind, ArrayType):
        item = f"item{depth}"
        return f"transform({value}, {item} -> {_canonical(item, kind.elementType, depth + 1)})"
    if isinstance(kind, StructType):
        fields = []
        for field in kind.fields:
            name = field.name.replace("`", "``")
            text = field.name.replace("\\", "\\\\").replace("'", "\\'")
            fields.append(f"'{text}', {_canonical(f'({value}).`{name}`', field.dataType, depth)}")
        return f"CASE WHEN ({value}) IS NOT NULL THEN named_struct({', '.join(fields)}) END"
    return f"(({value}) + {'0F' if isinstance(kind, FloatType) else '0D'})"  # -0.0 + 0.0 is 0.0
