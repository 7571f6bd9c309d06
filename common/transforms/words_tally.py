"""Distinct chunks of a text and how often each occurs: counted as numbers, by sorting.

A chunk of up to 8 bytes is a number of 64 bits, one of up to 16 a pair of them. Sorting numbers is
vectorised, and several times quicker than hashing strings; longer chunks are hashed in Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from common.transforms.words_chunks import spacing
from common.transforms.words_rules import WordRules

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    Numbers = NDArray[np.uint64]
    Integers = NDArray[np.int64]

_PIECE_BYTES = 1 << 20
_NUMBER_BYTES = 8
_PAIR_BYTES = 2 * _NUMBER_BYTES
LONGEST_BYTES = 2**31 - 64  # Arrow's strings and the offsets here are of 32 bits
# So many pairs are sorted at once: the low bits of what is sorted hold a pair's place.
_PLACE_BITS = 21
_MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)  # odd: the high bits of a product hang on all bits


class Tally(NamedTuple):
    """Chunks and how often each occurs; one chunk may stand in several rows."""

    chunks: pa.Array[Any]  # string
    counts: Integers


class LongChunkError(ValueError):
    """Raised when a chunk, or a line, is longer than 2 GiB, which Arrow's strings cannot be.

    Attributes:
        offset_bytes: About where in the text it begins.
        what: "words" when nothing parts words there, "lines" when nothing ends a line.
    """

    def __init__(self, offset_bytes: int, what: str = "words") -> None:
        super().__init__(offset_bytes, what)
        self.offset_bytes, self.what = offset_bytes, what


class _Piece(NamedTuple):
    """The chunks of a piece of text."""

    numbers: Numbers  # the bytes of those of up to 8
    pairs: tuple[Numbers, Numbers]  # the first 8 bytes, and the others, of those of up to 16
    strings: pa.Array[Any]


def chunk_counts(text: bytes, rules: WordRules) -> Tally:
    """The chunks of a text of valid UTF-8.

    Args:
        text: Any number of lines.
        rules: Whose `cuts_normal_lines` is true.

    Raises:
        LongChunkError: a chunk is longer than 2 GiB.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    spaced = text.translate(spacing(rules))
    longest = _PAIR_BYTES if b"\0" not in text else 0  # a NUL looks like the end of a number
    pieces = [_cut(piece, longest) for piece in _pieces(spaced)]
    if not pieces:
        return Tally(pa.array([], pa.string()), np.array([], np.int64))
    numbers = _sorted_numbers(np.concatenate([piece.numbers for piece in pieces]))
    first, second = (np.concatenate([piece.pairs[at] for piece in pieces]) for at in (0, 1))
    step = 1 << _PLACE_BITS
    pairs = [
        _sorted_pairs(first[at : at + step], second[at : at + step]) for at in range(0, len(first), step)
    ]
    strings = pc.value_counts(pa.chunked_array([piece.strings for piece in pieces], pa.string()))
    others = Tally(strings.field(0), strings.field(1).to_numpy())
    tallies = [numbers, *pairs, others]
    return Tally(
        pa.concat_arrays([tally.chunks for tally in tallies]),
        np.concatenate([tally.counts for tally in tallies]),
    )


def _cut(spaced: bytes, longest: int) -> _Piece:
    """The chunks between spaces: those of up to `longest` bytes as numbers."""
    import numpy as np
    import pyarrow as pa

    data = np.frombuffer(b"".join((b" ", spaced, b" " * _PAIR_BYTES)), np.uint8)
    spaces = np.flatnonzero(data == ord(" ")).astype(np.int32)
    starts, sizes = spaces[:-1] + np.int32(1), np.diff(spaces) - np.int32(1)
    at_each_byte: Numbers = np.ndarray(
        len(data) - _NUMBER_BYTES + 1, np.dtype("<u8"), data.data, strides=(1,)
    )
    masks = np.array([(1 << (8 * size)) - 1 for size in range(_NUMBER_BYTES + 1)], np.uint64)
    short = (sizes > 0) & (sizes <= min(longest, _NUMBER_BYTES))
    numbers = at_each_byte[starts[short]] & masks[sizes[short]]
    middle = (sizes > _NUMBER_BYTES) & (sizes <= longest)
    places = starts[middle]
    rest = at_each_byte[places + _NUMBER_BYTES] & masks[sizes[middle] - _NUMBER_BYTES]
    other = sizes > longest
    strings = _strings(data, starts[other], sizes[other]) if other.any() else pa.array([], pa.string())
    return _Piece(numbers, (at_each_byte[places], rest), strings)


def _strings(data: NDArray[np.uint8], starts: NDArray[np.int32], sizes: NDArray[np.int32]) -> pa.Array[Any]:
    """The chunks as strings: every other one of the array that has also what is between them."""
    import numpy as np
    import pyarrow as pa

    ends = np.column_stack([starts, starts + sizes]).ravel().astype(np.int32)
    offsets = pa.py_buffer(ends.tobytes())
    with_gaps = pa.StringArray.from_buffers(len(ends) - 1, offsets, pa.py_buffer(data.tobytes()))
    return with_gaps.take(np.arange(0, len(ends), 2))


def _sorted_numbers(numbers: Numbers) -> Tally:
    import numpy as np

    ordered = np.sort(numbers)
    starts = _run_starts(ordered[1:] != ordered[:-1], len(ordered))
    return Tally(_text(ordered[starts[:-1]], _NUMBER_BYTES), np.diff(starts))


def _sorted_pairs(first: Numbers, second: Numbers) -> Tally:
    """Pairs in the order of a hash, with the place of each in its low bits.

    Pairs of one hash may alternate: then they are several rows each, whose counts are as right.
    """
    import numpy as np

    place = np.uint64((1 << _PLACE_BITS) - 1)
    mixed = first * np.uint64(_MIX[0]) + second * np.uint64(_MIX[1])
    keys = (mixed & ~place) | np.arange(len(first), dtype=np.uint64)
    order = (np.sort(keys) & place).astype(np.int64)
    first, second = first[order], second[order]
    starts = _run_starts((first[1:] != first[:-1]) | (second[1:] != second[:-1]), len(first))
    both = np.column_stack([first[starts[:-1]], second[starts[:-1]]]).ravel()
    return Tally(_text(both, _PAIR_BYTES), np.diff(starts))


def _run_starts(changes: NDArray[np.bool_], size: int) -> Integers:
    """Where each run of equal values starts, and the end of the last one."""
    import numpy as np

    inner = np.flatnonzero(changes) + 1
    return np.concatenate([[0], inner, [size]]) if size else np.zeros(1, np.int64)


def _text(numbers: Numbers, width: int) -> pa.Array[Any]:
    import pyarrow as pa

    return pa.array(numbers.astype("<u8").view(f"S{width}"), pa.binary()).cast(pa.string())


def _pieces(spaced: bytes) -> Iterator[bytes]:
    """Parts of a text that is cut at spaces: splitting is quicker where it stays in the processor's cache."""
    start = 0
    while start < len(spaced):
        end = start + _PIECE_BYTES
        if end < len(spaced):
            end = spaced.find(b" ", end) + 1 or len(spaced)
        if end - start > LONGEST_BYTES:
            raise LongChunkError(max(start, spaced.rfind(b" ", start, start + _PIECE_BYTES) + 1))
        yield spaced[start:end]
        start = end
