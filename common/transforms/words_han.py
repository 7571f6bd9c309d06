"""Runs of Han characters, cut into words by jieba."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from common.core.errors import InstallationError

if TYPE_CHECKING:
    from jieba import Tokenizer as Jieba

# The Han script's letters and numerals, as of Unicode 13.
HAN = (
    "\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9ffc\uf900-\ufa6d\ufa70-\ufad9"
    "\U00020000-\U0002a6dd\U0002a700-\U0002b734\U0002b740-\U0002b81d\U0002b820-\U0002cea1"
    "\U0002ceb0-\U0002ebe0\U0002f800-\U0002fa1d\U00030000-\U0003134a"
)
_PIECES = re.compile(f"([{HAN}]++)|[^{HAN}]++")


def han_cutter(
    user_dictionary: str | None, *, between: Callable[[str], list[str]]
) -> Callable[[str], list[str]]:
    """What cuts a text: runs of Han characters by jieba, the text between them by `between`.

    Raises:
        InstallationError: jieba is not installed.
        ParameterError: the dictionary cannot be read.
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


@lru_cache(maxsize=2)
def _jieba(user_dictionary: str | None) -> Jieba:
    """A tokenizer of our own: jieba's global one would keep the user's words. Loaded once per worker."""
    with warnings.catch_warnings():  # invalid escapes in its source, pkg_resources
        warnings.simplefilter("ignore")
        try:
            import jieba
        except ImportError as error:
            hint = "pip install 'saltpan[cjk]'"
            raise InstallationError(
                "package", "jieba", expected="installed, for --tokenizer cjk", got=str(error), hint=hint
            ) from error
    jieba.setLogLevel(logging.WARNING)  # it tells stderr that it loads its dictionary
    tokenizer = jieba.Tokenizer()
    if user_dictionary is not None:
        tokenizer.load_userdict(io.StringIO(user_dictionary))
    return tokenizer
