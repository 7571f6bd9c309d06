"""Partial word counts, packed by a hash of the word, and merged by workers: the JVM sees each word once.

Spark sums rows of (word, count) by hashing every word of every task twice, and moves each as a row.
Packed, it moves a few byte strings a task; the worker that merges a bucket has all counts of its
words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from zlib import crc32

from common.transforms.words_count import summed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

WORD, COUNT = "word", "count"
BUCKET, COUNTS = "bucket", "counts"
PACKED = f"{BUCKET} INT, {COUNTS} BINARY"
_MERGED = f"{WORD} STRING, {COUNT} BIGINT"


def packed_counts(batches: Iterable[pa.RecordBatch], *, buckets: int) -> Iterator[pa.RecordBatch]:
    """Counts as bytes, those of one bucket together.

    Args:
        batches: `word: string, count: int64`; a word may be NULL, and stand in several rows.
        buckets: How many there are; the same for all that is merged.

    Returns:
        `bucket: int32, counts: binary`, for `merged_counts`.
    """
    import numpy as np
    import pyarrow as pa

    for batch in batches:
        owners = _buckets(batch.column(0), buckets)
        order = np.argsort(owners, kind="stable")
        ordered = batch.take(pa.array(order, pa.int64()))
        found, starts = np.unique(owners[order], return_index=True)
        ends = np.append(starts[1:], len(order))
        parts = [
            ordered.slice(start, end - start).serialize().to_pybytes()
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        yield pa.record_batch([pa.array(found, pa.int32()), pa.array(parts, pa.binary())], [BUCKET, COUNTS])


def merged_counts(packed: DataFrame) -> DataFrame:
    """The sums of packed counts.

    Args:
        packed: What `packed_counts` made.

    Returns:
        `word: string, count: bigint`, each word once. Row order is undefined.

    Plan:
        Lazy. One shuffle by bucket. A worker holds the counts of one bucket at a time. Guideline D6.
    """
    return packed.groupBy(BUCKET).applyInArrow(_merged, _MERGED)


def _merged(parts: pa.Table) -> pa.Table:
    import pyarrow as pa

    fields: list[pa.Field[Any]] = [pa.field(WORD, pa.string()), pa.field(COUNT, pa.int64())]
    schema = pa.schema(fields)
    return summed([pa.ipc.read_record_batch(part.as_buffer(), schema) for part in parts.column(COUNTS)])


def _buckets(words: pa.Array[Any], buckets: int) -> Any:
    """A number below `buckets` for each word, by all of its bytes."""
    import numpy as np
    import pyarrow as pa

    contents = words.fill_null("").cast(pa.binary()).to_numpy(zero_copy_only=False)
    hashes = np.fromiter(map(crc32, contents), np.uint32, len(contents))
    return (hashes % np.uint32(buckets)).astype(np.uint16 if buckets <= 1 << 16 else np.uint32)
