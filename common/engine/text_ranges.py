"""Text files as byte ranges: which task reads what, and the blocks of whole pieces that a range owns.

A piece is what stands between two separators: a line, or what white space parts. A range owns the pieces that
start in it: what began before it is left to the range before, and what it began is read to its end. So every
piece is in exactly one range, however the files are cut. Imported by workers: no Spark, no settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import IO

BLOCK_BYTES = 16 * 1024 * 1024
# To open a file costs about as much as to read so many bytes of it.
OPENING_BYTES = 16 * 1024
_STEP_BYTES = 64 * 1024
_TAIL_BYTES = 4 * 1024


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file of text.

    Attributes:
        path: As Python opens it.
        size_bytes: On disk.
        packing: The ending of its compression; empty for none.
        group: What its words are counted for beside others': a partition folder's value, as text.
    """

    path: str
    size_bytes: int
    packing: str = ""
    group: str | None = None


@dataclass(frozen=True, slots=True)
class TextRange:
    """The pieces of a file that start at `start_bytes` or later, and before `end_bytes`; None is its end."""

    file: TextFile
    start_bytes: int = 0
    end_bytes: int | None = None


def tasks_of(
    files: Sequence[TextFile], *, split_bytes: int, splittable: bool = True
) -> tuple[tuple[TextRange, ...], ...]:
    """The ranges that each task reads: large files in parts, small ones together.

    Args:
        files: What is to be read; files of 0 bytes are left out.
        split_bytes: About what a task reads, on disk.
        splittable: False where a part of a file cannot be read without what is before it.

    >>> small = [TextFile(name, 100_000) for name in "abc"]
    >>> [len(task) for task in tasks_of([TextFile("l", 900_000), *small], split_bytes=400_000)]
    [1, 1, 1, 3]
    """
    tasks: list[tuple[TextRange, ...]] = []
    together: list[TextRange] = []
    load_bytes = 0
    for file in files:
        parts = _parts(file, split_bytes, splittable=splittable)
        if len(parts) > 1:
            tasks += [(part,) for part in parts]
            continue
        cost_bytes = file.size_bytes + OPENING_BYTES if parts else 0
        if together and load_bytes + cost_bytes > max(split_bytes, 2 * OPENING_BYTES):
            tasks.append(tuple(together))
            together, load_bytes = [], 0
        together += parts
        load_bytes += cost_bytes
    return (*tasks, tuple(together)) if together else tuple(tasks)


def _parts(file: TextFile, split_bytes: int, *, splittable: bool) -> list[TextRange]:
    if not file.size_bytes:
        return []
    if file.packing or not splittable:
        return [TextRange(file)]
    count = -(-file.size_bytes // split_bytes)
    cuts = [file.size_bytes * number // count for number in range(count + 1)]
    return [TextRange(file, start, end) for start, end in pairwise(cuts)]


def range_blocks(
    stream: IO[bytes], part: TextRange, *, cut_at: bytes, block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[int, bytes]]:
    """The pieces that a range owns, in blocks.

    Args:
        stream: The file, at its beginning; only a part of a plain file needs to seek in it.
        part: The range.
        cut_at: The ASCII bytes that end a piece.
        block_bytes: About the size of a block; a longer piece is a block of its own.

    Yields:
        (offset, block): where the block begins in the file's content, which is what comes out of a packed
        file. Every block ends behind a separator or at the end of the file.
    """
    separator = re.compile(b"[" + re.escape(cut_at) + b"]")
    offset, data = _first_piece(stream, part, separator)
    end_bytes = part.end_bytes
    # What is read and not handed on, in parts: so each byte of a long piece is searched and copied once.
    held, held_bytes, searched = [data], len(data), 0
    while end_bytes is None or offset + held_bytes < end_bytes:
        wanted = block_bytes if end_bytes is None else min(block_bytes, end_bytes - offset - held_bytes)
        more = stream.read(wanted)
        if not more:
            break
        held.append(more)
        held_bytes += len(more)
        if end_bytes is not None and offset + held_bytes >= end_bytes:
            break
        if held_bytes < block_bytes:
            continue
        block, held = _cut(held, searched, separator)
        searched = len(held)
        if block:
            yield offset, block
            offset, held_bytes = offset + len(block), held_bytes - len(block)
    data = b"".join(held)
    if end_bytes is not None:
        if offset >= end_bytes:
            return
        data = _finished(stream, data, end_bytes - offset, separator)
    if data:
        yield offset, data


def _first_piece(stream: IO[bytes], part: TextRange, separator: re.Pattern[bytes]) -> tuple[int, bytes]:
    """Where the first piece starts that does not start before the range, and what was read of it.

    Nothing is looked for past the range: in a piece that is longer, each range would read to its end.
    """
    if not part.start_bytes:
        return 0, b""
    position = part.start_bytes - 1
    stream.seek(position)
    while (part.end_bytes is None or position < part.end_bytes) and (data := stream.read(_STEP_BYTES)):
        found = separator.search(data)
        if found:
            return position + found.end(), data[found.end() :]
        position += len(data)
    return position, b""


def _cut(held: list[bytes], searched: int, separator: re.Pattern[bytes]) -> tuple[bytes, list[bytes]]:
    """What ends behind the last separator, and what follows; the first `searched` parts hold none."""
    for at in range(len(held) - 1, searched - 1, -1):
        cut = _last_end(held[at], separator)
        if cut:
            return b"".join([*held[:at], held[at][:cut]]), [held[at][cut:], *held[at + 1 :]]
    return b"", held


def _last_end(data: bytes, separator: re.Pattern[bytes]) -> int:
    """The place behind the last separator; 0 when there is none."""
    window = _TAIL_BYTES
    while True:
        start = max(0, len(data) - window)
        found = [match.end() for match in separator.finditer(data, start)]
        if found or not start:
            return found[-1] if found else 0
        window *= 8


def _finished(stream: IO[bytes], data: bytes, own_bytes: int, separator: re.Pattern[bytes]) -> bytes:
    """The data up to the end of the last piece that starts within the first `own_bytes`."""
    parts, position = [data], own_bytes - 1
    while True:
        last = parts[-1]
        found = separator.search(last, max(position, 0))
        if found:
            parts[-1] = last[: found.end()]
            break
        position -= len(last)
        more = stream.read(_STEP_BYTES)
        if not more:
            break
        parts.append(more)
    return b"".join(parts)
