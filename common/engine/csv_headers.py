"""The column names that each CSV file carries, and the groups of files whose names agree."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from common.core.errors import FileCorruptError, ParameterError, SchemaConflictError
from common.engine.csv_records import first_record
from common.engine.data_files import DataFile
from common.engine.file_heads import text_heads
from common.engine.reader_options import CsvDialect
from common.engine.storage import Storage


@dataclass(frozen=True)
class CsvHeader:
    """One file's columns in their order; None when the file holds no record at all."""

    file: DataFile
    names: tuple[str, ...] | None


def read_headers(files: Sequence[DataFile], *, dialect: CsvDialect, storage: Storage) -> list[CsvHeader]:
    """The first record of every file as column names, `_c0`, … without a header.

    Raises:
        FileCorruptError: undecodable text, a damaged compression, or a first record without end.
        SchemaConflictError: a file names a column twice (without regard to case).
        ParameterError: an encoding that Python does not know.
    """
    try:
        codecs.lookup(dialect.encoding)
    except LookupError as error:
        hint = "write it as UTF-8, ISO-8859-1, UTF-16, windows-1252, …"
        raise ParameterError(
            "reader option", "encoding", expected="a character set", got=dialect.encoding, hint=hint
        ) from error
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(lambda file: _read(file, dialect, storage), files))


def _read(file: DataFile, dialect: CsvDialect, storage: Storage) -> CsvHeader:
    if file.size_bytes == 0:
        return CsvHeader(file, None)
    for content, whole in text_heads(file.path, storage=storage, size_bytes=file.size_bytes):
        text = _decoded(content, file.path, dialect.encoding, whole=whole)
        record = first_record(text, dialect=dialect, whole=whole)
        if record is not None:
            return CsvHeader(file, _names(record, file.path, dialect) if record else None)
    raise FileCorruptError(
        "file", file.path, expected="a first record of at most 32 MiB", got="no end of it",
        hint="a quote may lack its partner, or the quote, sep or lineSep option may be another",
    )  # fmt: skip


def _names(record: Sequence[str], path: str, dialect: CsvDialect) -> tuple[str, ...]:
    if not dialect.header:
        return tuple(f"_c{index}" for index in range(len(record)))
    names = tuple(name or f"_c{index}" for index, name in enumerate(record))
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise SchemaConflictError("file", path, expected="each column once", got=f"`{name}` twice")
        seen.add(name.lower())
    return names


def _decoded(content: bytes, path: str, encoding: str, *, whole: bool) -> str:
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if wide and encoding.upper() in ("UTF-8", "UTF8"):
        hint = "name it with the reader option encoding=UTF-16"
        raise FileCorruptError("file", path, expected=f"{encoding} text", got="UTF-16 text", hint=hint)
    if encoding.upper() in ("UTF-16", "UTF16") and not wide:
        encoding = "UTF-16BE"  # Java's reading of it; Python would take the machine's byte order
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(content, final=whole)
    except UnicodeDecodeError as error:
        hint = "name its character set with the reader option encoding=…, for example ISO-8859-1"
        got = f"a byte that is not, at {error.start}"
        raise FileCorruptError("file", path, expected=f"{encoding} text", got=got, hint=hint) from error
    return text.removeprefix("\ufeff")
