"""The words of one line, in Python: the reference that every other form must equal."""

from __future__ import annotations

import re
import traceback
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

from common.core.errors import ParameterError
from common.transforms.words_case import fold, lower
from common.transforms.words_han import han_cutter
from common.transforms.words_rules import WordRules, compiled, own_tokenizer
from common.transforms.words_unicode import FORMAT, WORD, python_class

Tokenizer = Callable[[str], list[str]]

_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_LETTERS, _FORMATS = python_class(WORD), python_class(FORMAT)
_JOINED = f"(?:['\u2019\u2010\u2011-]|[{_FORMATS}]++)[{_LETTERS}]"
# Possessive, so that a word of any length takes no memory to match. A round of the group must not fail once
# it has begun, hence the look ahead: Python before 3.11.5 would go on behind what it has read (gh-106052).
_WORD = re.compile(f"[{_LETTERS}]++(?:(?={_JOINED}){_JOINED}++)*+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPELT = {0x2019: "'", 0x2010: "-", 0x2011: "-"}


def lines_of(text: str) -> list[str]:
    r"""The lines of a text as Spark's reader has them: they end at \n, \r\n and \r, and at nothing else.

    >>> lines_of("a\r\nb\rc\u2028d")
    ['a', 'b', 'c\u2028d']
    """
    return _LINE_ENDS.split(text)


@lru_cache(maxsize=8)
def tokenizer_of(rules: WordRules) -> Tokenizer:
    r"""What gives the words of ONE line: normalise, cut, case, stop words, length, n-grams, in this order.

    Raises:
        ParameterError: as common.transforms.words_rules.check.

    >>> pairs = tokenizer_of(WordRules(stop_words=frozenset({"the"}), ngrams=2))
    >>> pairs("The rock\u2019n\u2019roll of THE 'seventies'")
    ["rock'n'roll of", 'of seventies']
    """
    words = words_of(rules)
    normal = normalizer_of(rules)
    size = rules.ngrams

    def tokens(line: str) -> list[str]:
        found = words(normal(line))
        if size == 1:
            return found
        return [" ".join(found[at : at + size]) for at in range(len(found) - size + 1)]

    return tokens


def normalizer_of(rules: WordRules) -> Callable[[str], str]:
    """What normalises a text; the lines of a normalised text are the normalised lines."""
    form = rules.normalize
    if form == "none":
        return str
    return lambda text: (
        text if text.isascii() else unicodedata.normalize("NFC" if form == "nfc" else "NFKC", text)
    )


@lru_cache(maxsize=8)
def words_of(rules: WordRules) -> Tokenizer:
    """The words of a line or a chunk that is normalised, before they are joined to n-grams."""
    cut, case, shortest = _cutter(rules), _case(rules), rules.min_length
    stops = stops_of(rules)
    if not stops and shortest == 1:
        return lambda text: [word for word in map(case, cut(text)) if word]

    def words(text: str) -> list[str]:
        return [word for word in map(case, cut(text)) if len(word) >= shortest and word not in stops]

    return words


def _case(rules: WordRules) -> Callable[[str], str]:
    if rules.case == "keep":
        return str
    return lower if rules.case == "lower" else fold


def stops_of(rules: WordRules) -> frozenset[str]:
    """The stop words as the words look: normalised, spelt and in their case."""
    case, normal = _case(rules), normalizer_of(rules)
    spelt = _spelt if rules.tokenizer in {"unicode", "cjk"} else str
    return frozenset(case(spelt(normal(word))) for word in rules.stop_words)


def _cutter(rules: WordRules) -> Tokenizer:
    """The words of a text as they stand in it."""
    if rules.tokenizer == "unicode":
        return unicode_words
    if rules.tokenizer == "whitespace":
        return str.split
    if rules.tokenizer == "characters":
        return lambda text: list("".join(text.split()))
    if rules.tokenizer == "cjk":
        return han_cutter(rules.user_dictionary, between=unicode_words)
    if rules.pattern is not None:
        pattern = compiled(rules.pattern)
        return lambda text: [match.group() for match in pattern.finditer(text)]
    return _own_cutter(rules.tokenizer)


def unicode_words(text: str) -> list[str]:
    r"""The words of the unicode rule.

    >>> unicode_words("don\u2019t, x\u200by; naïve_你好 42")
    ["don't", 'x\u200by', 'naïve', '你好', '42']
    """
    return _WORD.findall(text if text.isascii() else _spelt(text))


def _spelt(text: str) -> str:
    return text.translate(_SPELT)


def _own_cutter(name: str) -> Tokenizer:
    function = own_tokenizer(name)

    def cut(text: str) -> list[str]:
        try:
            words: object = function(text)
            found = list(words) if isinstance(words, Iterable) and not isinstance(words, str) else None
        except Exception as error:
            raise _no_words(name, _said(error)) from error
        if found is None:
            raise _no_words(name, "one str" if isinstance(words, str) else f"a {type(words).__name__}")
        for word in found:
            if not isinstance(word, str):
                raise _no_words(name, f"a {type(word).__name__} among them")
            if not word.isascii() and _SURROGATE.search(word):
                raise _no_words(name, f"half a character among them ({word!a})")
        return found

    return cut


def _no_words(name: str, got: str) -> ParameterError:
    expected = "a function that gives a list of words (str)"
    return ParameterError("tokenizer", name, expected=expected, got=got)


def _said(error: Exception) -> str:
    """What a function raised, and where."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
