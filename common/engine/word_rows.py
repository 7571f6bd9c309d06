"""Word counts of text that Spark reads: lines of files, or a column of a table, by each of the strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from common.core.errors import ColumnTypeError
from common.engine.text_modules import ship_tokenizer
from common.engine.words_rdd import rdd_word_counts
from common.transforms.columns import named, unused
from common.transforms.word_answer import COUNT, DOCUMENTS, WORD, valid_text, with_replacements
from common.transforms.words_arrow import count_text_rows
from common.transforms.words_rules import OnDecodeError, WordRules
from common.transforms.words_sql import word_counts

Strategy = Literal["arrow", "sql", "rdd"]


@dataclass(frozen=True)
class TextRows:
    """Rows that hold text.

    Attributes:
        rows: The rows.
        column: Exact name of the string column.
        keys: Exact names of the columns to count by.
        documents: Also count in how many rows a word stands.
        place: Where a row is from, for errors.
    """

    rows: DataFrame
    column: str
    keys: tuple[str, ...]
    documents: bool
    place: Column


def count_rows(
    text: TextRows, rules: WordRules, *, strategy: Strategy, on_decode_error: OnDecodeError = "fail"
) -> DataFrame:
    """Count the words of text rows; every strategy gives the same.

    Args:
        text: The rows.
        rules: What a word is.
        strategy: How.
        on_decode_error: With "fail" a row whose bytes are no UTF-8 ends the job when it runs; with "replace"
            rows of which the word is NULL hold the number of replacements.

    Returns:
        `[keys,] word: string, count: bigint [, documents: bigint]`. Row order is undefined.

    Raises:
        ColumnTypeError: the column is no text.
        StrategyError: built-in functions cannot honour the rules.

    Plan:
        Lazy. One shuffle by word after a partial sum. With "replace", `sql` and `rdd` read the rows twice.
        Guidelines D5, D6.
    """
    kind = text.rows.schema[text.column].dataType
    if not isinstance(kind, StringType):
        hint = f"declare it as STRING with --input-schema, or cast it, if its {kind.simpleString()} is text"
        raise ColumnTypeError(
            "column", text.column, expected="text (STRING)", got=kind.simpleString(), hint=hint
        )
    rows, key = _with_one_key(text)
    replacing = on_decode_error == "replace"
    if strategy == "arrow":
        ship_tokenizer(rows.sparkSession, rules)
        checked = rows if replacing else valid_text(rows, text.column, replace=False, place=text.place)
        counts = count_text_rows(
            checked, text.column, rules, by=key, documents=text.documents, on_decode_error=on_decode_error
        )
        return _with_keys(counts, text, key)
    valid = valid_text(rows, text.column, replace=replacing, place=text.place)
    if strategy == "rdd":
        ship_tokenizer(rows.sparkSession, rules)
    count = word_counts if strategy == "sql" else rdd_word_counts
    counts = count(valid, text.column, rules, by=key, documents=text.documents)
    if replacing:
        keys = [key] if key is not None else []
        counts = with_replacements(counts, rows, text.column, keys=keys, documents=text.documents)
    return _with_keys(counts, text, key)


def _with_one_key(text: TextRows) -> tuple[DataFrame, str | None]:
    """The rows with at most one column to count by: several become a struct of them."""
    if len(text.keys) < 2:
        return text.rows, text.keys[0] if text.keys else None
    key = unused("key", text.rows.columns)
    return text.rows.withColumn(key, F.struct(*map(named, text.keys))), key


def _with_keys(counts: DataFrame, text: TextRows, key: str | None) -> DataFrame:
    last: Sequence[str] = (WORD, COUNT, *([DOCUMENTS] if text.documents else []))
    if key is None or len(text.keys) < 2:
        return counts
    parts = [named(key).getField(name).alias(name) for name in text.keys]
    return counts.select(*parts, *map(named, last))
