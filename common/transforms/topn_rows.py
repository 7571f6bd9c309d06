"""What a Top-N ranks: its settings, and the rows with every name resolved, before any strategy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, StringType

from common.core.errors import ColumnTypeError, ParameterError
from common.transforms.columns import is_orderable, match, named, resolve, unordered

Ties = Literal["first", "all", "dense"]
Order = Literal["desc", "asc"]
Nulls = Literal["last", "first", "drop"]
Nan = Literal["largest", "drop"]

_ALIAS = re.compile(r"\bas\s+(?:`((?:[^`]|``)+)`|(\w+))\s*$", re.IGNORECASE)
_DEFAULT_SCORE_NAME = "score"
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
        then_by: Further scores, each with its own order: (column or expression, "desc" or "asc"). They rank
            rows whose scores before them are equal; rows tie when all their scores are.
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
    then_by: tuple[tuple[str, Order], ...] = ()
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
        written = [
            ("score", self.score),
            *(("score", score) for score, _ in self.then_by),
            ("where", self.where),
        ]
        for name, sql in written:
            found = _UNSTEADY.search(sql or "")
            if found:
                hint = "another run, or another partitioning, would give another answer; min and max do not"
                expected, got = "SQL whose value the row or the group decides", f"{found.group(1)}()"
                raise ParameterError("parameter", name, expected=expected, got=got, hint=hint)


@dataclass(frozen=True)
class RankedRows:
    """Rows to rank, with every name resolved.

    Attributes:
        rows: Filtered, reduced to groups, with the scores as columns.
        scores: (name, order) of each; the first counts most.
        partition_by: Columns within which is ranked.
        output: Columns of the answer, without the rank.
        tie_break: Columns, ascending, that order equal scores; none where ties are kept.
    """

    rows: DataFrame
    scores: tuple[tuple[str, Order], ...]
    partition_by: tuple[str, ...]
    output: tuple[str, ...]
    tie_break: tuple[str, ...]

    @property
    def score(self) -> str:
        """The column of the score that counts most."""
        return self.scores[0][0]


def score_names(spec: TopN, *, available: Sequence[str]) -> tuple[str, ...]:
    """The names of the score columns: the columns themselves, the expressions' aliases, or "score"."""
    names = []
    for number, score in enumerate((spec.score, *(score for score, _ in spec.then_by))):
        plain = _plain_name(score, available=available)
        if plain is None:
            names.append(_alias(score) or _default_score_name(number))
        else:
            names.append(match(plain, available=available) or plain)
    return tuple(names)


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
    asked = (spec.score, *(score for score, _ in spec.then_by))
    rows, names = _aggregated(filtered, spec, asked) if spec.group_by else _scored(filtered, asked)
    for name in names:
        _require_order(rows, name, text_is_fine=spec.text_scores)
        rows = _without_unranked(rows, name, spec)
    scores = tuple(zip(names, (spec.order, *(order for _, order in spec.then_by)), strict=True))
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
    tie_break = _tie_break(rows, spec, scores=names, output=output, where=where) if cuts else ()
    return RankedRows(rows, scores, partition_by, output, tie_break)


def _aggregated(df: DataFrame, spec: TopN, asked: Sequence[str]) -> tuple[DataFrame, list[str]]:
    keys = resolve(spec.group_by, available=df.columns, where="the input")
    names: list[str] = []
    for score in asked:
        name = _alias(score) or _default_score_name(len(names))
        _refuse_name(name, taken=[*keys, *names])
        names.append(name)
    aggregates = [F.expr(score).alias(name) for score, name in zip(asked, names, strict=True)]
    return df.groupBy(*map(named, keys)).agg(*aggregates), names


def _scored(df: DataFrame, asked: Sequence[str]) -> tuple[DataFrame, list[str]]:
    available = df.columns
    names: list[str] = []
    for score in asked:
        name = _score_column(score, available=available)
        if name is None:
            name = _alias(score) or _default_score_name(len(names))
            _refuse_name(name, taken=df.columns)
            df = df.withColumn(name, F.expr(score))
        elif name in names:
            expected, got = "each score once", f"`{name}` twice"
            raise ParameterError("parameter", "score", expected=expected, got=got)
        names.append(name)
    return df, names


def _default_score_name(number: int) -> str:
    """What an expression without a name is called: score, score2, score3, …"""
    return _DEFAULT_SCORE_NAME if number == 0 else f"{_DEFAULT_SCORE_NAME}{number + 1}"


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
    rows: DataFrame, spec: TopN, *, scores: Sequence[str], output: Sequence[str], where: str
) -> tuple[str, ...]:
    """Declared columns, else the key, then the output columns: what is left are rows that look the same."""
    declared = resolve(spec.tie_break, available=rows.columns, where=where)
    key = resolve(spec.group_by, available=rows.columns, where=where)
    first = declared or key
    hint = "name --tie-break columns, or leave it out with --columns"
    _require_ordered(rows, first or output, hint=hint)
    if key and not declared:
        return key
    rest = [name for name in output if name not in first and name not in scores]
    skip = unordered(rows, names=rest)
    return (*first, *(name for name in rest if name not in skip))


def _require_ordered(rows: DataFrame, names: Sequence[str], *, hint: str) -> None:
    bad = unordered(rows, names=names)
    if bad:
        kinds = ", ".join(f"`{name}` is {rows.schema[name].dataType.simpleString()}" for name in bad)
        expected = "columns that can be ordered"
        raise ColumnTypeError("column", ", ".join(bad), expected=expected, got=kinds, hint=hint)


def ordering(ranked: RankedRows, spec: TopN) -> list[Column]:
    """Best first: the score, then what orders equal scores."""
    by_score = [in_order(named(name), order, nulls=spec.nulls) for name, order in ranked.scores]
    return [*by_score, *(named(name).asc() for name in ranked.tie_break)]


def in_order(score: Column, order: Order, *, nulls: Nulls) -> Column:
    """The sort order of one score."""
    return {
        ("desc", False): score.desc_nulls_last,
        ("desc", True): score.desc_nulls_first,
        ("asc", False): score.asc_nulls_last,
        ("asc", True): score.asc_nulls_first,
    }[order, nulls == "first"]()
