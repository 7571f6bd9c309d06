"""Word counts as an RDD: flatMap, map, reduceByKey. The form that textbooks teach, made exact.

Classic Spark only, and slower than the others: every word goes through Python. For comparison, and as a
pattern.
"""

from __future__ import annotations

from collections import Counter
from operator import add
from typing import Any

from pyspark import RDD
from pyspark.sql import DataFrame, Row
from pyspark.sql.types import (
    BooleanType,
    DateType,
    DecimalType,
    IntegralType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from common.core.errors import StrategyError
from common.transforms.words_frame import COUNT, DOCUMENTS, GROUP, WORD, TextFrame, text_frame, with_names
from common.transforms.words_rules import WordRules
from common.transforms.words_tokens import lines_of, tokenizer_of

REQUIRES = frozenset({"classic", "rdd"})

_STABLE = (StringType, IntegralType, DecimalType, DateType, BooleanType)
Key = tuple[Any, str]  # group, word


def rdd_word_counts(
    df: DataFrame, column: str, rules: WordRules, *, by: str | None = None, documents: bool = False
) -> DataFrame:
    r"""Count the words of a text column, one Python object per word.

    Args:
        df: Text rows; a row is one document. Its text is cut into lines at \n, \r\n and \r.
        column: Exact name of the string column. It must be valid UTF-8.
        rules: What a word is.
        by: Exact name of a column: counts per value of it.
        documents: Also in how many rows each word stands.

    Returns:
        `[by,] word: string, count: bigint [, documents: bigint]`. Row order is undefined.

    Raises:
        ColumnMissingError, ColumnTypeError, ParameterError: the columns do not fit.
        StrategyError: groups by values that Python does not compare as Spark does.

    Plan:
        Lazy. Every word goes through Python; one shuffle of (word, count), reduced on the way (reduceByKey).
        A task holds its distinct words, and spills them. Guidelines D5, D9.
    """
    text = text_frame(df, column, by)
    _refuse_unstable(text)
    grouped = by is not None

    def words(row: Row) -> list[Key]:
        tokens = tokenizer_of(rules)  # made once in each worker: jieba's dictionary does not travel
        group = row[1] if grouped else None
        return [(group, word) for line in lines_of(row[0]) for word in tokens(line)]

    pairs: RDD[tuple[Any, ...]]
    if documents:
        once = text.rows.rdd.flatMap(lambda row: Counter(words(row)).items())
        sums = once.mapValues(lambda count: (count, 1)).reduceByKey(lambda a, b: (a[0] + b[0], a[1] + b[1]))
        pairs = sums.map(lambda pair: (*pair[0], *pair[1]))
    else:
        pairs = text.rows.rdd.flatMap(words).map(lambda key: (key, 1)).reduceByKey(add).map(_flat)
    fields = [
        StructField(GROUP, text.group_type or NullType()),
        StructField(WORD, StringType()),
        StructField(COUNT, LongType()),
        *([StructField(DOCUMENTS, LongType())] if documents else []),
    ]
    counts = df.sparkSession.createDataFrame(pairs, StructType(fields), verifySchema=False)
    return with_names(counts, text, documents=documents)


def _flat(pair: tuple[Key, int]) -> tuple[Any, ...]:
    return (*pair[0], pair[1])


def _refuse_unstable(text: TextFrame) -> None:
    """Groups by values that Python compares otherwise than Spark (NaN, -0.0, collations), or cannot hold."""
    kind = text.group_type
    parts = [field.dataType for field in kind.fields] if isinstance(kind, StructType) else [kind]
    for part in parts:
        plain = not isinstance(part, StringType) or part.simpleString() == "string"
        if part is not None and not (isinstance(part, _STABLE) and plain):
            expected = "groups by text, whole numbers, decimals, dates or booleans"
            hint = "use arrow or sql, or auto"
            raise StrategyError("strategy", "rdd", expected=expected, got=part.simpleString(), hint=hint)
