"""The types of a Parquet file's columns as Spark reads them, told from its footer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

_PHYSICAL = {
    "BOOLEAN": "boolean", "INT32": "int", "INT64": "bigint", "INT96": "timestamp", "FLOAT": "float",
    "DOUBLE": "double", "BYTE_ARRAY": "binary", "FIXED_LEN_BYTE_ARRAY": "binary",
}  # fmt: skip
_LOGICAL = {"string": "string", "enum": "string", "json": "string", "date": "date"}
_INTEGERS = {
    (8, "true"): "tinyint", (16, "true"): "smallint", (32, "true"): "int", (64, "true"): "bigint",
    (8, "false"): "smallint", (16, "false"): "int", (32, "false"): "bigint", (64, "false"): "decimal(20,0)",
}  # fmt: skip
_INT = re.compile(r"int\(bitwidth=(\d+), issigned=(\w+)\)")
_DECIMAL = re.compile(r"decimal\(precision=(\d+), scale=(-?\d+)\)")


def parquet_columns(metadata: FileMetaData) -> tuple[tuple[str, str], ...]:
    """(name, type) of the columns in the file's order; a nested column's type lists its leaves.

    A type that Spark refuses is "unreadable …".
    """
    schema: Any = metadata.schema
    leaves = [schema.column(position) for position in range(len(schema))]
    columns: list[tuple[str, str]] = []
    nested: dict[str, list[str]] = {}
    names: list[str] = []
    for leaf in leaves:
        kind = leaf_type(leaf.physical_type, logical=str(leaf.logical_type))
        if leaf.path == leaf.name:  # of a nested column's leaf, the path is longer than the name
            columns.append((leaf.name, kind))
            continue
        names = names or sorted(schema.to_arrow_schema().names, key=len, reverse=True)
        top = next(name for name in names if leaf.path.startswith(f"{name}."))
        if top not in nested:
            columns.append((top, ""))
        nested.setdefault(top, []).append(f"{leaf.path[len(top) + 1 :]}: {kind}")
    return tuple((name, kind or _group(nested[name])) for name, kind in columns)


def leaf_type(physical: str, *, logical: str) -> str:
    """The Spark type of one leaf.

    >>> leaf_type("INT64", logical="Timestamp(isAdjustedToUTC=true, timeUnit=microseconds)")
    'timestamp'
    >>> leaf_type("BYTE_ARRAY", logical="String"), leaf_type("INT32", logical="None")
    ('string', 'int')
    """
    told = logical.lower()
    if told.startswith("timestamp"):
        return _timestamp(told)
    if told.startswith("time("):
        return "unreadable times of day"
    if told in ("uuid", "float16", "interval"):
        return f"unreadable {told}"
    if found := _INT.match(told):
        return _INTEGERS.get((int(found[1]), found[2]), physical.lower())
    if found := _DECIMAL.match(told):
        return f"decimal({found[1]},{found[2]})"
    return _LOGICAL.get(told.partition("(")[0]) or _PHYSICAL.get(physical, physical.lower())


def _timestamp(told: str) -> str:
    if "timeunit=nanoseconds" in told:
        return "unreadable timestamps in nanoseconds"
    return "timestamp" if "isadjustedtoutc=true" in told else "timestamp_ntz"


def _group(leaves: list[str]) -> str:
    unreadable = next((leaf for leaf in leaves if ": unreadable" in leaf), None)
    if unreadable is not None:
        return "unreadable " + unreadable.split(": unreadable ", 1)[1]
    return f"struct<{', '.join(sorted(leaves))}>"
