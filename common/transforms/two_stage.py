"""Aggregations, plain and in two stages: many tasks reduce the rows of a hot group before one merges them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, NumericType, StructField

from common.core.errors import ParameterError, StrategyError
from common.transforms.aggregate_text import Aggregate, Call, refuse_chance
from common.transforms.columns import named, resolve, unused
from common.transforms.two_stage_bounds import Quantiles, clamped
from common.transforms.two_stage_calls import TWO_STAGE, kind_of, parsed, quantile_of, where
from common.transforms.two_stage_forms import canonical, quantile_on, settled
from common.transforms.two_stage_values import aggregated_values

# Their partial results take more than a few bytes. Beside a distinct aggregate, which has one per group and
# value, Spark would hold one of these for each.
_HEAVY = frozenset({"sketch", "list", "quantile"})
_BY_VALUE = frozenset({"mode", "set"})


@dataclass(frozen=True)
class Aggregation:
    """What is asked of an aggregation.

    Attributes:
        aggregates: SQL expressions of aggregates, each with or without a name. What Spark leaves open is
            decided, see `settled`: lists and sets are sorted, a set holds NaN once, mode takes the smallest
            of equally frequent values.
        group_by: Columns; empty for one row over all. NULL is a group of its own, as in SQL.
        where: SQL condition on the input rows, or None.
    """

    aggregates: tuple[str, ...]
    group_by: tuple[str, ...] = ()
    where: str | None = None

    def __post_init__(self) -> None:
        if not self.aggregates:
            raise ParameterError("parameter", "aggregates", expected="at least one", got="none")
        refuse_chance("where", self.where or "")


@dataclass(frozen=True)
class _Asked:
    """An aggregation with every name resolved."""

    rows: DataFrame
    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]

    @property
    def calls(self) -> dict[str, Call]:
        """Each different call once, by its text."""
        return {call.text: call for aggregate in self.aggregates for call in aggregate.calls}

    def with_texts(self, texts: Mapping[str, str]) -> list[tuple[str, str]]:
        """The name of each aggregate, and its SQL with another text for each call."""
        return [
            (aggregate.name, aggregate.with_calls([texts[call.text] for call in aggregate.calls]))
            for aggregate in self.aggregates
        ]


def plain_aggregate(df: DataFrame, spec: Aggregation) -> DataFrame:
    """One aggregation as Spark plans it.

    Args:
        df: Rows to aggregate, read once.
        spec: What is asked.

    Returns:
        The group-by columns, then a column for each aggregate. Row order is undefined.

    Raises:
        ColumnMissingError: a group-by column is not there.
        SqlError: an expression holds no aggregate, or a window.
        ParameterError: two output columns would have one name, or a value would depend on the order of
            rows or on chance.
        ColumnTypeError: the values of a list, a set or mode have no order.

    Plan:
        Lazy. One shuffle by group of each task's partial results, which are small for sum, count, min, max
        and their kind. With DISTINCT one more before it, by (group, value). The partial results of
        percentile, mode and collect_set hold all values: those of a group must fit one task. Guideline D5.
    """
    asked = _asked(df, spec)
    texts = {text: settled(call, asked.rows) for text, call in asked.calls.items()}
    columns = [F.expr(sql).alias(name) for name, sql in asked.with_texts(texts)]
    return asked.rows.groupBy(*map(named, asked.keys)).agg(*columns)


def two_stage_aggregate(
    df: DataFrame,
    spec: Aggregation,
    *,
    salts: int = 32,
    hot_rows: int = 100_000,
    one_in: int = 16,
    hot_groups: Sequence[Sequence[str]] | None = None,
) -> DataFrame:
    """The same answer with the rows of large groups reduced in many tasks first.

    - percentile, median, percentile_cont, percentile_disc: a sample gives bounds around the asked ranks, a
      pass counts what is beyond them, and values beyond are moved to the bound, where they are one value.
      Moving values to a bound keeps their order, so that a rank within the bounds has the same value.
    - mode, collect_set: counted by (group, value) first; the groups then take their values or the most
      frequent one from those counts.
    - count(distinct) and all that Spark combines in each task stay as they are, but apart from what has large
      partial results.

    Args:
        df: Rows to aggregate; read once, once more for each of the values of mode and collect_set, and
            three times for quantiles.
        spec: What is asked.
        salts: A group's values between the bounds are about 1/salts of its rows, for each asked rank.
        hot_rows: Groups of fewer rows have no bounds.
        one_in: One row in so many is looked at for the bounds, chosen by its content.
        hot_groups: The groups that may be that large, their keys as text; the sample is of these. None: any
            may be. Which ones are named decides how fast the answer comes, never what it is.

    Returns:
        As `plain_aggregate`, with the same columns and types.

    Raises:
        StrategyError: an aggregate cannot be put together from parts.
        ParameterError: a number is below 1; else as `plain_aggregate`.
        ColumnMissingError, ColumnTypeError, SqlError: as `plain_aggregate`.

    Plan:
        Lazy. Two shuffles for each value of mode and collect_set, three small ones and two broadcasts of at
        most rows / hot_rows groups for quantiles, and one more of all branches' groups where there are
        several. A task must hold 1/salts of a hot group's values; for collect_set the set itself.
        Guideline K4.
    """
    for name, number in (("salts", salts), ("hot_rows", hot_rows), ("one_in", one_in)):
        if number < 1:
            raise ParameterError("parameter", name, expected="a whole number >= 1", got=str(number))
    asked = _asked(df, spec)
    _refuse_whole(asked.aggregates)
    # What Spark refuses of the plain form is refused here, in the words that were typed.
    fields = plain_aggregate(df, spec).schema.fields[len(asked.keys) :]
    taken = [*df.columns, *asked.keys]
    places = {text: unused(f"c{at}", taken) for at, text in enumerate(asked.calls)}
    kinds = {text: kind_of(call) for text, call in asked.calls.items()}
    by_value = {text: call for text, call in asked.calls.items() if kinds[text] in _BY_VALUE}
    heavy = {text: call for text, call in asked.calls.items() if kinds[text] in _HEAVY}
    light = {text: call for text, call in asked.calls.items() if text not in by_value and text not in heavy}
    if heavy and "distinct" not in kinds.values():
        light, heavy = {}, {**light, **heavy}
    branches = [_grouped(asked, asked.rows, light, places)] if light else []
    if heavy:
        rows, texts = _bounded(
            asked, heavy, salts=salts, hot_rows=hot_rows, one_in=one_in, hot_groups=hot_groups
        )
        branches.append(_grouped(asked, rows, heavy, places, texts))
    branches += aggregated_values(asked.rows, asked.keys, by_value, places)
    groups = _united(branches, asked.keys, list(places.values()))
    texts = {text: f"`{place}`" for text, place in places.items()}
    columns = [F.expr(sql) for _, sql in asked.with_texts(texts)]
    found = groups.select(*map(named, asked.keys), *columns).schema.fields[len(asked.keys) :]
    pairs = zip(columns, found, fields, strict=True)
    return groups.select(*map(named, asked.keys), *(_typed(*each) for each in pairs))


def _typed(column: Column, found: StructField, wanted: StructField) -> Column:
    """The column under its name, and without NULL where the plain form says that there is none."""
    kind = wanted.dataType
    if found.nullable and not wanted.nullable and isinstance(kind, (ArrayType, NumericType)):
        never = F.array() if isinstance(kind, ArrayType) else F.lit(0)
        column = F.coalesce(column, never.cast(kind))
    return column.alias(wanted.name)


def _asked(df: DataFrame, spec: Aggregation) -> _Asked:
    keys = resolve(spec.group_by, available=df.columns, where="the input")
    aggregates = tuple(map(parsed, spec.aggregates))
    taken = [name.lower() for name in keys]
    for aggregate in aggregates:
        if aggregate.name.lower() in taken:
            hint = "name it: --aggregate 'EXPRESSION AS my_name'"
            expected, got = "a new column name", f"`{aggregate.name}` twice"
            raise ParameterError("aggregate", aggregate.sql, expected=expected, got=got, hint=hint)
        taken.append(aggregate.name.lower())
    return _Asked(df if spec.where is None else df.where(F.expr(spec.where)), keys, aggregates)


def _refuse_whole(aggregates: Sequence[Aggregate]) -> None:
    whole = [call.text for aggregate in aggregates for call in aggregate.calls if kind_of(call) == "whole"]
    whole += [name for aggregate in aggregates for name in aggregate.unknown]
    if whole:
        raise StrategyError(
            "strategy",
            "two-stage",
            expected=f"aggregates that parts of a group can be put together for: {', '.join(TWO_STAGE)}",
            got=", ".join(dict.fromkeys(whole)),
            hint="plain and auto leave it to Spark",
        )


def _bounded(asked: _Asked, heavy: Mapping[str, Call], **rates: Any) -> tuple[DataFrame, dict[str, str]]:
    """The rows with the values of quantiles moved to their bounds, and the text of each call on them."""
    quantiles = {}
    for text, call in heavy.items():
        found = quantile_of(call) if kind_of(call) == "quantile" else None
        if found is not None:
            quantiles[text] = Quantiles(canonical(where(found[0], call.condition), asked.rows), found[1])
    rows, columns = clamped(asked.rows, asked.keys, tuple(quantiles.values()), **rates)
    texts = {}
    for text, column in zip(quantiles, columns, strict=True):
        if column is not None:
            texts[text] = quantile_on(heavy[text], f"`{column}`")
    return rows, texts


def _grouped(
    asked: _Asked,
    rows: DataFrame,
    calls: Mapping[str, Call],
    places: Mapping[str, str],
    texts: Mapping[str, str] | None = None,
) -> DataFrame:
    columns: list[Column] = []
    for text, call in calls.items():
        sql = (texts or {}).get(text) or settled(call, asked.rows)
        columns.append(F.expr(sql).alias(places[text]))
    return rows.groupBy(*map(named, asked.keys)).agg(*columns)


def _united(branches: Sequence[DataFrame], keys: Sequence[str], places: Sequence[str]) -> DataFrame:
    """One row per group from branches that each have one: every value comes from the branch that has it."""
    if len(branches) == 1:
        return branches[0]
    kinds = {name: branch.schema[name].dataType for branch in branches for name in branch.columns}

    def value(branch: DataFrame, name: str) -> Column:
        return named(name) if name in branch.columns else F.lit(None).cast(kinds[name]).alias(name)

    widened = [
        branch.select(*map(named, keys), *(value(branch, name) for name in places)) for branch in branches
    ]
    union = widened[0]
    for branch in widened[1:]:
        union = union.unionAll(branch)
    values = [F.any_value(named(name), F.lit(True)).alias(name) for name in places]
    return union.groupBy(*map(named, keys)).agg(*values)
