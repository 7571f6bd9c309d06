"""Counts packed by bucket: nothing is lost, and a word is in one bucket only."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.transforms.words_packed import _merged, packed_counts

COUNTS = pa.schema([("word", pa.string()), ("count", pa.int64())])
_WORDS = st.one_of(st.none(), st.text(max_size=3))
_ROWS = st.lists(st.tuples(_WORDS, st.integers(1, 1 << 40)), min_size=1, max_size=20)


def batch_of(rows: list[tuple[str | None, int]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"word": word, "count": count} for word, count in rows], schema=COUNTS)


@settings(deadline=None)
@given(tasks=st.lists(st.lists(_ROWS, max_size=3), max_size=3), buckets=st.sampled_from([1, 2, 1024]))
def test_sums_are_those_of_a_counter(tasks: list[list[list[tuple[str | None, int]]]], buckets: int) -> None:
    expected: Counter[str | None] = Counter()
    for word, count in (row for task in tasks for rows in task for row in rows):
        expected[word] += count
    parts: dict[int, list[bytes]] = {}
    for task in tasks:
        for packed in packed_counts(map(batch_of, task), buckets=buckets):
            assert packed.schema == pa.schema([("bucket", pa.int32()), ("counts", pa.binary())])
            for row in packed.to_pylist():
                assert 0 <= row["bucket"] < buckets
                parts.setdefault(row["bucket"], []).append(row["counts"])
    found: list[tuple[str | None, int]] = []
    for bucket, contents in parts.items():
        merged = _merged(pa.table({"bucket": [bucket] * len(contents), "counts": contents}))
        assert merged.schema == COUNTS
        found += [(row["word"], row["count"]) for row in merged.to_pylist()]
    assert len(found) == len(expected)
    assert dict(found) == expected


def test_a_slice_packs_only_its_rows() -> None:
    batch = batch_of([("a", 1), (None, 2), ("a", 3), ("b", 4)]).slice(1, 2)
    (packed,) = packed_counts([batch], buckets=1)
    assert _merged(pa.Table.from_batches([packed])).sort_by("count").to_pylist() == [
        {"word": None, "count": 2}, {"word": "a", "count": 3}
    ]  # fmt: skip


@pytest.mark.parametrize("buckets", [70_000, 3])
def test_words_spread_over_all_buckets(buckets: int) -> None:
    words = [(f"w{number}", 1) for number in range(buckets * 10)]
    (packed,) = packed_counts([batch_of(words)], buckets=buckets)
    assert packed.num_rows > 0.99 * buckets
