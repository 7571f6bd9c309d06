"""Facts enriched from a dimension: the answer, its counters, and the facts that found nothing."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from common.transforms.columns import named, unused
from common.transforms.counters import Attach, Counter
from common.transforms.join_keys import any_null
from common.transforms.lookup_dimension import prepared_dimension
from common.transforms.lookup_hits import FIRST, FOUND, Hits, joined_hits
from common.transforms.lookup_sides import LookupSides, key_text, lookup_sides
from common.transforms.lookup_spec import LookupSpec

REASON = "reject_reason"
NULL_KEY, NO_MATCH = "NULL_KEY", "NO_MATCH"
NAMED_KEYS = 5


def plain_lookup(facts: DataFrame, dimension: DataFrame, spec: LookupSpec) -> DataFrame:
    """The lookup as Spark's left join does it.

    Args:
        facts: Any rows.
        dimension: Any rows.
        spec: What is asked.

    Returns:
        All columns of the facts in their order, then the taken ones. A row for each fact; with `expand` one
        for each match; with `quarantine` none for a fact without a match.

    Raises:
        ColumnMissingError, ColumnTypeError, ParameterError: see `lookup_sides`.

    Plan:
        Lazy. A broadcast or one shuffle of each side, as Spark chooses. Guidelines K3, K5.
    """
    sides = lookup_sides(facts, dimension, spec)
    return answer(joined_hits(sides, prepared_dimension(sides, spec), broadcast=False), spec)


def answer(hits: Hits, spec: LookupSpec, *, attach: Attach | None = None) -> DataFrame:
    """The output's rows.

    Args:
        hits: Facts with what was found.
        spec: What is asked.
        attach: Counts all facts while they pass.

    Plan:
        Lazy and narrow.
    """
    rows = attach(hits.rows) if attach else hits.rows
    if spec.missing == "quarantine":
        rows = rows.where(named(FOUND))
    taken = [(f"d{at}", name) for at, (_, name) in enumerate(hits.sides.taken)]
    kinds = {inner: hits.rows.schema[inner].dataType for inner, _ in taken}

    def value(inner: str) -> Column:
        if spec.missing != "default":
            return named(inner)
        return F.when(named(FOUND), named(inner)).otherwise(F.lit(spec.default).cast(kinds[inner]))

    return rows.select(*_facts(hits), *(value(inner).alias(name) for inner, name in taken))


def counters(hits: Hits) -> tuple[Counter, ...]:
    """What is counted while the facts pass.

    Args:
        hits: Facts with what was found.

    Returns:
        `facts`, `matched` of them, `missing` (without a match), `null_keys` (of these, with a NULL in the
        key).
    """
    found, first = named(FOUND), named(FIRST)
    return (
        Counter("facts", of=first),
        Counter("matched", of=found & first),
        Counter("missing", of=~found),
        Counter("null_keys", of=any_null(hits.sides.fact_keys)),
    )


def rejected(hits: Hits) -> DataFrame:
    """The facts without a match.

    Returns:
        `reject_reason: string` (NULL_KEY or NO_MATCH; _reject_reason where the facts have such a column),
        then all columns of the facts.

    Plan:
        Lazy and narrow.
    """
    reason = F.when(any_null(hits.sides.fact_keys), NULL_KEY).otherwise(NO_MATCH)
    name = unused(REASON, hits.sides.fact_names)
    return hits.rows.where(~named(FOUND)).select(reason.alias(name), *_facts(hits))


def missing_keys(hits: Hits) -> DataFrame:
    """The keys without a match that most facts have.

    Returns:
        At most five rows `key: string, rows: bigint`, those with most rows first.

    Plan:
        Lazy. One shuffle of the distinct missing keys.
    """
    keys = hits.rows.where(~named(FOUND)).groupBy(key_text(hits.sides.fact_keys).alias("key"))
    counted = keys.agg(F.count(F.lit(1)).alias("rows"))
    return counted.orderBy(F.desc("rows"), "key").limit(NAMED_KEYS)


def unfit_defaults(sides: LookupSides, spec: LookupSpec) -> DataFrame:
    """Which taken columns cannot hold the default: one row.

    Returns:
        `unfit: array<string>`: "name (type)" of each.

    Plan:
        Lazy. No row of the dimension is read.
    """
    kinds = [(name, sides.dimension.schema[column].dataType) for column, name in sides.taken]
    value = F.lit(spec.default)
    unfit = [F.when(value.try_cast(kind).isNull(), f"{name} ({kind.simpleString()})") for name, kind in kinds]
    nothing = sides.dimension.limit(0).agg(F.count(F.lit(1)))
    return nothing.select(F.array_compact(F.array(*unfit)).alias("unfit"))


def _facts(hits: Hits) -> list[Column]:
    return [named(f"f{at}").alias(name) for at, name in enumerate(hits.sides.fact_names)]
