"""Text files that are none are found before Spark starts: binary content shows itself by NUL bytes."""

from __future__ import annotations

from collections.abc import Sequence

from common.core.errors import FormatError
from common.engine.data_files import DataFile
from common.engine.file_heads import text_heads
from common.engine.storage import Storage
from common.engine.text_encodings import encoding_of, is_wide

# Of more files only these many are looked at, evenly spread.
LOOKED_AT = 2_000


def check_text_files(files: Sequence[DataFile], *, encoding: str, storage: Storage) -> None:
    """Refuse binary files by their first bytes.

    Args:
        files: What would be read as text.
        encoding: Of the files; where NUL bytes are a part of plain text, all pass.
        storage: Where they are.

    Raises:
        UnknownNameError: no such encoding.
        FormatError: a file that holds NUL bytes.
        FileCorruptError: packed content that is damaged.
    """
    if is_wide(encoding_of(encoding)):
        return
    step = -(-len(files) // LOOKED_AT) or 1
    for file in files[::step]:
        if not file.size_bytes:
            continue
        head, _ = next(text_heads(file.path, storage=storage, size_bytes=file.size_bytes))
        place = head.find(b"\0")
        if place >= 0:
            raise FormatError(
                "file", file.path, expected=f"text in {encoding}", got=f"a NUL at byte {place:,}",
                hint="leave it out if it is binary, or name its encoding, such as --encoding utf-16",
            )  # fmt: skip
