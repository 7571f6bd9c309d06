"""What a worker does with its part of text files: read, count, and send on (word, count).

Imported by workers: no session, no settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from common.core.errors import ValueMalformedError
from common.engine.text_ranges import BLOCK_BYTES, TextFile, TextRange
from common.engine.text_reader import undecodable, utf8_blocks
from common.transforms.words_count import (
    HELD_BYTES,
    UndecodableBytesError,
    counts_of_block,
    summed_batches,
)
from common.transforms.words_packed import packed_counts
from common.transforms.words_rules import OnDecodeError, WordRules
from common.transforms.words_tally import LongChunkError

if TYPE_CHECKING:
    import pyarrow as pa

# So many counts are packed at once: a part of a bucket should be worth a message of its own.
_PACKED_ROWS = 1 << 20

Tasks = tuple[tuple[TextRange, ...], ...]
Batches = Callable[[Iterable["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


@dataclass(frozen=True)
class Work:
    """What the tasks are to do.

    Attributes:
        tasks: The ranges that each one reads.
        rules: What a word is.
        encoding: Of the files.
        on_decode_error: What happens to bytes that are no text of it.
        names: The columns of the counts: first, where they are asked for, the file's path and its group.
        by_file: The first column is the path.
        by_group: The next one is the group.
        block_bytes: About so much text is counted at once.
        held_bytes: So much of the counts is kept, to be summed with those of the next blocks.
        buckets: Counts are packed into so many; None sends them as rows.
    """

    tasks: Tasks
    rules: WordRules
    encoding: str
    on_decode_error: OnDecodeError
    names: tuple[str, ...]
    by_file: bool
    by_group: bool
    block_bytes: int = BLOCK_BYTES
    held_bytes: int = HELD_BYTES
    buckets: int | None = None

    def key_of(self, file: TextFile) -> tuple[str | None, ...]:
        """The values of the first columns."""
        return (*([file.path] if self.by_file else []), *([file.group] if self.by_group else []))


@dataclass(frozen=True)
class _Piece:
    """A block of a file."""

    file: TextFile
    offset: int
    utf8: bytes
    replaced: int


def counting(work: Work) -> Batches:
    """A function for mapInArrow: from numbers of tasks to counts; a NULL word counts replacements."""
    held_bytes = 0 if work.by_file else work.held_bytes

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                gathered = _gathered(_pieces(work.tasks[number or 0], work), work)
                counts = (found for pieces in gathered for found in _counts(pieces, work))
                if work.buckets is None:
                    yield from summed_batches(counts, held_bytes=held_bytes)
                else:
                    sums = summed_batches(counts, held_bytes=held_bytes, rows=_PACKED_ROWS)
                    yield from packed_counts(sums, buckets=work.buckets)

    return count


def _pieces(parts: Sequence[TextRange], work: Work) -> Iterator[_Piece]:
    replacing = work.on_decode_error == "replace"
    for part in parts:
        blocks = utf8_blocks(
            part,
            cut_at=work.rules.splits_at,
            encoding=work.encoding,
            replace=replacing,
            block_bytes=work.block_bytes,
        )
        for offset, decoded in blocks:
            yield _Piece(part.file, offset, *decoded)


def _gathered(pieces: Iterable[_Piece], work: Work) -> Iterator[list[_Piece]]:
    """Small pieces together, as far as their words are counted together."""
    together: list[_Piece] = []
    load_bytes = 0
    for piece in pieces:
        apart = bool(together) and work.key_of(piece.file) != work.key_of(together[0].file)
        if together and (apart or load_bytes + len(piece.utf8) > work.block_bytes):
            yield together
            together, load_bytes = [], 0
        together.append(piece)
        load_bytes += len(piece.utf8)
    if together:
        yield together


def _counts(pieces: list[_Piece], work: Work) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    whole = pieces[0].utf8 if len(pieces) == 1 else b"\n".join(piece.utf8 for piece in pieces)
    try:
        found = counts_of_block(whole, work.rules, on_decode_error=work.on_decode_error)
    except UndecodableBytesError as error:
        piece, offset = _place(error.offset_bytes, pieces)
        raise undecodable(piece.file, offset, encoding=work.encoding) from None
    except LongChunkError as error:
        piece, offset = _place(error.offset_bytes, pieces)
        expected = f"text with something between its {error.what} every 2 GiB at least"
        got = f"nothing that parts {error.what} from about byte {offset:,} on"
        hint = "count it with --tokenizer characters, or leave the file out"
        raise ValueMalformedError("file", piece.file.path, expected=expected, got=got, hint=hint) from None
    yield _keyed(found.counts.columns, pieces[0].file, work)
    replaced = found.undecodable + sum(piece.replaced for piece in pieces)
    if replaced:
        yield _keyed([pa.nulls(1, pa.string()), pa.array([replaced], pa.int64())], pieces[0].file, work)


def _keyed(counts: Sequence[pa.Array[Any]], file: TextFile, work: Work) -> pa.RecordBatch:
    """The counts behind the columns that say what they are of."""
    import pyarrow as pa

    keys = [pa.repeat(pa.scalar(value, pa.string()), len(counts[0])) for value in work.key_of(file)]
    return pa.RecordBatch.from_arrays([*keys, *counts], names=list(work.names))


def _place(offset: int, pieces: Sequence[_Piece]) -> tuple[_Piece, int]:
    """Which piece a place of the joined text is in, and where in its file."""
    for piece in pieces[:-1]:
        if offset <= len(piece.utf8):
            return piece, piece.offset + offset
        offset -= len(piece.utf8) + 1
    return pieces[-1], pieces[-1].offset + offset
