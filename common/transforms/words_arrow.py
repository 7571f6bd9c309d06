"""Word counts of text rows in Arrow: for Connect, tables, and files that only Spark can open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StringType, StructField, StructType

from common.transforms.words_count import (
    EMITTED_ROWS,
    BlockCounts,
    counts_of_block,
    summed_batches,
    valid_utf8,
)
from common.transforms.words_frame import COUNT, DOCUMENTS, GROUP, WORD, summed, text_frame
from common.transforms.words_rows import counts_by_group, occurrences
from common.transforms.words_rules import OnDecodeError, WordRules

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

# So much text is counted at once: fewer and larger counts go to the JVM, in bounded memory.
GATHERED_BYTES = 16 << 20
Batches = Callable[[Iterable["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


def count_text_rows(
    df: DataFrame,
    column: str,
    rules: WordRules,
    *,
    by: str | None = None,
    documents: bool = False,
    on_decode_error: OnDecodeError = "fail",
) -> DataFrame:
    r"""Count the words of a text column in the Python workers, then sum.

    Args:
        df: Text rows; a row is one document. Its text is cut into lines at \n, \r\n and \r.
        column: Exact name of the string column.
        rules: What a word is.
        by: Exact name of a column: counts per value of it.
        documents: Also in how many rows each word stands.
        on_decode_error: With "replace" one more row comes, whose word is NULL and whose count is the number
            of replacements, when there are any (with `by`: one for each group that has some).

    Returns:
        `[by,] word: string, count: bigint [, documents: bigint]`. Row order is undefined.

    Raises:
        ColumnMissingError, ColumnTypeError, ParameterError: the columns do not fit.

    Plan:
        Lazy. The text goes to Python in Arrow batches; a task holds 16 MiB of it, its distinct words, and
        up to 32 MiB of counts. One shuffle by word. Guidelines D5, D9.
    """
    text = text_frame(df, column, by)
    fields = [StructField(WORD, StringType()), StructField(COUNT, LongType())]
    if text.group_type is not None:
        fields.insert(0, StructField(GROUP, text.group_type))
    if documents:
        fields.append(StructField(DOCUMENTS, LongType()))
    simple = by is None and not documents
    names = [field.name for field in fields]
    count = _counting_all(rules, on_decode_error) if simple else _counting_rows(rules, on_decode_error, names)
    return summed(text.rows.mapInArrow(count, StructType(fields)), text, documents=documents)


def _counting_all(rules: WordRules, on_decode_error: OnDecodeError) -> Batches:
    """Rows as lines of one text."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blocks = (_joined(gathered.column(0)) for gathered in _gathered(batches))
        found = (counts_of_block(block, rules, on_decode_error=on_decode_error) for block in blocks)
        yield from summed_batches(counts for one in found for counts in _with_replacements(one))

    return count


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches put together to some MB each."""
    import pyarrow as pa

    together: Any = pa.concat_batches  # type: ignore[attr-defined]  # the stubs lack it
    waiting: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in batches:
        waiting.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= GATHERED_BYTES:
            yield together(waiting)
            waiting, size_bytes = [], 0
    if waiting:
        yield together(waiting)


def _joined(texts: pa.Array[Any]) -> bytes:
    """The texts with a line end after each; they may be no UTF-8, since Spark does not check."""
    import pyarrow as pa
    import pyarrow.compute as pc

    offsets = pa.array([0, len(texts)], pa.int32())
    all_of_them = pa.ListArray.from_arrays(offsets, texts.cast(pa.large_binary()))
    joined: Any = pc.binary_join(all_of_them, pa.scalar(b"\n", pa.large_binary()))
    content: bytes = joined[0].as_buffer().to_pybytes()
    return content


def _with_replacements(counted: BlockCounts) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    yield counted.counts
    if counted.undecodable:
        row: list[pa.Array[Any]] = [pa.nulls(1, pa.string()), pa.array([counted.undecodable], pa.int64())]
        yield pa.record_batch(row, names=[WORD, COUNT])


def _counting_rows(rules: WordRules, on_decode_error: OnDecodeError, names: list[str]) -> Batches:
    """Rows one by one, each in its group."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for gathered in _gathered(batches):
            for counted in _counted_rows(gathered, rules, on_decode_error):
                for start in range(0, counted.num_rows, EMITTED_ROWS):
                    yield counted.select(names).slice(start, EMITTED_ROWS)

    return count


def _counted_rows(
    rows: pa.RecordBatch, rules: WordRules, on_decode_error: OnDecodeError
) -> Iterator[pa.RecordBatch]:
    """Counts by group, then the replacements in each group."""
    import numpy as np
    import pyarrow as pa

    texts, replaced = _valid_texts(rows.column(0), on_decode_error)
    if rows.num_columns > 1:
        numbers, first = _numbered(rows.column(1))
    else:
        numbers, first = np.zeros(len(texts), np.int64), np.zeros(1, np.int64)

    def batch(
        groups: Integers, words: pa.Array[Any], counts: Integers, documents: Integers
    ) -> pa.RecordBatch:
        columns: dict[str, pa.Array[Any]] = {
            WORD: words,
            COUNT: pa.array(counts, pa.int64()),
            DOCUMENTS: pa.array(documents, pa.int64()),
        }
        if rows.num_columns > 1:
            columns[GROUP] = rows.column(1).take(pa.array(first[groups], pa.int64()))
        return pa.record_batch(columns)

    yield batch(*counts_by_group(occurrences(texts, rules), numbers))
    if replaced.any():
        counts = np.bincount(numbers, weights=replaced).astype(np.int64)
        groups = np.flatnonzero(counts)
        yield batch(
            groups, pa.nulls(len(groups), pa.string()), counts[groups], np.zeros(len(groups), np.int64)
        )


def _valid_texts(texts: pa.Array[Any], on_decode_error: OnDecodeError) -> tuple[pa.Array[Any], Integers]:
    """The texts as valid UTF-8, and the replacements made in each."""
    import numpy as np
    import pyarrow as pa

    try:
        return texts.cast(pa.large_binary()).cast(pa.large_string()), np.zeros(len(texts), np.int64)
    except pa.ArrowInvalid:
        contents: list[Any] = texts.cast(pa.large_binary()).to_pylist()
        pairs = [valid_utf8(text, on_decode_error) for text in contents]
    valid = pa.array([text.decode() for text, _ in pairs], pa.large_string())
    return valid, np.array([replaced for _, replaced in pairs], np.int64)


def _numbered(keys: pa.Array[Any]) -> tuple[Integers, Integers]:
    """A number for each row, the same for equal keys where that is cheap to see; and a row of each number.

    Equal keys with two numbers are summed later, since all counts are partial.
    """
    import numpy as np
    import pyarrow as pa

    fields: Any = keys
    parts = [keys.is_null(), *fields.flatten()] if pa.types.is_struct(keys.type) else [keys]
    numbers = np.zeros(len(keys), np.int64)
    for part in parts:
        if pa.types.is_nested(part.type):
            codes = np.arange(len(keys))
        else:
            codes = part.dictionary_encode(null_encoding="encode").indices.to_numpy()
        numbers = np.unique(numbers * (len(keys) + 1) + codes, return_inverse=True)[1]
    _, first = np.unique(numbers, return_index=True)
    return numbers, first
