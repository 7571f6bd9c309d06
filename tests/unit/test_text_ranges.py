"""Byte ranges of text files: every byte is read once, by one range, in whole pieces."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.engine.text_ranges import TextFile, TextRange, range_blocks, tasks_of

LINE_ENDS = b"\n\r"
ASCII_SPACE = b" \t\n\r\x0b\x0c"
TEXT = st.lists(
    st.sampled_from(["\n", "\r\n", "\r", " ", "\t", "a", "bc", "é", "漢", "\U0001f600", "\x00", ""]),
    max_size=30,
).map(lambda parts: "".join(parts).encode())


class Trickle(io.BytesIO):
    """Hands out less than is asked for, as a pipe or an unpacked stream may."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size, 3) if size and size > 0 else size)


def blocks_of(
    content: bytes,
    cuts: Sequence[int],
    cut_at: bytes,
    block_bytes: int,
    stream: type[io.BytesIO] = io.BytesIO,
) -> Iterator[tuple[int, bytes]]:
    file = TextFile("f", len(content))
    ends = [*cuts, len(content)]
    for start, end in zip([0, *cuts], ends, strict=True):
        part = TextRange(file, start, end)
        yield from range_blocks(stream(content), part, cut_at=cut_at, block_bytes=block_bytes)


def check(blocks: list[tuple[int, bytes]], content: bytes, cut_at: bytes) -> None:
    assert b"".join(block for _, block in blocks) == content
    position = 0
    for offset, block in blocks:
        assert offset == position
        position += len(block)
        assert block
        assert block[-1] in cut_at or position == len(content)


@settings(deadline=None)
@given(TEXT, st.data(), st.sampled_from([LINE_ENDS, ASCII_SPACE]), st.integers(1, 12))
def test_any_cuts_give_every_byte_once(content: bytes, data: st.DataObject, cut_at: bytes, size: int) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=5)))
    for stream in (io.BytesIO, Trickle):
        check(list(blocks_of(content, cuts, cut_at, size, stream)), content, cut_at)


@settings(deadline=None)
@given(TEXT, st.sampled_from([LINE_ENDS, ASCII_SPACE]))
def test_ranges_of_one_byte(content: bytes, cut_at: bytes) -> None:
    blocks = list(blocks_of(content, range(1, len(content)), cut_at, 4))
    check(blocks, content, cut_at)
    pieces = re.split(b"[" + re.escape(cut_at) + b"]", content)
    separated = [re.split(b"[" + re.escape(cut_at) + b"]", block) for _, block in blocks]
    assert sorted(piece for block in separated for piece in block if piece) == sorted(filter(None, pieces))


def test_a_range_that_begins_in_a_long_piece_owns_nothing() -> None:
    content = b"x" * 200_000 + b"\nend"
    assert list(blocks_of(content, [100_000], LINE_ENDS, 1_000))[1:] == [(200_001, b"end")]
    part = TextRange(TextFile("f", len(content)), 100_000, 150_000)
    assert list(range_blocks(io.BytesIO(content), part, cut_at=LINE_ENDS)) == []


def test_a_piece_longer_than_a_block_is_one_block() -> None:
    content = b"y" * 50_000 + b" " + b"z " * 5_000
    sizes = [len(block) for _, block in blocks_of(content, [], b" ", 1_000, io.BytesIO)]
    assert sizes[0] in range(50_001, 51_002)
    assert max(sizes[1:]) <= 2_000
    assert sum(sizes) == len(content)


def test_a_stream_without_a_known_end_is_read_to_it() -> None:
    part = TextRange(TextFile("f", 5, ".gz"))
    content = b"a b\n" * 10
    blocks = list(range_blocks(io.BytesIO(content), part, cut_at=b" \n", block_bytes=7))
    check(blocks, content, b" \n")
    assert len(blocks) > 3


@pytest.mark.parametrize("split_bytes", [1, 7, 1_000])
def test_parts_of_a_file_touch_each_other(split_bytes: int) -> None:
    parts = [part for task in tasks_of([TextFile("f", 100)], split_bytes=split_bytes) for part in task]
    assert (parts[0].start_bytes, parts[-1].end_bytes) == (0, 100)
    assert [part.end_bytes for part in parts[:-1]] == [part.start_bytes for part in parts[1:]]
    sizes = {(part.end_bytes or 0) - part.start_bytes for part in parts}
    assert max(sizes) <= split_bytes
    assert max(sizes) - min(sizes) <= 1


def test_what_cannot_be_cut_is_one_range() -> None:
    tasks = tasks_of([TextFile("a.gz", 10_000_000, ".gz"), TextFile("b", 10_000_000)], split_bytes=5_000_000)
    assert [[(part.file.path, part.end_bytes) for part in task] for task in tasks] == [
        [("b", 5_000_000)], [("b", 10_000_000)], [("a.gz", None)]
    ]  # fmt: skip
    assert len(tasks_of([TextFile("b", 10_000_000)], split_bytes=1_000_000, splittable=False)) == 1


def test_small_files_share_a_task_and_empty_ones_are_left_out() -> None:
    files = [TextFile(f"{number}", 1_000) for number in range(100)] + [TextFile("empty", 0)]
    tasks = tasks_of(files, split_bytes=10 * (1_000 + 16 * 1024))
    assert [len(task) for task in tasks] == [10] * 10
    assert tasks_of([TextFile("empty", 0)], split_bytes=100) == ()
