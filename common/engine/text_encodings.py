"""Encodings of text files: which can be cut at line ends, and bytes of any of them as UTF-8.

Imported by workers: no Spark, no settings.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from encodings.aliases import aliases
from functools import cache
from itertools import chain
from typing import NamedTuple

from common.core.errors import UnknownNameError, did_you_mean

LINE_ENDS = b"\n\r"
REPLACEMENT = "\ufffd"
MARK = "\ufeff"
_HANDLER = "saltpan_replace"
# In these no byte of a longer character is a line end, and each character is read without what is before it.
_MULTIBYTE = frozenset(
    {
        *("gb2312", "gbk", "gb18030", "big5", "big5hkscs", "cp932", "cp949", "cp950", "johab"),
        *(
            "shift_jis",
            "shift_jis_2004",
            "shift_jisx0213",
            "euc_jp",
            "euc_jis_2004",
            "euc_jisx0213",
            "euc_kr",
        ),
    }
)
# Python's, but not of files; UTF-7 can hold halves of characters.
_NO_ENCODINGS = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "utf-7"})
_WIDE = frozenset({"utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"})


class Decoded(NamedTuple):
    """A part of a file as UTF-8, and how many replacements were made in it."""

    utf8: bytes
    replaced: int


class UndecodableError(ValueError):
    """Raised when bytes are no text of the encoding.

    Attributes:
        offset_bytes: Where in the file's content.
    """

    def __init__(self, offset_bytes: int) -> None:
        super().__init__(offset_bytes)
        self.offset_bytes = offset_bytes


@cache
def encoding_of(name: str) -> str:
    """The codec's own name of an encoding of text.

    Raises:
        UnknownNameError: Python knows none of that name.

    >>> encoding_of("UTF8"), encoding_of("latin-1"), encoding_of("GBK")
    ('utf-8', 'iso8859-1', 'gbk')
    """
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):  # a NUL in the name is a ValueError
        codec = None
    if codec is None or not getattr(codec, "_is_text_encoding", True) or codec.name in _NO_ENCODINGS:
        known = sorted({name.replace("_", "-") for name in aliases.values()})
        raise UnknownNameError(
            "encoding", name, expected="an encoding that Python knows, such as utf-8, latin-1 or gb18030",
            got="no codec of that name", hint=did_you_mean(name.replace("_", "-"), known),
        )  # fmt: skip
    return "utf-8" if codec.name == "utf-8-sig" else codec.name


def is_utf8(encoding: str) -> bool:
    """True when files of the encoding are counted as they are.

    >>> is_utf8("utf8"), is_utf8("ascii"), is_utf8("latin-1")
    (True, False, False)
    """
    return encoding_of(encoding) == "utf-8"


def is_wide(encoding: str) -> bool:
    """True where NUL bytes are a part of plain text."""
    return encoding_of(encoding) in _WIDE


@cache
def is_splittable(encoding: str) -> bool:
    """True when a file can be cut behind any line end, and its parts read by themselves.

    >>> [is_splittable(name) for name in ("utf-8", "cp1251", "gb18030", "utf-16", "iso2022_jp", "cp037")]
    [True, True, True, False, False, False]
    """
    name = encoding_of(encoding)
    if name == "utf-8" or name in _MULTIBYTE:
        return True
    return name not in _WIDE and _is_charmap(name)


def _is_charmap(name: str) -> bool:
    """Each byte is a character by itself, or none, and ASCII is ASCII."""
    if bytes(range(128)).decode(name, "replace") != bytes(range(128)).decode("ascii"):
        return False
    if not hasattr(codecs.lookup(name).incrementaldecoder, "getstate"):
        return False
    single = [bytes([byte]).decode(name, "replace") for byte in range(256)]
    together = bytes(range(256)).decode(name, "replace")
    return all(len(character) == 1 for character in single) and "".join(single) == together


def decoded_blocks(
    blocks: Iterable[tuple[int, bytes]], encoding: str, *, replace: bool
) -> Iterator[tuple[int, Decoded]]:
    """Blocks as UTF-8, of an encoding that can be cut where they end, or else of a whole file in order.

    Args:
        blocks: (offset, block): where each begins in the file's content.
        encoding: Of the file.
        replace: Put U+FFFD for what is no text.

    Yields:
        (offset, Decoded): whole lines. A byte order mark at the beginning of the file is dropped.

    Raises:
        UndecodableError: bytes that are no text, unless they are replaced.
    """
    errors = _HANDLER if replace else "strict"
    if is_splittable(encoding):
        for offset, block in blocks:
            with _placed(offset):
                before, text = _replaced.count, block.decode(encoding, errors)
            yield offset, _as_utf8(text, offset, _replaced.count - before)
        return
    whole = _with_whole_mark(blocks)
    first = next(whole, (0, b""))
    decoder = codecs.getincrementaldecoder(_byte_order(encoding_of(encoding), first[1]))(errors)
    yield from _streamed(chain([first], whole), decoder)


def _with_whole_mark(blocks: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The blocks, of which the first is long enough to hold a byte order mark."""
    blocks, head = iter(blocks), b""
    for _, block in blocks:
        head += block
        if len(head) >= 4:
            break
    yield 0, head
    yield from blocks


def _byte_order(encoding: str, head: bytes) -> str:
    """The codec whose order of bytes the mark tells; without a mark it is the usual one."""
    big = {"utf-16": b"\xfe\xff", "utf-32": b"\0\0\xfe\xff"}.get(encoding)
    if big is None:
        return encoding
    return f"{encoding}-be" if head.startswith(big) else f"{encoding}-le"


def _streamed(
    blocks: Iterable[tuple[int, bytes]], decoder: codecs.IncrementalDecoder
) -> Iterator[tuple[int, Decoded]]:
    """The same where a character needs what is before it: the last line of a block waits for the next one."""
    rest, start, end, before = "", 0, 0, _replaced.count
    for offset, block in blocks:
        with _placed(offset - len(decoder.getstate()[0])):
            text = rest + decoder.decode(block)
        end = offset + len(block)
        cut = max(text.rfind("\n"), text.rfind("\r")) + 1
        if cut:
            yield start, _as_utf8(text[:cut], start, _replaced.count - before)
            start, before = end, _replaced.count
        rest = text[cut:]
    with _placed(end - len(decoder.getstate()[0])):
        rest += decoder.decode(b"", final=True)
    if rest or _replaced.count > before:
        yield start, _as_utf8(rest, start, _replaced.count - before)


def _as_utf8(text: str, offset: int, replaced: int) -> Decoded:
    return Decoded((text if offset else text.removeprefix(MARK)).encode(), replaced)


@contextmanager
def _placed(offset: int) -> Iterator[None]:
    """Say where in the file's content bytes are no text."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise UndecodableError(offset + error.start) from None


class _Replacing:
    """Puts U+FFFD as "replace" does, and counts how often."""

    count = 0

    def __call__(self, error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeDecodeError)
        self.count += 1
        return REPLACEMENT, error.end


_replaced = _Replacing()
codecs.register_error(_HANDLER, _replaced)
