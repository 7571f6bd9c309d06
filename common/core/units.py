"""Sizes, durations, ratios and counts: read strictly, shown shortly.

Reading follows Spark's own rules (whole numbers, binary units, any case), so that a text which passes here
also passes there: `1.5g` is refused by both, and the error names `1536m`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

from common.core.errors import ParameterError

BYTE_UNITS: Final[Mapping[str, int]] = {
    "b": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
    "t": 1 << 40,
    "tb": 1 << 40,
    "p": 1 << 50,
    "pb": 1 << 50,
}
MICROSECOND_UNITS: Final[Mapping[str, int]] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
LARGEST: Final = 2**63 - 1  # what the JVM's long holds

_AMOUNT = re.compile(r"(-?)([0-9]+)(\.[0-9]+)?([a-z]*)")
_RATIO = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:e([-+]?[0-9]{1,3}))?(%?)", re.IGNORECASE)


def parse_bytes(
    text: str, *, default_unit: str | None = None, allow_negative: bool = False, name: str = "size"
) -> int:
    """Read a size in bytes: a whole number and a binary unit.

    Args:
        text: Such as "128m", "2GB"; any case, no space before the unit.
        default_unit: The unit of a bare number ("k", "m", …); without it a bare number is refused.
        allow_negative: Some Spark keys switch off with -1.
        name: The parameter's name, for the error.
    Raises:
        ParameterError: not such a text, a fraction, or beyond 2**63 - 1 bytes.

    >>> parse_bytes("128m")
    134217728
    >>> parse_bytes("64", default_unit="k")
    65536
    """
    return _amount(
        text, BYTE_UNITS, default_unit=default_unit, allow_negative=allow_negative, what="size", name=name
    )


def parse_seconds(
    text: str, *, default_unit: str | None = None, allow_negative: bool = False, name: str = "duration"
) -> float:
    """Read a duration in seconds: a whole number and one of us, ms, s, m or min, h, d.

    Args:
        text: Such as "30s", "250ms"; any case, no space before the unit.
        default_unit: The unit of a bare number; without it a bare number is refused.
        allow_negative: Whether "-1s" is meant to be possible.
        name: The parameter's name, for the error.
    Raises:
        ParameterError: not such a text, a fraction, or beyond 2**63 - 1 microseconds.

    >>> parse_seconds("250ms")
    0.25
    """
    micros = _amount(
        text,
        MICROSECOND_UNITS,
        default_unit=default_unit,
        allow_negative=allow_negative,
        what="duration",
        name=name,
    )
    return micros / 1_000_000


def parse_ratio(text: str, *, name: str = "ratio") -> float:
    """Read a share between 0 and 1, as a percentage or a number.

    Args:
        text: Such as "25%" or "0.25".
        name: The parameter's name, for the error.
    Raises:
        ParameterError: not such a text, or outside 0 to 1.

    >>> parse_ratio("25%"), parse_ratio("0.25")
    (0.25, 0.25)
    """
    found = _RATIO.fullmatch(text.strip())
    hint = None
    if found:
        number, exponent, percent = found.groups()
        ratio = Decimal(f"{number}e{exponent or 0}") / (100 if percent else 1)
        if ratio <= 1:
            return float(ratio)
        if not percent and ratio <= 100:
            hint = f"did you mean {number}%"
    raise ParameterError("ratio", name, expected="0 to 1, as 0.25 or 25%", got=repr(text), hint=hint)


def spell_bytes(size_bytes: int) -> str:
    """Write a size exactly, in Spark's spelling and the largest unit that fits.

    >>> spell_bytes(1536 * 1024 * 1024)
    '1536m'
    """
    return _spell(size_bytes, BYTE_UNITS, ("p", "t", "g", "m", "k", "b"))


def format_bytes(size_bytes: int) -> str:
    """Show a size for people: binary units; one decimal unless it is exact.

    >>> format_bytes(6_501_171), format_bytes(128 << 20), format_bytes(1)
    ('6.2 MiB', '128 MiB', '1 B')
    """
    sign, size = ("-", -size_bytes) if size_bytes < 0 else ("", size_bytes)
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    step = min(max(size.bit_length() - 1, 0) // 10, 5)
    if step < 5 and _tenths(size, step) >= 10_240:  # 1023.96 KiB reads as 1.0 MiB
        step += 1
    if size % (1 << 10 * step) == 0:
        return f"{sign}{size >> 10 * step} {units[step]}"
    whole, tenth = divmod(_tenths(size, step), 10)
    return f"{sign}{whole}.{tenth} {units[step]}"


def format_seconds(seconds: float) -> str:
    """Show a duration for people, in at most two units.

    >>> format_seconds(0.42), format_seconds(72), format_seconds(0.0123)
    ('0.4 s', '1 min 12 s', '12 ms')
    """
    if not math.isfinite(seconds):
        return f"{seconds} s"
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    return sign + (_below_a_minute(seconds) if seconds < 59.95 else _minutes_and_more(seconds))


def format_count(count: int) -> str:
    """Show a count with thousand separators.

    >>> format_count(336776)
    '336,776'
    """
    return f"{count:,}"


def _amount(
    text: str,
    units: Mapping[str, int],
    *,
    default_unit: str | None,
    allow_negative: bool,
    what: str,
    name: str,
) -> int:
    found = _AMOUNT.fullmatch(text.strip().lower())
    sign, whole, fraction, unit = found.groups() if found else ("", "", None, "?")
    factor = units.get(unit or (default_unit or "").lower())
    problem = ParameterError(
        what,
        name,
        expected=_accepted(units, default_unit=default_unit, allow_negative=allow_negative),
        got=repr(text),
        hint=_nearest_amount(whole + (fraction or ""), unit, factor, units),
    )
    # The length bound keeps int() away from texts of thousands of digits.
    if factor is None or fraction or (sign and not allow_negative) or len(whole) > 40:
        raise problem
    amount = int(whole) * factor
    if amount > LARGEST:
        raise problem
    return -amount if sign else amount


def _accepted(units: Mapping[str, int], *, default_unit: str | None, allow_negative: bool) -> str:
    kind = "whole number" if allow_negative else "whole number >= 0"
    bare = f"; without a unit it means {default_unit}" if default_unit else ""
    example = "128m" if units is BYTE_UNITS else "30s"
    largest = "2^63 - 1 bytes" if units is BYTE_UNITS else "2^63 - 1 us"
    return f"a {kind} with a unit of {', '.join(units)} (as {example}), at most {largest}{bare}"


def _nearest_amount(number: str, unit: str, factor: int | None, units: Mapping[str, int]) -> str | None:
    if not number or len(number) > 40:
        return None
    if factor is None:
        common = "m" if units is BYTE_UNITS else "s"
        return None if unit else f"add the unit, as in {number}{common}"
    exact = Fraction(number) * factor
    if "." not in number or exact.denominator != 1 or exact > LARGEST:
        return None
    spelled = ("p", "t", "g", "m", "k", "b") if units is BYTE_UNITS else ("d", "h", "m", "s", "ms", "us")
    return f"write {_spell(int(exact), units, spelled)}"


def _spell(amount: int, units: Mapping[str, int], names: tuple[str, ...]) -> str:
    unit = next(unit for unit in names if amount % units[unit] == 0) if amount else names[-1]
    return f"{amount // units[unit]}{unit}"


def _tenths(size: int, step: int) -> int:
    """Tenths of the unit 1024**step, rounded half up, without floats."""
    unit = 1 << 10 * step
    return (size * 10 + unit // 2) // unit


def _below_a_minute(seconds: float) -> str:
    if seconds >= 0.0995:  # the first that does not round to 99 ms
        return f"{seconds:.1f} s"
    millis = round(seconds * 1000, 1) if seconds < 0.00995 else round(seconds * 1000)
    return f"{millis:g} ms" if millis else "0 s"


def _minutes_and_more(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return _two(minutes, "min", rest, "s")
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours < 24:
        return _two(hours, "h", minutes, "min")
    days, hours = divmod(round(seconds / 3600), 24)
    return _two(days, "d", hours, "h")


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit} {small} {small_unit}" if small else f"{large} {large_unit}"
