"""Runs of Han characters, cut into words by jieba.

Of a run of more than 10,000 characters each 10,000 are cut by themselves: jieba's time grows with the square
of what it does not know. No text has such a run; a file that is none would keep a task busy for days.
"""

from __future__ import annotations

import importlib.util
import io
import logging
import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from common.core.errors import InstallationError, ParameterError

if TYPE_CHECKING:
    from jieba import Tokenizer as Jieba

# The Han script's letters and numerals, as of Unicode 13.
HAN = (
    "\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9ffc\uf900-\ufa6d\ufa70-\ufad9"
    "\U00020000-\U0002a6dd\U0002a700-\U0002b734\U0002b740-\U0002b81d\U0002b820-\U0002cea1"
    "\U0002ceb0-\U0002ebe0\U0002f800-\U0002fa1d\U00030000-\U0003134a"
)
_LONGEST_RUN = 10_000
_KNOWN = re.compile("[\u4e00-\u9fd5]++")  # jieba makes a word of its own of each other character
_PIECES = re.compile(f"([{HAN}]{{1,{_LONGEST_RUN}}}+)|[^{HAN}]++")
# As jieba reads a line of a user's dictionary.
_ENTRY = re.compile("(.+?)( [0-9]+)?( [a-z]+)?")


def han_cutter(
    user_dictionary: str | None, *, between: Callable[[str], list[str]]
) -> Callable[[str], list[str]]:
    """What cuts a text: runs of Han characters by jieba, the text between them by `between`.

    Raises:
        InstallationError: jieba is not installed.
        ParameterError: jieba cannot read the dictionary.
    """
    jieba = _jieba(user_dictionary)

    def cut(text: str) -> list[str]:
        if text.isascii():
            return between(text)
        words: list[str] = []
        for piece in _PIECES.finditer(text):
            words += jieba.cut(piece.group()) if piece.group(1) else between(piece.group())
        return words

    return cut


def never_found(user_dictionary: str) -> list[str]:
    """The words of a dictionary that no text has for jieba: they are not made of Chinese characters alone.

    >>> never_found("\u4e91\u8ba1\u7b97 5\\n\\nT\u6064 3 n\\n")
    ['T\u6064']
    """
    lines = filter(None, (line.strip() for line in user_dictionary.split("\n")))
    words = [found[1] for line in lines if (found := _ENTRY.fullmatch(line))]
    return [word for word in words if not _KNOWN.fullmatch(word)]


def check_jieba() -> None:
    """Say so before anything starts.

    Raises:
        InstallationError: jieba is not installed.
    """
    if importlib.util.find_spec("jieba") is None:
        raise _absent("no such package")


def _absent(got: str) -> InstallationError:
    hint = "pip install 'saltpan[cjk]'"
    return InstallationError(
        "package", "jieba", expected="installed, for --tokenizer cjk", got=got, hint=hint
    )


@lru_cache(maxsize=2)
def _jieba(user_dictionary: str | None) -> Jieba:
    """A tokenizer of our own: jieba's global one would keep the user's words. Loaded once per worker."""
    with warnings.catch_warnings():  # invalid escapes in its source, pkg_resources
        warnings.simplefilter("ignore")
        try:
            import jieba
        except ImportError as error:
            raise _absent(str(error)) from error
    jieba.setLogLevel(logging.WARNING)  # it tells stderr that it loads its dictionary
    tokenizer = jieba.Tokenizer()
    if user_dictionary is not None:
        try:
            tokenizer.load_userdict(io.StringIO(user_dictionary))
        except (ValueError, OverflowError) as error:
            expected = "`word [frequency] [tag]` in each line"
            raise ParameterError("parameter", "user_dictionary", expected=expected, got=str(error)) from error
    return tokenizer
