"""The frozen tables of Unicode 13, and the case that follows from them, against Python's own tables."""

from __future__ import annotations

import sys
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.transforms.words_case import fold, lower
from common.transforms.words_unicode import (
    CASE_IGNORABLE,
    CASED,
    FORMAT,
    UNASSIGNED,
    WORD,
    hex_class,
    python_class,
    ranges,
)

# Assigned in Unicode 13: characters, controls, private use and surrogates, as the standard counts them.
ASSIGNED = 143_859 + 65 + 137_468 + 2_048


def members(table: str) -> set[int]:
    return {point for first, last in ranges(table) for point in range(first, last + 1)}


KNOWN = set(range(sys.maxunicode + 1)) - members(UNASSIGNED)


def test_unicode_13_has_as_many_code_points_as_its_standard_says() -> None:
    assert len(KNOWN) == ASSIGNED
    assert {0x8C7, 0x9FFC, 0x1FBF9, 0x3134A} <= KNOWN  # new in 13
    assert not {0x870, 0x9FFD, 0x1DF00, 0x11F00, 0x1C89} & KNOWN  # new in 14, 15 and 16


def test_what_words_are_made_of_is_pythons_letters_marks_and_digits() -> None:
    kinds = {point: unicodedata.category(chr(point)) for point in KNOWN}
    assert members(WORD) == {point for point, kind in kinds.items() if kind[0] in "LMN"}
    assert members(FORMAT) == {point for point, kind in kinds.items() if kind == "Cf"}


@pytest.mark.parametrize("table", [WORD, FORMAT, UNASSIGNED, CASED, CASE_IGNORABLE])
def test_ranges_ascend_and_do_not_touch(table: str) -> None:
    assert all(first <= last for first, last in ranges(table))
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(ranges(table)))


def test_classes_are_written_for_python_and_for_java() -> None:
    assert python_class("41-5A", "1F600") == "\\U00000041-\\U0000005a\\U0001f600-\\U0001f600"
    assert hex_class("41-5A", "1F600") == "\\x{41}-\\x{5A}\\x{1F600}-\\x{1F600}"


# Unicode 14 made U+1734 a spacing mark, which a final sigma does not look through; surrogates are no text.
COMPARED = sorted(KNOWN - {0x1734} - set(range(0xD800, 0xE000)))


@pytest.mark.parametrize(("before", "after"), [("", "\u03a3"), ("A", "\u03a3"), ("A\u03a3", "a")])
def test_final_sigma_is_pythons_beside_every_code_point(before: str, after: str) -> None:
    # A line end is neither cased nor looked through: each line stands for itself.
    lines = "\n".join(before + chr(point) + after for point in COMPARED if point != ord("\n"))
    assert lower(lines).split("\n") == lines.lower().split("\n")


def test_every_code_point_folds_as_in_python() -> None:
    assert [hex(point) for point in COMPARED if fold(chr(point)) != chr(point).casefold()] == []


def test_newer_letters_have_no_other_case() -> None:
    newer = "\u2c2f\ua7c0\U00010570\u1c89"  # capitals of Unicode 14 and 16
    assert (lower(f"\u0130{newer}A"), fold(f"\u00df{newer}A")) == (f"i\u0307{newer}a", f"ss{newer}a")


@given(
    st.text(st.sampled_from("a\u0391\u03a3\u03c3.'\u0301\u00ad -\u0130\u00df\u4f60\U0001f600"), max_size=12)
)
def test_case_of_any_word_is_pythons(word: str) -> None:
    assert (lower(word), fold(word)) == (word.lower(), word.casefold())
