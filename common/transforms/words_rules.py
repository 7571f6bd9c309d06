"""What a word is: the settings that every way of counting obeys.

- unicode: a word is made of letters, marks and digits. One apostrophe or hyphen (U+2019, U+2010 and U+2011 as
  well), or a run of format characters (U+200B, U+200C, U+200D, U+00AD …), between two of them belongs to it.
  U+2019 is written ', U+2010 and U+2011 are written -. All as of Unicode 13; the underscore separates.
- whitespace: what str.split() gives.
- cjk: each run of Han characters is cut by jieba; what stands between them follows the unicode rule.
- characters: each code point that is not white space.
- regex:PATTERN: each match of the pattern in a line, as Python's `re` finds them.
- module:function: what the function gives for a line, an iterable of str.
"""

from __future__ import annotations

import importlib
import importlib.resources
import re
import string
import tomllib
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from common.core.errors import ParameterError, UnknownNameError, did_you_mean
from common.transforms.words_han import check_jieba

Normalize = Literal["none", "nfc", "nfkc"]
Case = Literal["keep", "lower", "fold"]
OnDecodeError = Literal["fail", "replace"]
OwnTokenizer = Callable[[str], Iterable[str]]

NAMED_TOKENIZERS = ("unicode", "whitespace", "cjk", "characters")
TOKENIZERS = (*NAMED_TOKENIZERS, "regex:PATTERN", "module:function")
LINE_ENDS = b"\n\r"
_REGEX = "regex:"
_IN_WORDS = frozenset((string.ascii_letters + string.digits + "'-").encode())
_NOT_IN_WORDS = bytes(byte for byte in range(128) if byte not in _IN_WORDS)
# Of these Python's str.split() knows the last four as well.
_ASCII_WHITE_SPACE = b"\t\n\v\f\r \x1c\x1d\x1e\x1f"


@dataclass(frozen=True)
class WordRules:
    """How a line becomes words. Hashable and picklable: it travels to the workers.

    Attributes:
        tokenizer: unicode, whitespace, cjk, characters, regex:PATTERN or module:function.
        normalize: Unicode normalisation of the line before it is cut.
        case: Applied to each word: kept, lower case, or folded ("ß" becomes "ss").
        stop_words: Left out. Compared with the words after both went through `normalize` and `case`.
        min_length: Shorter words are left out; in code points, after `case`.
        ngrams: So many consecutive words of one line, of those that are left, joined by one space.
        user_dictionary: The text (not the path) of a jieba dictionary: `word [frequency] [tag]` per line.
    """

    tokenizer: str = "unicode"
    normalize: Normalize = "none"
    case: Case = "lower"
    stop_words: frozenset[str] = frozenset()
    min_length: int = 1
    ngrams: int = 1
    user_dictionary: str | None = None

    @property
    def cuts_lines(self) -> bool:
        """True when a line's words are those of its chunks, the runs without any of `splits_at`."""
        return self.normalize == "none" and self.cuts_normal_lines

    @property
    def cuts_normal_lines(self) -> bool:
        """As `cuts_lines`, of text that is normalised already."""
        return self.ngrams == 1 and self.tokenizer in NAMED_TOKENIZERS

    @property
    def separators(self) -> bytes:
        """The ASCII bytes that stand between words, for the named tokenizers."""
        return _NOT_IN_WORDS if self.tokenizer in {"unicode", "cjk"} else _ASCII_WHITE_SPACE

    @property
    def splits_at(self) -> bytes:
        """The ASCII bytes before and after which text may be cut without changing any count."""
        return self.separators if self.cuts_lines else LINE_ENDS

    @property
    def pattern(self) -> str | None:
        """What follows `regex:`."""
        return self.tokenizer.removeprefix(_REGEX) if self.tokenizer.startswith(_REGEX) else None


def check(rules: WordRules) -> None:
    """Refuse rules that cannot be honoured.

    Raises:
        ParameterError: unknown tokenizer, a pattern that does not compile, a function that cannot be
            imported, a number below 1, a dictionary without a tokenizer that reads it.
        InstallationError: the tokenizer cjk without jieba.
    """
    for name, value in (("min_length", rules.min_length), ("ngrams", rules.ngrams)):
        if value < 1:
            raise ParameterError("parameter", name, expected="a whole number >= 1", got=str(value))
    if rules.user_dictionary is not None and rules.tokenizer != "cjk":
        name, expected = "user_dictionary", "tokenizer cjk, which reads it"
        raise ParameterError("parameter", name, expected=expected, got=rules.tokenizer)
    if rules.tokenizer == "cjk":
        check_jieba()
    if rules.pattern is not None:
        compiled(rules.pattern)
    elif rules.tokenizer not in NAMED_TOKENIZERS:
        own_tokenizer(rules.tokenizer)


def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern of `regex:PATTERN`.

    Raises:
        ParameterError: it does not compile, or it finds nothing.
    """
    expected = "a regular expression of Python"
    if not pattern:
        raise ParameterError("tokenizer", _REGEX, expected=expected, got="none")
    try:
        with warnings.catch_warnings():  # of what later releases of Python might read otherwise
            warnings.simplefilter("ignore")
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ParameterError("tokenizer", _REGEX + pattern, expected=expected, got=str(error)) from error


def own_tokenizer(name: str) -> OwnTokenizer:
    """The function that `module:function` names.

    Raises:
        ParameterError: no such tokenizer, module or function.
    """
    module_name, colon, function_name = name.partition(":")
    if not colon or not module_name or not function_name:
        hint = did_you_mean(name, NAMED_TOKENIZERS)
        raise ParameterError(
            "tokenizer", name, expected=f"one of {', '.join(TOKENIZERS)}", got=name or "nothing", hint=hint
        )
    expected = "module:function, a function of an importable module"
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # the module runs as it is imported, and may do anything
        got = f"{type(error).__name__}: {error}"
        raise ParameterError("tokenizer", name, expected=expected, got=got) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        got = f"no function `{function_name}` in {module_name}"
        hint = did_you_mean(function_name, [name for name in vars(module) if callable(vars(module)[name])])
        raise ParameterError("tokenizer", name, expected=expected, got=got, hint=hint)
    found: OwnTokenizer = function
    return found


def stop_words(language: str) -> frozenset[str]:
    """The stop words that come with the suite: `en` or `zh`.

    Raises:
        UnknownNameError: no list of that name.
    """
    lists = importlib.resources.files("common.transforms") / "stop_words"
    names = sorted(
        entry.name.removesuffix(".toml") for entry in lists.iterdir() if entry.name.endswith(".toml")
    )
    if language not in names:
        hint = did_you_mean(language, names)
        raise UnknownNameError(
            "stop words", language, expected=f"one of {', '.join(names)}", got=language, hint=hint
        )
    text = (lists / f"{language}.toml").read_text(encoding="utf-8")
    return frozenset(tomllib.loads(text)["words"].split())
