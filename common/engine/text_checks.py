"""Text files that are none are found before Spark starts: by NUL bytes, or by how their content begins."""

from __future__ import annotations

from collections.abc import Sequence

from common.core.errors import FormatError
from common.engine.data_files import DataFile
from common.engine.file_heads import text_heads
from common.engine.storage import Storage
from common.engine.text_encodings import encoding_of, is_utf8, is_wide

# What no text begins with: another encoding's mark, or what a program packed.
_UTF16, _PACKED = "--encoding utf-16", "unpack it, or let its name end in {ending}"
_BEGINNINGS = (
    (b"\xff\xfe", "the mark of UTF-16", _UTF16),
    (b"\xfe\xff", "the mark of UTF-16", _UTF16),
    (b"\x1f\x8b\x08", "gzip data", _PACKED.format(ending=".gz")),
    (b"BZh91AY&SY", "bzip2 data", _PACKED.format(ending=".bz2")),
    (b"\x28\xb5\x2f\xfd", "zstd data", _PACKED.format(ending=".zst")),
    (b"\xfd7zXZ\0", "xz data", "unpack it first"),
    (b"PK\x03\x04", "a zip archive, or what an office program saved", "take the text out of it first"),
    (b"%PDF-", "a PDF", "take the text out of it first"),
)
# Of more files only these many are looked at, evenly spread.
LOOKED_AT = 2_000


def check_text_files(files: Sequence[DataFile], *, encoding: str, storage: Storage) -> None:
    """Refuse files that are no text by their first bytes.

    Args:
        files: What would be read as text.
        encoding: Of the files; where NUL bytes are a part of plain text, all pass. The beginnings tell only
            where they cannot be text, which is in UTF-8.
        storage: Where they are.

    Raises:
        UnknownNameError: no such encoding.
        FormatError: a file that holds NUL bytes, or begins as no text does.
        FileCorruptError: packed content that is damaged.
    """
    if is_wide(encoding_of(encoding)):
        return
    step = -(-len(files) // LOOKED_AT) or 1
    for file in files[::step]:
        if not file.size_bytes:
            continue
        head, _ = next(text_heads(file.path, storage=storage, size_bytes=file.size_bytes))
        if is_utf8(encoding):
            _refuse_beginning(file.path, head)
        place = head.find(b"\0")
        if place >= 0:
            raise FormatError(
                "file", file.path, expected=f"text in {encoding}", got=f"a NUL at byte {place:,}",
                hint="leave it out if it is binary, or name its encoding, such as --encoding utf-16",
            )  # fmt: skip


def _refuse_beginning(path: str, head: bytes) -> None:
    for beginning, got, hint in _BEGINNINGS:
        if head.startswith(beginning):
            raise FormatError("file", path, expected="text in utf-8", got=got, hint=hint)
