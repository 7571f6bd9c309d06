"""Which format an input is: told by the files' endings, else by their first bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal

from common.core.errors import FileCorruptError, FormatError
from common.engine.storage import FileEntry, Storage
from common.settings.inputs import InputRequest

FileFormat = Literal["parquet", "orc", "csv", "json", "text"]

_ENDINGS: dict[str, FileFormat] = {
    ".parquet": "parquet", ".pq": "parquet", ".orc": "orc", ".csv": "csv", ".tsv": "csv", ".json": "json",
    ".jsonl": "json", ".ndjson": "json", ".txt": "text", ".text": "text", ".log": "text",
}  # fmt: skip
_MAGIC: dict[bytes, FileFormat] = {b"PAR1": "parquet", b"ORC": "orc"}
COMPRESSIONS = frozenset({".gz", ".bz2", ".zst", ".deflate", ".snappy", ".lz4"})
TEXT_COMPRESSIONS = (".gz", ".bz2", ".zst")
_ARCHIVES = frozenset({".zip", ".xz", ".7z", ".rar", ".br", ".tar", ".tgz", ".lzma", ".z"})
_BINARY = frozenset({"parquet", "orc"})


def compression_of(path: str) -> str:
    """The ending by which Spark decompresses a file, lower-case; empty for none.

    >>> compression_of("a.csv.gz"), compression_of("a.snappy.parquet")
    ('.gz', '')
    """
    ending = PurePosixPath(path).suffix.lower()
    return ending if ending in COMPRESSIONS else ""


def format_of_name(path: str) -> FileFormat | None:
    """The format that a file's ending says, a compression's ending aside.

    >>> format_of_name("a.TSV.gz"), format_of_name("part-00000")
    ('csv', None)
    """
    pure = PurePosixPath(path)
    if compression_of(path):
        pure = pure.with_suffix("")
    return _ENDINGS.get(pure.suffix.lower())


def are_tab_separated(request: InputRequest, *, paths: Sequence[str]) -> bool:
    """True when the CSV files are all named .tsv.

    Raises:
        FormatError: some are, some are not, and no separator is named.
    """
    tabs = [
        path
        for path in paths
        if PurePosixPath(path.removesuffix(compression_of(path))).suffix.lower() == ".tsv"
    ]
    if not tabs or len(tabs) == len(paths):
        return bool(tabs)
    if {"sep", "delimiter"} & {name.lower() for name in request.options}:
        return False
    other = next(path for path in paths if path not in tabs)
    hint = f"name it with --{request.name}-option sep=…"
    got = f"tabs (`{tabs[0]}`) and commas (`{other}`)"
    raise FormatError("input", request.name, expected="one separator", got=got, hint=hint)


def resolve_format(request: InputRequest, *, files: Sequence[FileEntry], storage: Storage) -> FileFormat:
    """The one format of all files.

    Args:
        request: What the user asked for; a format named there wins over the endings.
        files: At least one file.
        storage: Where they are; first bytes are read only of files whose ending says nothing.

    Raises:
        FormatError: unclear, mixed, or packed in a way that Spark does not read.
        FileCorruptError: a Parquet or ORC file of 0 bytes.
    """
    for entry in files:
        _check_packing(entry)
    if request.encoding is not None:
        for entry in files:
            _check_text(entry)
        return "text"
    chosen = _told(request, files, storage) if request.format == "auto" else request.format
    if chosen in _BINARY:
        _check_binary(files, chosen)
    return chosen


def _told(request: InputRequest, files: Sequence[FileEntry], storage: Storage) -> FileFormat:
    examples: dict[FileFormat | None, str] = {}
    for entry in files:
        told = format_of_name(entry.path) or _sniffed(entry, storage)
        if told is not None or entry.size_bytes > 0 or len(files) == 1:
            examples.setdefault(told, entry.path)
    flag = f"--{request.name}-format"
    if None in examples or not examples:
        unclear = examples.get(None) or files[0].path
        raise FormatError(
            "input", request.name, expected="file names that end in .parquet, .orc, .csv, .json, .txt, …",
            got=f"`{unclear}`, which tells nothing", hint=f"name it with {flag}",
        )  # fmt: skip
    if len(examples) > 1:
        found = ", ".join(f"{kind} (`{path}`)" for kind, path in examples.items())
        hint = f"use a glob that takes one kind, or name the format of all with {flag}"
        raise FormatError("input", request.name, expected="files of one format", got=found, hint=hint)
    (told,) = examples
    assert told is not None
    return told


def _sniffed(entry: FileEntry, storage: Storage) -> FileFormat | None:
    first = storage.head(entry.path, size_bytes=4) if entry.size_bytes else b""
    return next((kind for magic, kind in _MAGIC.items() if first.startswith(magic)), None)


def _check_packing(entry: FileEntry) -> None:
    ending = PurePosixPath(entry.path).suffix.lower()
    if ending in _ARCHIVES:
        raise FormatError(
            "file", entry.path, expected=f"no packing, or one of {', '.join(sorted(COMPRESSIONS))}",
            got=ending, hint="unpack it first",
        )  # fmt: skip


def _check_text(entry: FileEntry) -> None:
    kind = format_of_name(entry.path)
    if kind in _BINARY:
        hint = "name the column that holds the text with --column"
        raise FormatError("file", entry.path, expected="a file of text", got=f"a {kind} file", hint=hint)
    if compression_of(entry.path) not in ("", *TEXT_COMPRESSIONS):
        expected, got = f"text that is plain, {', '.join(TEXT_COMPRESSIONS)}", compression_of(entry.path)
        raise FormatError("file", entry.path, expected=expected, got=got, hint="pack it as .gz")


def _check_binary(files: Sequence[FileEntry], kind: FileFormat) -> None:
    for entry in files:
        if compression_of(entry.path) and format_of_name(entry.path) == kind:
            got = f"the whole file packed as {compression_of(entry.path)}"
            raise FormatError("file", entry.path, expected=f"plain {kind}", got=got, hint="unpack it first")
        if entry.size_bytes == 0:
            raise FileCorruptError("file", entry.path, expected=f"a {kind} file", got="0 bytes")
