"""From counts to the answer of a word count: in how many files, how often at least, the most frequent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from common.core.errors import ParameterError
from common.transforms.columns import named
from common.transforms.counters import Attach, Counter
from common.transforms.topn import sort_top_n, window_top_n
from common.transforms.topn_rows import TopN

WORD, COUNT, DOCUMENTS, RANK = "word", "count", "documents", "rank"
# The number of replacements: U+FFFD in place of bytes that are no text.
UNDECODABLE = Counter("undecodable", "sum", f"CASE WHEN {WORD} IS NULL THEN {COUNT} END")


@dataclass(frozen=True)
class WordAnswer:
    """What is wanted of the counts.

    Attributes:
        by: A column whose values' words are counted apart, or None.
        in_files: A column that holds the file, to say in how many each word stands, or None.
        documents: The counts have a column `documents` already, or get it from `in_files`.
        min_count: Rarer words are left out.
        top: Only so many of the most frequent words (for each value of `by`), with their rank; None for all.
    """

    by: str | None = None
    in_files: str | None = None
    documents: bool = False
    min_count: int = 1
    top: int | None = None

    def __post_init__(self) -> None:
        if self.by is not None and self.by.lower() in (WORD, COUNT, DOCUMENTS, RANK):
            names = f"`{WORD}`, `{COUNT}`, `{DOCUMENTS}`, `{RANK}`"
            hint = "rename the column first"
            raise ParameterError(
                "column", self.by, expected=f"another name than {names}", got="one of them", hint=hint
            )


def word_answer(counts: DataFrame, asked: WordAnswer, *, attach: Attach | None = None) -> DataFrame:
    """The answer from summed counts.

    Args:
        counts: `[in_files,] [by,] word: string, count: bigint [, documents: bigint]`, each combination once.
            A NULL word counts replacements.
        asked: What is wanted.
        attach: Counts `UNDECODABLE` when the answer is made.

    Returns:
        `[by,] word, count [, documents] [, rank]`. Of equal counts the lesser word comes first; in order of
        code points. Row order is undefined.

    Plan:
        Lazy. One shuffle more with `in_files`, which sums over the files; `top` adds a bounded sort, or with
        `by` a ranking window. Guidelines D5.
    """
    by = [asked.by] if asked.by is not None else []
    if asked.in_files is not None:
        sums = [F.sum(COUNT).alias(COUNT), F.count(F.lit(1)).alias(DOCUMENTS)]
        counts = counts.groupBy(*map(named, (*by, WORD))).agg(*sums)
    if attach is not None:
        counts = attach(counts)
    columns = [*by, WORD, COUNT, *([DOCUMENTS] if asked.documents else [])]
    kept = F.col(WORD).isNotNull() & (F.col(COUNT) >= asked.min_count)
    words = counts.where(kept).select(*map(named, columns))
    if asked.top is None:
        return words
    best = TopN(score=COUNT, n=asked.top, partition_by=tuple(by), tie_break=(WORD,), rank_column=RANK)
    return window_top_n(words, best) if by else sort_top_n(words, best)


def valid_text(df: DataFrame, column: str, *, replace: bool, place: Column) -> DataFrame:
    """The rows with text that is valid UTF-8, so that every way of counting sees the same.

    Args:
        df: Rows.
        column: Exact name of the string column.
        replace: Put U+FFFD where bytes are no text; else such a row ends the job when it runs.
        place: Where a row is from, for that error.

    Plan:
        Lazy, no shuffle.
    """
    text = named(column)
    if replace:
        return df.withColumn(column, F.make_valid_utf8(text))
    said = F.concat(F.lit("bytes that are not UTF-8 in "), place)
    return df.withColumn(
        column, F.when(text.isNull() | F.is_valid_utf8(text), text).otherwise(F.raise_error(said))
    )


def with_replacements(
    counts: DataFrame, df: DataFrame, column: str, *, keys: Sequence[str], documents: bool
) -> DataFrame:
    """The counts, and rows whose word is NULL for the replacements that `valid_text` makes.

    Args:
        counts: `[keys,] word, count [, documents]` of the valid text.
        df: The rows before.
        column: Exact name of their string column.
        keys: What the counts are by.
        documents: The counts have a column `documents`.

    Plan:
        Lazy. Reads the rows a second time; one shuffle of one row per task and key.
    """
    text = named(column)
    made = _count_of(F.make_valid_utf8(text)) - _count_of(text)
    found = df.where(~F.is_valid_utf8(text)).groupBy(*map(named, keys)).agg(F.sum(made).alias(COUNT))
    found = found.where(F.col(COUNT) > 0)
    nothing = [F.lit(0).cast("bigint").alias(DOCUMENTS)] if documents else []
    word = F.lit(None).cast("string").alias(WORD)
    return counts.unionByName(found.select(*map(named, keys), word, F.col(COUNT), *nothing))


def _count_of(text: Column) -> Column:
    """How many U+FFFD a text holds; bytes that are none are left alone."""
    without = F.replace(text, F.lit("\ufffd"), F.lit(""))
    return F.floor((F.octet_length(text) - F.octet_length(without)) / 3).cast("bigint")
