"""Lower case that is the same in Python, Java and ICU, whatever Unicode each of them knows.

What releases agree on is mapped by them. Two things are ruled here: a letter that is newer than Unicode 13
has no other case, and which capital sigma is a final one follows from Unicode 13's classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from common.transforms.words_unicode import CASE_IGNORABLE, CASED, UNASSIGNED, python_class

_CASED, _IGNORABLE = python_class(CASED), python_class(CASE_IGNORABLE)
_FINAL_SIGMA = re.compile(f"([{_CASED}][{_IGNORABLE}]*+)Σ(?![{_IGNORABLE}]*+[{_CASED}])")
_UNKNOWN = re.compile(f"[{python_class(UNASSIGNED)}]")


def lower(word: str) -> str:
    """The word in lower case.

    >>> lower("ΟΔΟΣ"), lower("ΣΟΦΟΣ-ΑΣ"), lower("İ") == "i\u0307"
    ('οδος', 'σοφος-ας', True)
    """
    if "Σ" in word:
        word = _FINAL_SIGMA.sub(r"\1ς", word).replace("Σ", "\u03c3")
    return _mapped(word, str.lower)


def fold(word: str) -> str:
    """The word as it is compared without regard to case.

    >>> fold("Straße"), fold("ΟΔΟΣ")
    ('strasse', 'οδοσ')
    """
    return _mapped(word, str.casefold)


def _mapped(word: str, case: Callable[[str], str]) -> str:
    if word.isascii() or not _UNKNOWN.search(word):
        return case(word)
    return "".join(char if _UNKNOWN.match(char) else case(char) for char in word)
