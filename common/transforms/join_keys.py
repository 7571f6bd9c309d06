"""Join keys: one type on both sides, and one hash for all keys that a join takes for equal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from common.core.errors import ColumnTypeError
from common.transforms.columns import named

_MAX_DIGITS = 38
# Integers by width, and the decimal digits that each needs.
_INTEGERS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}
# Whole numbers that a float of so many bits holds exactly.
_EXACT_AS = {FloatType: (ByteType, ShortType), DoubleType: (ByteType, ShortType, IntegerType, FloatType)}
_FROM_TEXT = (*_INTEGERS, DecimalType, DoubleType, FloatType, DateType, TimestampType, BooleanType)
_SIMPLE = (*_FROM_TEXT, TimestampNTZType)
_TEXT_SCALE = 18


def common_type(left: DataType, right: DataType, *, names: tuple[str, str]) -> DataType:
    """The type in which two keys are compared: one that holds every value of both exactly.

    Spark itself would compare a long with a text, or a long with a double, as doubles, which takes different
    keys for equal ones (SPARK-29274). Text against another type is read as that type; ANSI mode names the
    text that is none.

    Args:
        left: Type of the left key.
        right: Type of the right key.
        names: Of both, for the error.

    Raises:
        ColumnTypeError: no such type.

    >>> from pyspark.sql.types import *
    >>> common_type(IntegerType(), LongType(), names=("a", "b")).simpleString()
    'bigint'
    >>> common_type(StringType(), DecimalType(20, 0), names=("a", "b")).simpleString()
    'decimal(38,18)'
    """
    if left == right:
        return left
    found = _common(left, right) or _common(right, left)
    if found is None:
        raise ColumnTypeError(
            "join key",
            "=".join(dict.fromkeys(names)),
            expected="types that hold the same values exactly",
            got=f"{left.simpleString()} and {right.simpleString()}",
            hint="cast one side, for example in a view or by --left-schema or --right-schema",
        )
    return found


def _common(narrow: DataType, wide: DataType) -> DataType | None:
    if isinstance(narrow, StringType) and isinstance(wide, _FROM_TEXT):
        return _text_as(wide)
    if isinstance(narrow, DateType) and isinstance(wide, TimestampType):
        return wide
    for kind, exact in _EXACT_AS.items():
        if isinstance(wide, kind) and isinstance(narrow, exact):
            return wide
    digits, scale = _digits(narrow)
    other_digits, other_scale = _digits(wide)
    if not digits or not other_digits:
        return None
    if not (isinstance(narrow, DecimalType) or isinstance(wide, DecimalType)):
        return wide if other_digits >= digits else narrow
    whole, part = max(digits - scale, other_digits - other_scale), max(scale, other_scale)
    return DecimalType(whole + part, part) if whole + part <= _MAX_DIGITS else None


def _text_as(kind: DataType) -> DataType:
    """A text may have more decimals than the other side, which must not be rounded away."""
    if not isinstance(kind, DecimalType):
        return kind
    scale = max(kind.scale, min(_TEXT_SCALE, _MAX_DIGITS - (kind.precision - kind.scale)))
    return DecimalType(_MAX_DIGITS, scale)


def _digits(kind: DataType) -> tuple[int, int]:
    if isinstance(kind, DecimalType):
        return kind.precision, kind.scale
    return _INTEGERS.get(type(kind), 0), 0


def is_hashable(kind: DataType) -> bool:
    """True when equal values of this type, as a join sees them, have one hash.

    >>> is_hashable(StringType()), is_hashable(StringType("UTF8_LCASE"))
    (True, False)
    """
    if isinstance(kind, StringType):
        return kind.collation == "UTF8_BINARY"
    return isinstance(kind, _SIMPLE) or kind.typeName() in ("binary", "time")


def key_hash(keys: Iterable[tuple[Column, DataType]]) -> Column:
    """One bigint for each key: equal for keys that a join takes for equal, seldom equal for others.

    -0.0 is 0.0 and all NaN are one, as in Spark's joins. It is never NULL; a key with a NULL in it, which no
    join pairs, has some hash.
    """
    return F.xxhash64(*(canonical(column, kind) for column, kind in keys))


def canonical(column: Column, kind: DataType) -> Column:
    """The value that stands for all that a join takes for equal to it: one zero, one NaN."""
    if not isinstance(kind, (FloatType, DoubleType)):
        return column
    nan, zero = (F.lit(value).cast(kind) for value in (float("nan"), 0.0))
    return F.when(F.isnan(column), nan).when(column == 0, zero).otherwise(column)


def text_hash(key: Sequence[str], *, kinds: Sequence[DataType]) -> Column:
    """The hash of a key that is given as text: a constant for the optimizer."""
    values = [F.lit(text).try_cast(kind) for text, kind in zip(key, kinds, strict=True)]
    return key_hash(zip(values, kinds, strict=True))


def same_key(left: Sequence[str], right: Sequence[str]) -> Column:
    """True where the columns of both sides hold one key; NULL where a part of one is."""
    pairs = zip(left, right, strict=True)
    return reduce(lambda a, b: a & b, (named(a) == named(b) for a, b in pairs))


def casts_said(
    sides: Sequence[tuple[str, DataFrame]],
    pairs: Iterable[tuple[str, str]],
    kinds: Iterable[DataType],
) -> tuple[str, ...]:
    """ "side name: type -> type" for each key that is compared in another type than it has.

    Args:
        sides: What each of the two is called, and its rows as given.
        pairs: (left key, right key).
        kinds: The type in which each pair is compared.
    """
    found = []
    for pair, kind in zip(pairs, kinds, strict=True):
        for (where, df), name in zip(sides, pair, strict=True):
            given = df.schema[name].dataType
            if given != kind:
                found.append(f"{where} {name}: {given.simpleString()} -> {kind.simpleString()}")
    return tuple(found)


def any_null(names: Sequence[str]) -> Column:
    """True where the key cannot be equal to any other."""
    return reduce(lambda a, b: a | b, (named(name).isNull() for name in names))


def is_among(names: Sequence[str], keys: Sequence[Sequence[str]], *, kinds: Sequence[DataType]) -> Column:
    """True where the columns hold one of these keys, given as text; never NULL.

    One expression for any number of keys, which Spark looks up in a set.
    """
    if not keys:
        return F.lit(False)
    return ~any_null(names) & key_struct(names, kinds=kinds).isin(typed_keys(keys, kinds=kinds))


def key_struct(names: Sequence[str], *, kinds: Sequence[DataType]) -> Column:
    """The key as one value: equal for keys that a join takes for equal."""
    return _struct(canonical(named(name), kind) for name, kind in zip(names, kinds, strict=True))


def typed_keys(keys: Sequence[Sequence[str]], *, kinds: Sequence[DataType]) -> list[Column]:
    """Keys that are given as text, as `key_struct` has them; a text that is no value of its type is NULL."""
    return [
        _struct(canonical(F.lit(text).try_cast(kind), kind) for text, kind in zip(key, kinds, strict=True))
        for key in keys
    ]


def _struct(parts: Iterable[Column]) -> Column:
    return F.struct(*(part.alias(f"k{at}") for at, part in enumerate(parts)))
