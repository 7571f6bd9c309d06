from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.core.errors import ParameterError
from common.core.units import (
    format_bytes,
    format_count,
    format_seconds,
    parse_bytes,
    parse_ratio,
    parse_seconds,
    spell_bytes,
)

LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0b", 0),
        ("7B", 7),
        ("1k", 1024),
        ("1kb", 1024),
        ("128m", 128 * 1024**2),
        ("128MB", 128 * 1024**2),
        (" 2g ", 2 * 1024**3),
        ("2Gb", 2 * 1024**3),
        ("3t", 3 * 1024**4),
        ("3tb", 3 * 1024**4),
        ("1p", 1024**5),
        ("1pb", 1024**5),
        ("0010k", 10240),
        ("9223372036854775807b", LARGEST),
    ],
)
def test_bytes_follow_sparks_binary_units(text: str, expected: int) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "m",
        "128",
        "128 m",
        "1.5g",
        "1,5g",
        "1_000k",
        "-1m",
        "+1m",
        "1e3k",
        "128mib",
        "128x",
        "0x10k",
        "٣m",
        "1m2k",
        "m128",
        "nan",
        "1\nm",
        "8192p",
        "9" * 5000 + "b",
    ],
)
def test_bytes_refuse_junk_and_name_the_accepted_forms(text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_bytes(text, name="--target-size")
    assert "`--target-size`" in str(caught.value)
    assert "b, k, kb, m, mb, g, gb, t, tb, p, pb (as 128m)" in caught.value.expected


def test_a_bare_number_needs_a_default_unit() -> None:
    assert parse_bytes("64", default_unit="k") == 65536
    assert parse_bytes("64m", default_unit="k") == 64 * 1024**2
    assert parse_seconds("5", default_unit="min") == 300.0
    with pytest.raises(ParameterError, match=r"Hint: add the unit, as in 64m\."):
        parse_bytes("64")
    with pytest.raises(ParameterError, match=r"Hint: add the unit, as in 5s\."):
        parse_seconds("5")


def test_negative_amounts_only_where_allowed() -> None:
    assert parse_bytes("-1", default_unit="b", allow_negative=True) == -1
    assert parse_seconds("-2s", allow_negative=True) == -2.0
    with pytest.raises(ParameterError, match="a whole number >= 0"):
        parse_seconds("-2s")


@pytest.mark.parametrize(
    ("text", "hint"), [("1.5g", "write 1536m"), ("0.5k", "write 512b"), ("2.0m", "write 2m")]
)
def test_a_fraction_is_refused_with_the_exact_whole_number(text: str, hint: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_bytes(text)
    assert caught.value.hint == hint


def test_a_fraction_without_an_exact_whole_number_gets_no_hint() -> None:
    with pytest.raises(ParameterError) as caught:
        parse_bytes("0.3b")
    assert caught.value.hint is None


def test_a_fraction_of_a_duration_is_refused_with_the_smaller_unit() -> None:
    with pytest.raises(ParameterError) as caught:
        parse_seconds("1.5h")
    assert caught.value.hint == "write 90m"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30s", 30.0),
        ("250ms", 0.25),
        ("1us", 0.000001),
        ("2m", 120.0),
        ("2min", 120.0),
        ("1H", 3600.0),
        ("1d", 86400.0),
        ("0s", 0.0),
    ],
)
def test_seconds(text: str, expected: float) -> None:
    assert parse_seconds(text) == expected


@pytest.mark.parametrize("text", ["", "s", "1 s", "1sec", "1w", "1h30m", "inf", "0.1s"])
def test_seconds_refuse_junk(text: str) -> None:
    with pytest.raises(ParameterError, match="us, ms, s, m, min, h, d"):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("25%", 0.25),
        ("0.25", 0.25),
        (".5", 0.5),
        ("12.5%", 0.125),
        ("0", 0.0),
        ("1", 1.0),
        ("100%", 1.0),
        ("0.1%", 0.001),
        ("1e-05", 0.00001),
    ],
)
def test_ratio(text: str, expected: float) -> None:
    assert parse_ratio(text) == expected


@pytest.mark.parametrize(
    "text", ["", "%", "-1%", "1.01", "101%", "25 %", "1/4", "nan", "inf", "5.", "1e5000"]
)
def test_ratio_refuses_what_is_no_share(text: str) -> None:
    with pytest.raises(ParameterError, match=r"0 to 1, as 0\.25 or 25%"):
        parse_ratio(text)


def test_a_percentage_without_its_sign_is_pointed_out() -> None:
    with pytest.raises(ParameterError, match="did you mean 25%"):
        parse_ratio("25")


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (6_501_171, "6.2 MiB"),
        (128 * 1024**2, "128 MiB"),
        (1024**2 - 1, "1.0 MiB"),
        (-2048, "-2 KiB"),
        (5 * 1024**5, "5 PiB"),
        (5000 * 1024**5, "5000 PiB"),
    ],
)
def test_bytes_are_shown_shortly(size: int, expected: str) -> None:
    assert format_bytes(size) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (0.00042, "0.4 ms"),
        (0.0123, "12 ms"),
        (0.0999, "0.1 s"),
        (0.42, "0.4 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),
        (72, "1 min 12 s"),
        (3599.7, "1 h"),
        (3720, "1 h 2 min"),
        (86_399, "1 d"),
        (97_200, "1 d 3 h"),
        (-72, "-1 min 12 s"),
        (float("inf"), "inf s"),
    ],
)
def test_seconds_are_shown_shortly(seconds: float, expected: str) -> None:
    assert format_seconds(seconds) == expected


def test_counts_get_thousand_separators() -> None:
    assert [format_count(n) for n in (0, 999, 336776, -1234567)] == ["0", "999", "336,776", "-1,234,567"]


@given(st.integers(min_value=0, max_value=LARGEST))
def test_spelled_bytes_read_back_exactly(size: int) -> None:
    assert parse_bytes(spell_bytes(size)) == size


def test_spelled_bytes_use_the_largest_exact_unit() -> None:
    assert [spell_bytes(n) for n in (0, 1025, 1536 * 1024**2, 2 * 1024**3)] == ["0b", "1025b", "1536m", "2g"]


@given(st.integers(min_value=0, max_value=LARGEST))
def test_shown_bytes_are_within_half_a_tenth_of_their_unit(size: int) -> None:
    number, unit = format_bytes(size).split(" ")
    factor = 1024 ** ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit)
    assert abs(int(float(number) * 10) * factor - size * 10) <= factor  # number has one decimal
    assert float(number) < 1024 or unit == "PiB"


@given(st.integers(min_value=0, max_value=10**6), st.sampled_from(["us", "ms", "s", "m", "min", "h", "d"]))
def test_case_and_outer_space_do_not_matter(number: int, unit: str) -> None:
    assert parse_seconds(f" {number}{unit.upper()}\t") == parse_seconds(f"{number}{unit}")


@given(st.floats(min_value=0, max_value=1))
def test_a_ratio_written_by_python_reads_back(ratio: float) -> None:
    assert parse_ratio(repr(ratio)) == ratio
