"""Words of a block of bytes, counted in Arrow: what runs in a worker for each part of a file."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from common.transforms.words_chunks import words_of_chunks
from common.transforms.words_rows import occurrences
from common.transforms.words_rules import NAMED_TOKENIZERS, OnDecodeError, WordRules
from common.transforms.words_tally import LONGEST_BYTES, LongChunkError, chunk_counts
from common.transforms.words_tokens import lines_of, normalizer_of, tokenizer_of, words_of

if TYPE_CHECKING:
    import pyarrow as pa

EMITTED_ROWS = 100_000
HELD_BYTES = 32 << 20
_REPLACEMENT = "\ufffd"
_DECODED_BYTES = 16 << 20


class UndecodableBytesError(ValueError):
    """Raised when a block is not UTF-8. Picklable; who knows the file adds its name and the block's offset.

    Attributes:
        offset_bytes: Where in the block.
    """

    def __init__(self, offset_bytes: int) -> None:
        super().__init__(offset_bytes)
        self.offset_bytes = offset_bytes


class BlockCounts(NamedTuple):
    """The counts of one block; a word may stand in several rows, whose counts are to be summed."""

    counts: pa.RecordBatch  # word: string, count: int64
    undecodable: int  # replacements made (U+FFFD), 0 with "fail"


def summed_batches(
    batches: Iterable[pa.RecordBatch], *, held_bytes: int = HELD_BYTES, rows: int = EMITTED_ROWS
) -> Iterator[pa.RecordBatch]:
    """Counts of many blocks, summed as far as a bounded dictionary can; past the bound they are sent on.

    Args:
        batches: Any key columns, then `count`; the same in all.
        held_bytes: What is kept of them at most, besides the last one.
        rows: What a batch that is sent on holds at most.
    """
    held: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in batches:
        held.append(batch)
        size_bytes += batch.nbytes
        if size_bytes > held_bytes:
            held = summed(held).to_batches()
            size_bytes = sum(each.nbytes for each in held)
            if size_bytes > held_bytes // 2:
                yield from _slices(held, rows)
                held, size_bytes = [], 0
    if held:
        yield from _slices(summed(held).to_batches(), rows)


def summed(batches: list[pa.RecordBatch]) -> pa.Table:
    """Counts with the same key columns, each combination of keys once.

    Args:
        batches: At least one; any key columns, then `count`.
    """
    import pyarrow as pa

    table = pa.Table.from_batches(batches)
    names = table.column_names
    sums = table.group_by(names[:-1], use_threads=False).aggregate([(names[-1], "sum")])
    return sums.select([*names[:-1], f"{names[-1]}_sum"]).rename_columns(names)


def _slices(batches: list[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def counts_of_block(
    block: bytes, rules: WordRules, *, on_decode_error: OnDecodeError = "fail"
) -> BlockCounts:
    """Count the words of a block that begins and ends at an end of the text or at `rules.splits_at`.

    Args:
        block: UTF-8, without byte order mark.
        rules: What a word is.
        on_decode_error: "fail" raises; "replace" puts U+FFFD as bytes.decode does, and counts them.

    Raises:
        UndecodableBytesError: the block is not UTF-8, with "fail".
        LongChunkError: more than 2 GiB of it have nothing that parts words, or lines where the rules need
            whole ones.

    Memory: the block, a copy of it, some 40 bytes for each of its words, and its distinct words.
    """
    import pyarrow as pa

    text, replaced = valid_utf8(block, on_decode_error)
    if rules.normalize != "none" and rules.cuts_normal_lines and not text.isascii():
        text = normalizer_of(rules)(text.decode()).encode()
    if rules.tokenizer == "characters" and rules.cuts_normal_lines:
        counts = _characters(text, rules)
    elif rules.cuts_normal_lines:
        counts = _chunks(text, rules)
    elif len(text) > LONGEST_BYTES:  # a block is hardly longer than its longest line
        raise LongChunkError(0, "lines")
    elif rules.tokenizer in NAMED_TOKENIZERS:
        counts = _runs(text, rules)
    else:
        counts = _lines(text, rules)
    return BlockCounts(pa.record_batch(counts, names=["word", "count"]), replaced)


def valid_utf8(block: bytes, on_decode_error: OnDecodeError) -> tuple[bytes, int]:
    """The block as valid UTF-8, and how many replacements made it so.

    Raises:
        UndecodableBytesError: it is not valid, with "fail".
    """
    import pyarrow as pa

    try:
        pa.array([block], pa.large_binary()).cast(pa.large_string())  # checks all of it
    except pa.ArrowInvalid:
        if on_decode_error == "fail":
            raise UndecodableBytesError(first_undecodable(block)) from None
    else:
        return block, 0
    text = block.decode("utf-8", "replace")
    replaced = text.count(_REPLACEMENT) - block.count(_REPLACEMENT.encode())
    return text.encode(), replaced


def first_undecodable(block: bytes) -> int:
    """The offset of the first byte that is not UTF-8, or the length."""
    try:
        block.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return len(block)


def _chunks(text: bytes, rules: WordRules) -> list[pa.Array[Any]]:
    """Distinct chunks first, then the words of each; they are summed with those of other blocks."""
    import pyarrow as pa

    counted = chunk_counts(text, rules)
    found = words_of_chunks(counted.chunks, rules)
    return [found.words, pa.array(counted.counts[found.owners.to_numpy()], pa.int64())]


def _characters(text: bytes, rules: WordRules) -> list[pa.Array[Any]]:
    """Code points counted as numbers; the rule is asked once for each that occurs."""
    import numpy as np
    import pyarrow as pa

    rule = words_of(rules)
    decoder = codecs.getincrementaldecoder("utf-8")()
    points = np.zeros(1, np.int64)
    for start in range(0, len(text), _DECODED_BYTES):  # as numbers it is four times as large
        part = decoder.decode(text[start : start + _DECODED_BYTES]).encode("utf-32-le")
        found = np.bincount(np.frombuffer(part, np.uint32), minlength=len(points))
        found[: len(points)] += points
        points = found
    counts: Counter[str] = Counter()
    for point in np.flatnonzero(points).tolist():
        for word in rule(chr(point)):
            counts[word] += int(points[point])
    return [pa.array(list(counts), pa.string()), pa.array(list(counts.values()), pa.int64())]


def _runs(text: bytes, rules: WordRules) -> list[pa.Array[Any]]:
    """N-grams: the words of each line as numbers."""
    import numpy as np
    import pyarrow as pa

    found = occurrences(pa.array([text], pa.large_binary()).cast(pa.large_string()), rules)
    return [found.words, pa.array(np.bincount(found.ids, minlength=len(found.words)), pa.int64())]


def _lines(text: bytes, rules: WordRules) -> list[pa.Array[Any]]:
    """Line by line: for what may look at all of a line."""
    import pyarrow as pa

    tokens = tokenizer_of(rules)
    counts: Counter[str] = Counter()
    for line in lines_of(text.decode()):
        counts.update(tokens(line))
    return [pa.array(list(counts), pa.string()), pa.array(list(counts.values()), pa.int64())]
