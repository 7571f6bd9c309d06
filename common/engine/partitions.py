"""Columns that folder names hold (`day=2013-06-01`): their values and their types, never guessed by Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date

from common.core.errors import FormatError, UsageError, ValueMalformedError

Partition = tuple[tuple[str, str | None], ...]

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_INTEGER_LIKE = re.compile(r"[+-]?[0-9]+")
_DATE_LIKE = re.compile(r"[0-9]{4}(-[0-9]{1,2}){0,2}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_INTEGER_BITS = {
    "tinyint": 8, "byte": 8, "smallint": 16, "short": 16, "int": 32, "integer": 32, "bigint": 64, "long": 64,
}  # fmt: skip
_JSON_NAMES = {
    "tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long", "real": "float",
    "dec": "decimal", "numeric": "decimal",
}  # fmt: skip
_TYPES = frozenset({
    "string", "byte", "short", "integer", "long", "float", "double", "boolean", "date", "timestamp",
    "timestamp_ntz", "decimal",
})  # fmt: skip


def parse_folder(name: str) -> tuple[str, str | None] | None:
    """The column and value of a partition folder's name; None for any other folder.

    Escapes are single characters, as Spark and Hive write them.

    Raises:
        FormatError: the name or the value is empty.

    >>> parse_folder("carrier=A%2FB"), parse_folder("x=__HIVE_DEFAULT_PARTITION__"), parse_folder("june")
    (('carrier', 'A/B'), ('x', None), None)
    """
    column, sign, value = name.partition("=")
    if not sign:
        return None
    if not column or not value:
        raise FormatError("folder", name, expected="NAME=VALUE", got="an empty name or value")
    return _unescaped(column), None if value == HIVE_NULL else _unescaped(value)


def folders_between(base: str, *, folder: str) -> Partition:
    """The unbroken run of partition folders that ends at `folder`, not reaching above `base`.

    >>> folders_between("/data", folder="/data/x/year=2013/day=5")
    (('year', '2013'), ('day', '5'))
    """
    below = folder[len(base.rstrip("/")) :] if folder.startswith(base) else ""
    run: list[tuple[str, str | None]] = []
    for name in reversed([part for part in below.split("/") if part]):
        parsed = parse_folder(name)
        if parsed is None:
            break
        run.append(parsed)
    return tuple(reversed(run))


def guess_type(values: Iterable[str | None]) -> str:
    """DATE when all values are ISO dates, BIGINT when all are canonical integers, else STRING.

    >>> guess_type(["2013-01-01", None]), guess_type(["7", "-12"]), guess_type(["07"]), guess_type([None])
    ('DATE', 'BIGINT', 'STRING', 'STRING')
    """
    known = {value for value in values if value is not None}
    if known and all(_is_date(value) for value in known):
        return "DATE"
    if known and all(_is_integer(value, bits=64) for value in known):
        return "BIGINT"
    return "STRING"


def check_values(column: str, *, kind: str, partitions: Sequence[Partition], paths: Sequence[str]) -> None:
    """Check that the folders' values fit a declared integer or date type, as Spark would cast them.

    Raises:
        ValueMalformedError: naming the first file below a folder whose value does not fit.
    """
    bits = _INTEGER_BITS.get(kind.lower())
    for partition, path in zip(partitions, paths, strict=True):
        value = dict(partition)[column]
        if value is None:
            continue
        if bits:
            fits = bool(_INTEGER_LIKE.fullmatch(value)) and _in_range(int(value), bits=bits)
        else:
            fits = kind.lower() != "date" or bool(_DATE_LIKE.fullmatch(value))
        if not fits:
            raise ValueMalformedError(
                "partition column", column, expected=f"{kind} values", got=f"`{value}` in `{path}`"
            )


def json_type(column: str, *, kind: str) -> str:
    """A DDL type in the spelling that StructType.add takes.

    Raises:
        UsageError: a type that no folder name can hold.

    >>> json_type("n", kind="BIGINT"), json_type("d", kind="DECIMAL(10, 2)")
    ('long', 'decimal(10,2)')
    """
    name, bracket, rest = kind.lower().replace(" ", "").partition("(")
    name = _JSON_NAMES.get(name, name)
    if name in ("char", "varchar"):
        return "string"
    if name not in _TYPES:
        raise UsageError("column", column, expected="a simple type, since folder names hold it", got=kind)
    if name == "decimal" and not bracket:
        return "decimal(10,0)"
    return f"{name}{bracket}{rest}"


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def _is_date(value: str) -> bool:
    if not _DATE.fullmatch(value):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_integer(value: str, *, bits: int) -> bool:
    return bool(_INTEGER.fullmatch(value)) and _in_range(int(value), bits=bits)


def _in_range(number: int, *, bits: int) -> bool:
    return -(1 << (bits - 1)) <= number < 1 << (bits - 1)
