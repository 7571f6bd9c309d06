"""Parts of text files as blocks of UTF-8, read by Python itself.

Imported by workers: no Spark, no settings.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, cast

from common.core.errors import FileCorruptError, FileUnreadableError, PathAbsentError, ValueMalformedError
from common.engine.text_encodings import (
    LINE_ENDS,
    Decoded,
    UndecodableError,
    decoded_blocks,
    is_utf8,
)
from common.engine.text_ranges import BLOCK_BYTES, TextFile, TextRange, range_blocks

_UTF8_MARK = b"\xef\xbb\xbf"


def utf8_blocks(
    part: TextRange,
    *,
    cut_at: bytes = LINE_ENDS,
    encoding: str = "utf-8",
    replace: bool = False,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[tuple[int, Decoded]]:
    """The pieces that a range owns, as UTF-8, in blocks.

    Args:
        part: The range of a file, which may be packed.
        cut_at: The ASCII bytes that end a piece; other encodings than UTF-8 are cut at line ends.
        encoding: Of the file. UTF-8 is handed on unchecked, since who counts it finds what is none.
        replace: Put U+FFFD for what is no text; counted.
        block_bytes: About the size of a block.

    Yields:
        (offset, Decoded): where the block begins in the file's content. A byte order mark is dropped.

    Raises:
        ValueMalformedError: bytes that are no text of the encoding, with their offset.
        FileCorruptError: packed content that is damaged or cut off.
        PathAbsentError, FileUnreadableError: the file went since it was listed.
    """
    with _opened(part.file) as stream:
        if is_utf8(encoding):
            for offset, block in range_blocks(stream, part, cut_at=cut_at, block_bytes=block_bytes):
                marked = not offset and block.startswith(_UTF8_MARK)
                yield (len(_UTF8_MARK), Decoded(block[3:], 0)) if marked else (offset, Decoded(block, 0))
            return
        blocks = range_blocks(stream, part, cut_at=LINE_ENDS, block_bytes=block_bytes)
        try:
            yield from decoded_blocks(blocks, encoding, replace=replace)
        except UndecodableError as error:
            raise undecodable(part.file, error.offset_bytes, encoding=encoding) from None


def undecodable(file: TextFile, offset_bytes: int, *, encoding: str) -> ValueMalformedError:
    """The error for bytes that are no text of the encoding."""
    inside = " of its unpacked content" if file.packing else ""
    hint = "name the right one with --encoding, or put U+FFFD there with --on-decode-error replace"
    got = f"other bytes at byte {offset_bytes:,}{inside}"
    return ValueMalformedError("file", file.path, expected=f"text in {encoding}", got=got, hint=hint)


@contextmanager
def _opened(file: TextFile) -> Iterator[IO[bytes]]:
    """The file's content as a stream; what keeps it from being read is one of the suite's errors."""
    try:
        with _unpacked(file) as stream:
            yield stream
    except FileNotFoundError as error:
        hint = "something replaced it while the run read it; run again when its writer has ended"
        raise PathAbsentError(
            "file", file.path, expected="the file that was listed", got="no such file any more", hint=hint
        ) from error
    except PermissionError as error:
        raise FileUnreadableError(
            "file", file.path, expected="a file that may be read", got="no permission"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        if not file.packing:
            raise
        got = f"damaged {file.packing} data ({error})"
        raise FileCorruptError("file", file.path, expected="readable packed text", got=got) from error


def _unpacked(file: TextFile) -> IO[bytes]:
    if file.packing == ".gz":
        return cast("IO[bytes]", gzip.open(file.path, "rb"))
    if file.packing == ".bz2":
        return cast("IO[bytes]", bz2.open(file.path, "rb"))
    if file.packing == ".zst":
        import pyarrow as pa

        return cast("IO[bytes]", pa.CompressedInputStream(pa.OSFile(file.path, "rb"), "zstd"))
    return open(file.path, "rb")  # noqa: PTH123  closed by who asked
