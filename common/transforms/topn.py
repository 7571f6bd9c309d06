"""Top-N: the best rows of all, or of each partition, in an order that no partitioning can change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, StringType

from common.core.errors import ColumnTypeError, ParameterError, StrategyError
from common.transforms.columns import is_orderable, match, named, resolve, unordered

Ties = Literal["first", "all", "dense"]
Order = Literal["desc", "asc"]
Nulls = Literal["last", "first", "drop"]
Nan = Literal["largest", "drop"]

_RANKS = {"first": F.row_number, "all": F.rank, "dense": F.dense_rank}
_ALIAS = re.compile(r"\bas\s+(?:`((?:[^`]|``)+)`|(\w+))\s*$", re.IGNORECASE)
DEFAULT_SCORE_NAME = "score"
# Functions whose value depends on chance, or on the order in which rows happen to come.
_UNSTEADY = re.compile(
    r"\b(rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id|spark_partition_id"
    r"|first|first_value|last|last_value|any_value|collect_list|array_agg)\s*\((?!.*\bover\b)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class TopN:
    """What is asked of a Top-N.

    Attributes:
        score: A column's name, or an SQL expression, named by a trailing `AS name` (else "score").
            With `group_by` it is an aggregate.
        n: Rows kept (of each partition), >= 0.
        group_by: Columns whose combinations are reduced to one row each before ranking, as in SQL.
        partition_by: Columns; the n best are kept within each combination. NULL is a value of its own.
        order: "desc" ranks the largest first.
        ties: Equal scores: "first" keeps exactly n rows (ROW_NUMBER), "all" also those that tie with the
            last one (RANK), "dense" all rows of the n best distinct scores (DENSE_RANK).
        tie_break: Columns, ascending, that order equal scores. Empty: the group-by key, else every output
            column. Output columns always follow, so that only equal rows can change places.
        nulls: Where rows without a score rank, or that they are left out.
        nan: NaN ranks as the largest number, as Spark orders it, or is left out.
        where: SQL condition on the input rows, or None.
        columns: Output columns; empty for all.
        rank_column: Name of the rank, added last: int, 1 is best.
        text_scores: False refuses a score that is text. For inputs whose columns are text only because
            nobody declared their types: there "9" would rank above "10".
    """

    score: str
    n: int = 10
    group_by: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    order: Order = "desc"
    ties: Ties = "first"
    tie_break: tuple[str, ...] = ()
    nulls: Nulls = "last"
    nan: Nan = "largest"
    where: str | None = None
    columns: tuple[str, ...] = ()
    rank_column: str = "rank"
    text_scores: bool = True

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ParameterError("parameter", "n", expected="a whole number >= 0", got=str(self.n))
        for name in ("score", "where"):
            found = _UNSTEADY.search(getattr(self, name) or "")
            if found:
                hint = "another run, or another partitioning, would give another answer; min and max do not"
                expected, got = "SQL whose value the row or the group decides", f"{found.group(1)}()"
                raise ParameterError("parameter", name, expected=expected, got=got, hint=hint)


@dataclass(frozen=True)
class RankedRows:
    """Rows to rank, with every name resolved.

    Attributes:
        rows: Filtered, reduced to groups, with the score as a column.
        score: Its name.
        partition_by: Columns within which is ranked.
        output: Columns of the answer, without the rank.
        tie_break: Columns, ascending, that order equal scores; none where ties are kept.
    """

    rows: DataFrame
    score: str
    partition_by: tuple[str, ...]
    output: tuple[str, ...]
    tie_break: tuple[str, ...]


def window_top_n(df: DataFrame, spec: TopN) -> DataFrame:
    """The n best rows by a ranking window: right for every kind of ties, with and without partitions.

    Returns:
        The output columns plus `spec.rank_column: int`. Row order is undefined.

    Raises:
        ColumnMissingError: a named column is absent.
        ColumnTypeError: the score or a tie-break column has no order.
        ParameterError: a name would stand twice in the output.

    Plan:
        Lazy. One shuffle by `partition_by` after a partial limit per task (WindowGroupLimit); without
        `partition_by` the rows that survive it meet in one task. The largest partition is sorted in one
        task, which may spill. Guidelines D5, K4.
    """
    ranked = ranked_rows(df, spec)
    window = Window.partitionBy(*map(named, ranked.partition_by)).orderBy(*_ordering(ranked, spec))
    rows = ranked.rows.withColumn(spec.rank_column, _RANKS[spec.ties]().over(window))
    return _output(rows.where(named(spec.rank_column) <= spec.n), ranked, spec)


def sort_top_n(df: DataFrame, spec: TopN) -> DataFrame:
    """The n best rows of all by a bounded sort: for one global ranking that keeps exactly n rows.

    Returns:
        The output columns plus `spec.rank_column: int`, in rank order while Spark keeps one partition.

    Raises:
        StrategyError: `spec` has partitions or keeps ties.
        ColumnMissingError: a named column is absent.
        ColumnTypeError: the score or a tie-break column has no order.

    Plan:
        Lazy. No shuffle of the input: each task keeps n rows in a heap, the driver's plan merges them in
        one task, which holds n rows at a time for each input task. Guidelines D4, D5.
    """
    if spec.partition_by or spec.ties != "first":
        asked = "partitions" if spec.partition_by else f"ties={spec.ties}"
        raise StrategyError(
            "strategy", "sort", expected="one ranking that cuts ties", got=asked, hint="use window, or auto"
        )
    ranked = ranked_rows(df, spec)
    ordering = _ordering(ranked, spec)
    best = ranked.rows.orderBy(*ordering).limit(spec.n)
    rows = best.withColumn(spec.rank_column, F.row_number().over(Window.orderBy(*ordering)))
    return _output(rows, ranked, spec)


def score_name(spec: TopN, *, available: Sequence[str]) -> str:
    """The name of the score column: the column itself, the expression's alias, or "score"."""
    plain = _plain_name(spec.score, available=available)
    if plain is None:
        return _alias(spec.score) or DEFAULT_SCORE_NAME
    return match(plain, available=available) or plain


def _alias(expression: str) -> str | None:
    match = _ALIAS.search(expression)
    if match is None:
        return None
    return match.group(1).replace("``", "`") if match.group(1) else match.group(2)


def _score_column(score: str, *, available: Sequence[str]) -> str | None:
    """The column that `score` names; None for an expression. A lone unknown word is a missing column."""
    plain = _plain_name(score, available=available)
    return None if plain is None else resolve([plain], available=available, where="the input")[0]


def _plain_name(score: str, *, available: Sequence[str]) -> str | None:
    quoted = re.fullmatch(r"`((?:[^`]|``)+)`", score)
    plain = quoted.group(1).replace("``", "`") if quoted else score
    return plain if plain in available or quoted or re.fullmatch(r"\w+", plain) else None


def ranked_rows(df: DataFrame, spec: TopN) -> RankedRows:
    """What every strategy starts from.

    Raises:
        ColumnMissingError, ColumnTypeError, ParameterError: as `window_top_n`.

    Plan:
        Lazy. With `group_by` one aggregation, partial before its shuffle; else narrow.
    """
    filtered = df if spec.where is None else df.where(F.expr(spec.where))
    scored, score = _aggregated(filtered, spec) if spec.group_by else _scored(filtered, spec)
    _require_order(scored, score, text_is_fine=spec.text_scores)
    rows = _without_unranked(scored, score, spec)
    where = "the groups" if spec.group_by else "the input"
    partition_by = resolve(spec.partition_by, available=rows.columns, where=where)
    _require_ordered(rows, partition_by, hint="partition by a column that can be compared")
    output = resolve(spec.columns, available=rows.columns, where=where) or tuple(rows.columns)
    if match(spec.rank_column, available=[*output, *partition_by]) is not None:
        raise ParameterError(
            "parameter",
            "rank_column",
            expected="a name that is not an output column",
            got=spec.rank_column,
            hint="name it with --rank-column",
        )
    # RANK and DENSE_RANK tie on the score alone; a further column would tear the ties apart.
    cuts = spec.ties == "first"
    tie_break = _tie_break(rows, spec, score=score, output=output, where=where) if cuts else ()
    return RankedRows(rows, score, partition_by, output, tie_break)


def _aggregated(df: DataFrame, spec: TopN) -> tuple[DataFrame, str]:
    keys = resolve(spec.group_by, available=df.columns, where="the input")
    name = _alias(spec.score) or DEFAULT_SCORE_NAME
    _refuse_name(name, taken=keys)
    return df.groupBy(*map(named, keys)).agg(F.expr(spec.score).alias(name)), name


def _scored(df: DataFrame, spec: TopN) -> tuple[DataFrame, str]:
    column = _score_column(spec.score, available=df.columns)
    if column is not None:
        return df, column
    name = _alias(spec.score) or DEFAULT_SCORE_NAME
    _refuse_name(name, taken=df.columns)
    return df.withColumn(name, F.expr(spec.score)), name


def _refuse_name(name: str, *, taken: Sequence[str]) -> None:
    if name.lower() in {other.lower() for other in taken}:
        hint = "name the score: --score 'EXPRESSION AS my_score'"
        raise ParameterError(
            "parameter", "score", expected="a new column name", got=f"`{name}`, a column", hint=hint
        )


def _require_order(df: DataFrame, score: str, *, text_is_fine: bool) -> None:
    kind = df.schema[score].dataType
    if not is_orderable(kind):
        raise ColumnTypeError("column", score, expected="a score with an order", got=kind.simpleString())
    if isinstance(kind, StringType) and not text_is_fine:
        got = "text of an input without declared types, where `9` ranks above `10`"
        quoted = score if score.isidentifier() else "`" + score.replace("`", "``") + "`"
        hint = f"declare types with --input-schema, or cast: --score 'CAST({quoted} AS DOUBLE)'"
        raise ColumnTypeError(
            "column", score, expected="a number, a date or declared text", got=got, hint=hint
        )


def _without_unranked(df: DataFrame, score: str, spec: TopN) -> DataFrame:
    if spec.nulls == "drop":
        df = df.where(named(score).isNotNull())
    if spec.nan == "drop" and isinstance(df.schema[score].dataType, (FloatType, DoubleType)):
        df = df.where(~F.isnan(named(score)))
    return df


def _tie_break(
    rows: DataFrame, spec: TopN, *, score: str, output: Sequence[str], where: str
) -> tuple[str, ...]:
    """Declared columns, else the key, then the output columns: what is left are rows that look the same."""
    declared = resolve(spec.tie_break, available=rows.columns, where=where)
    key = resolve(spec.group_by, available=rows.columns, where=where)
    first = declared or key
    hint = "name --tie-break columns, or leave it out with --columns"
    _require_ordered(rows, first or output, hint=hint)
    if key and not declared:
        return key
    rest = [name for name in output if name not in first and name != score]
    skip = unordered(rows, names=rest)
    return (*first, *(name for name in rest if name not in skip))


def _require_ordered(rows: DataFrame, names: Sequence[str], *, hint: str) -> None:
    bad = unordered(rows, names=names)
    if bad:
        kinds = ", ".join(f"`{name}` is {rows.schema[name].dataType.simpleString()}" for name in bad)
        expected = "columns that can be ordered"
        raise ColumnTypeError("column", ", ".join(bad), expected=expected, got=kinds, hint=hint)


def _ordering(ranked: RankedRows, spec: TopN) -> list[Column]:
    score = named(ranked.score)
    by_score = {
        ("desc", False): score.desc_nulls_last,
        ("desc", True): score.desc_nulls_first,
        ("asc", False): score.asc_nulls_last,
        ("asc", True): score.asc_nulls_first,
    }[spec.order, spec.nulls == "first"]()
    return [by_score, *(named(name).asc() for name in ranked.tie_break)]


def _output(rows: DataFrame, ranked: RankedRows, spec: TopN) -> DataFrame:
    return rows.select(*map(named, ranked.output), named(spec.rank_column))
