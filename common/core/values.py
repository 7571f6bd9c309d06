"""What a row's values look like as JSON and as text, whatever prints them."""

from __future__ import annotations

import base64
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from functools import singledispatch
from typing import Any


@singledispatch
def json_value(value: Any) -> Any:
    """A value of a row as JSON holds it.

    Decimals become their exact digits as text (a JSON number is a double to most readers), NaN and Infinity
    text, dates and times ISO 8601, bytes base64, structs and maps objects.

    >>> json_value({"when": date(2013, 1, 1), "paid": Decimal("1.10"), "raw": b"hi"})
    {'when': '2013-01-01', 'paid': '1.10', 'raw': 'aGk='}
    """
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


@json_value.register
def _(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


@json_value.register
def _(value: Decimal) -> str:
    return format(value, "f")


@json_value.register(bytes)
@json_value.register(bytearray)
def _(value: bytes | bytearray) -> str:
    return base64.b64encode(value).decode()


@json_value.register(date)
@json_value.register(time_of_day)
def _(value: date | time_of_day) -> str:
    return value.isoformat()


@json_value.register
def _(value: timedelta) -> str:
    micros = value // timedelta(microseconds=1)
    seconds = Decimal(abs(micros)).scaleb(-6).normalize()
    return f"{'-' if micros < 0 else ''}PT{seconds:f}S"


@json_value.register(Mapping)
def _(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {value_text(key): json_value(item) for key, item in value.items()}


@json_value.register(list)
@json_value.register(tuple)
def _(value: Sequence[Any]) -> list[Any] | dict[str, Any]:
    fields = getattr(value, "__fields__", None)  # a PySpark Row
    if fields is None:
        return [json_value(item) for item in value]
    return {name: json_value(item) for name, item in zip(unique_names(fields), value, strict=True)}


def value_text(value: Any) -> str:
    """A value as one text: strings as they are, the rest as JSON.

    >>> value_text(True), value_text([1, None]), value_text(Decimal("0E-3"))
    ('true', '[1, null]', '0.000')
    """
    plain = json_value(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def unique_names(names: Iterable[str]) -> list[str]:
    """The names, each different from all others.

    >>> unique_names(["n", "n", "n_2"])
    ['n', 'n_3', 'n_2']
    """
    wanted = list(names)
    taken, unique = set(wanted), list[str]()
    for name in wanted:
        free = name
        if name in unique:
            free = next(f"{name}_{i}" for i in itertools.count(2) if f"{name}_{i}" not in taken)
            taken.add(free)
        unique.append(free)
    return unique
