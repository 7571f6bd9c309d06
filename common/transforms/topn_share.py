"""Each best row's share of the total, and one row for all the others, so that the shares add up to 1."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType, StringType

from common.core.errors import ColumnTypeError, ParameterError
from common.transforms.columns import match, named
from common.transforms.topn_rows import RankedRows, TopN, ranked_rows

OTHERS = "others"
SHARE = "share"
_TOTAL, _COUNT = "_saltpan_total", "_saltpan_count"


def with_share(answer: DataFrame, df: DataFrame, spec: TopN) -> DataFrame:
    """Add the score's share of the total of all ranked rows, within each partition.

    Args:
        answer: What a strategy made of `df` and `spec`.
        df: The rows to rank.
        spec: What was asked.

    Returns:
        The answer's columns, the score widened to the type of its sum, and `share: double`; plus one row for
        each partition that has more rows than the answer shows: what they add up to, no rank, no other
        column but "others" in the first one of text. The share is NULL where the total is 0 or unknown.

    Raises:
        ColumnTypeError: the score is not a number.
        ParameterError: the answer lacks the score or a partition column, or has a column called share.

    Plan:
        Lazy. One more pass over the score and the partition columns, aggregated before its shuffle; one
        shuffle of the answer and of one row per partition. Guideline D5.
    """
    ranked = ranked_rows(df, spec)
    _check(ranked, spec)
    total = F.sum(named(ranked.score))
    totals = ranked.rows.groupBy(*map(named, ranked.partition_by)).agg(
        total.alias(_TOTAL), F.count(F.lit(1)).alias(_COUNT)
    )
    kind = totals.schema[_TOTAL].dataType
    score = named(ranked.score).cast(kind)
    shown = answer.withColumn(ranked.score, score).withColumns(
        {_TOTAL: F.lit(None).cast(kind), _COUNT: F.lit(None).cast("bigint")}
    )
    others = totals.select(*_empty_row(shown, ranked), named(_TOTAL), named(_COUNT))
    return _shares(shown.unionByName(others), ranked, spec).select(*map(named, answer.columns), named(SHARE))


def _check(ranked: RankedRows, spec: TopN) -> None:
    kind = ranked.rows.schema[ranked.score].dataType
    if not isinstance(kind, NumericType):
        got = kind.simpleString()
        raise ColumnTypeError("column", ranked.score, expected="a number, to have shares of", got=got)
    needed = [name for name in (*ranked.partition_by, ranked.score) if name not in ranked.output]
    if needed:
        hint = "add them to --columns"
        expected = "the score and the partition columns in the output"
        raise ParameterError("parameter", "with_share", expected=expected, got=f"no {needed[0]}", hint=hint)
    if match(SHARE, available=[*ranked.output, spec.rank_column]) is not None:
        hint = "leave it out with --columns"
        expected = f"no output column called {SHARE}"
        raise ParameterError("parameter", "with_share", expected=expected, got=SHARE, hint=hint)


def _empty_row(shown: DataFrame, ranked: RankedRows) -> list[Column]:
    """The columns of a row that stands for the others of its partition."""
    plain = [name for name in ranked.output if name not in (*ranked.partition_by, ranked.score)]
    texts = [name for name in plain if isinstance(shown.schema[name].dataType, StringType)]
    columns = []
    for field in shown.schema.fields:
        if field.name in (_TOTAL, _COUNT):
            continue
        if field.name in ranked.partition_by:
            columns.append(named(field.name))
        else:
            value = OTHERS if texts and field.name == texts[0] else None
            columns.append(F.lit(value).cast(field.dataType).alias(field.name))
    return columns


def _shares(rows: DataFrame, ranked: RankedRows, spec: TopN) -> DataFrame:
    partition = Window.partitionBy(*map(named, ranked.partition_by))
    score, is_others = named(ranked.score), named(_COUNT).isNotNull()
    total = F.max(named(_TOTAL)).over(partition)  # one row of each partition has it
    listed, listed_count = F.sum(score).over(partition), F.count(named(spec.rank_column)).over(partition)
    rest = named(_TOTAL) - F.coalesce(listed, F.lit(0))
    placed = rows.withColumns({"_saltpan_all": total, "_saltpan_listed": listed_count, "_saltpan_rest": rest})
    left = placed.where(~is_others | (named(_COUNT) > named("_saltpan_listed")))
    value = (
        F.when(is_others, named("_saltpan_rest")).otherwise(score).cast(rows.schema[ranked.score].dataType)
    )
    share = F.try_divide(value.cast("double"), named("_saltpan_all").cast("double"))
    return left.withColumns({ranked.score: value, SHARE: share})
