"""The decompressed beginning of a text file, without an engine."""

from __future__ import annotations

import bz2
import io
import zlib
from collections.abc import Callable, Iterator

from common.core.errors import FileCorruptError, FormatError
from common.engine.formats import compression_of
from common.engine.storage import Storage

_STEPS_BYTES = (64 * 1024, 2 * 1024 * 1024, 32 * 1024 * 1024)


def text_heads(path: str, *, storage: Storage, size_bytes: int) -> Iterator[tuple[bytes, bool]]:
    """Longer and longer beginnings of a file's decompressed content.

    Args:
        path: The file; its ending tells the compression.
        storage: Where it is.
        size_bytes: The file's size on disk.

    Yields:
        (content, whole): `whole` is True when this is all of it.

    Raises:
        FileCorruptError: the compressed data are damaged.
        FormatError: a compression that only Hadoop reads (.snappy, .lz4).
    """
    unpack = _unpacker(path)
    for step in _STEPS_BYTES:
        raw = storage.head(path, size_bytes=step)
        whole = step >= size_bytes
        try:
            yield unpack(raw), whole
        except (OSError, zlib.error, EOFError) as error:
            got = f"damaged {compression_of(path)} data ({error})"
            raise FileCorruptError("file", path, expected="readable compressed text", got=got) from error
        if whole:
            return


def _unpacker(path: str) -> Callable[[bytes], bytes]:
    ending = compression_of(path)
    unpackers: dict[str, Callable[[bytes], bytes]] = {
        "": bytes, ".gz": _gunzip, ".deflate": _inflate, ".bz2": _bunzip, ".zst": _unzstd,
    }  # fmt: skip
    if ending not in unpackers:
        raise FormatError(
            "file", path, expected="CSV that is plain, .gz, .bz2, .zst or .deflate",
            got=f"{ending}, of which only Spark reads the header", hint="pack it as .gz",
        )  # fmt: skip
    return unpackers[ending]


def _inflate(raw: bytes) -> bytes:
    return zlib.decompressobj().decompress(raw) if raw else b""


def _gunzip(raw: bytes) -> bytes:
    return _members(raw, lambda: zlib.decompressobj(wbits=31))


def _bunzip(raw: bytes) -> bytes:
    return _members(raw, bz2.BZ2Decompressor)


def _members(raw: bytes, new: Callable[[], zlib._Decompress] | type[bz2.BZ2Decompressor]) -> bytes:
    """Files may hold several compressed streams one after the other."""
    parts: list[bytes] = []
    while raw:
        unpacker = new()
        parts.append(unpacker.decompress(raw))
        raw = unpacker.unused_data if unpacker.eof else b""
    return b"".join(parts)


def _unzstd(raw: bytes) -> bytes:
    import pyarrow as pa

    parts: list[bytes] = []
    with pa.CompressedInputStream(pa.PythonFile(io.BytesIO(raw), mode="r"), "zstd") as stream:
        while True:
            try:
                part = stream.read(16 * 1024)
            except OSError:  # the beginning of a stream ends in the middle of a frame
                if parts:
                    break
                raise
            if not part:
                break
            parts.append(part)
    return b"".join(parts)
