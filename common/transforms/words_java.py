"""The unicode rule as regular expressions of Java: the same on every Java, and quick.

A class of many ranges costs Java a call for each of them, whatever the character. So the frequent letters are
alternatives of few ranges, and the others stand in blocks: only a character within a block is compared with
its ranges.
"""

from __future__ import annotations

from functools import cache

from common.transforms.words_unicode import CASE_IGNORABLE, CASED, FORMAT, UNASSIGNED, WORD, hex_class, ranges

# Of str.split(); the ASCII part is what is left out here.
_VISIBLE = r"\x00-\x08\x0e-\x1b!-\x7f"
_WHITE_SPACE = r"\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_CASED, _IGNORABLE = f"[{hex_class(CASED)}]", f"[{hex_class(CASE_IGNORABLE)}]"
FINAL_SIGMA = f"({_CASED}{_IGNORABLE}*+)Σ(?!{_IGNORABLE}*+{_CASED})"
_NOT_ASCII = r"\x80-\x{10FFFF}"
CHARACTER = f"(?:[{_VISIBLE}]|[{_NOT_ASCII}&&[^{_WHITE_SPACE}]])"
RUN = f"(?:[{_VISIBLE}]++|[{_NOT_ASCII}&&[^{_WHITE_SPACE}]]++)++"
# Parts of WORD that most text is made of.
_FREQUENT = (
    r"\u3400-\u4dbf\u4e00-\u9ffc",
    r"\u03f7-\u0481\u048a-\u052f",
    r"\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02c1",
)
_BLOCK_RANGES = 24


@cache
def word_pattern() -> str:
    """A word of the unicode rule. Possessive, so that a long word does not fill Java's stack."""
    frequent = "|".join(f"[{inside}]++" for inside in _FREQUENT)
    others = f"(?=[{_NOT_ASCII}])(?:{frequent}|{'|'.join(_blocks(WORD))})"
    word = f"(?:[0-9A-Za-z]++|{others})++"
    return f"{word}(?:(?:['\u2019\u2010\u2011-]|[{_NOT_ASCII}&&[{hex_class(FORMAT)}]]++){word})*+"


@cache
def unassigned_class() -> str:
    """A code point that Unicode 13 does not know."""
    return f"[{_NOT_ASCII}&&[^{_FREQUENT[0]}]&&[{''.join(_blocks(UNASSIGNED))}]]"


def _blocks(table: str) -> list[str]:
    """A table as classes, each of which looks at its ranges only for what lies within its ends."""
    found = ranges(table)
    blocks = [found[at : at + _BLOCK_RANGES] for at in range(0, len(found), _BLOCK_RANGES)]
    return [_class(block) for block in blocks]


def _class(block: tuple[tuple[int, int], ...]) -> str:
    inside = "".join(f"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in block)
    return f"[\\x{{{block[0][0]:X}}}-\\x{{{block[-1][1]:X}}}&&[{inside}]]"
