"""Top-N by pruning: a bound below which no row can be among the best, then a ranking of what is left.

The n-th best of any part of the rows is a lower bound for the n-th best of all: what is worse cannot be among
them. So which rows the bound is taken from decides how fast the answer comes, never what it is.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType

from common.core.errors import ParameterError, StrategyError
from common.transforms.columns import named, unused
from common.transforms.topn import ranked_by_sort, ranked_by_window
from common.transforms.topn_rows import RankedRows, TopN, in_order, ranked_rows

# What a broadcast of bounds may hold: a few MB, on the driver as well, however many groups there are.
BOUND_LIMIT = 100_000
# Columns of a fixed width cost little to read, and tell rows of equal score apart in the sample.
_CHEAP = frozenset(
    {"tinyint", "smallint", "int", "bigint", "date", "timestamp", "float", "double", "boolean"}
)
_HASHED = 1


def prune_top_n(
    df: DataFrame,
    spec: TopN,
    *,
    one_in: int = 64,
    null_keys: bool = True,
    many_groups: bool = True,
    bound_limit: int = BOUND_LIMIT,
) -> DataFrame:
    """The n best rows by a bound and one narrow pass; the same answer as a window, under every rule.

    Args:
        df: Rows to rank; read twice.
        spec: What is asked; its rows must be those of the input.
        one_in: With partitions, one row in so many is looked at for the bounds, chosen by its content.
        null_keys: False leaves partitions of NULL without a bound, so that they keep all their rows: a plain
            equality is a fifth quicker where hardly a row has such a key.
        many_groups: False when there are hardly more partitions than `bound_limit`: then they need not be
            counted, and the sample is cut before it is sorted.
        bound_limit: At most so many partitions get a bound, with `many_groups` those with the most rows.
            The others keep all their rows.

    Returns:
        The output columns plus `spec.rank_column: int`. Row order is undefined.

    Raises:
        StrategyError: `spec` has groups, whose float sums may differ between two passes.
        ParameterError: `one_in` or `bound_limit` is below 1.
        ColumnMissingError, ColumnTypeError, ParameterError: as the other strategies.

    Plan:
        Lazy. With partitions: a pass over the score, the partition columns and one more of fixed
        width; one shuffle of the sample; a broadcast of at most `bound_limit` bounds; one pass over all
        columns that keeps `score >= bound`; one shuffle of what is left. Without: a bounded sort of the
        score alone, then one pass with that bound as a filter that Parquet readers can use.
        Guidelines D4, D5, K4; sample-then-prune as in threshold algorithms (Fagin et al., 2003).
    """
    for name, value in (("one_in", one_in), ("bound_limit", bound_limit)):
        if value < 1:
            raise ParameterError("parameter", name, expected="a whole number >= 1", got=str(value))
    ranked = ranked_rows(df, spec)
    if spec.group_by:
        raise StrategyError(
            "strategy",
            "prune",
            expected="rows of the input",
            got=f"groups of {', '.join(spec.group_by)}",
            hint="use sort or window, or auto",
        )
    if spec.n == 0:
        return ranked_by_window(ranked.rows, ranked, spec)
    if ranked.partition_by:
        bounds = _bounds(ranked, spec, one_in, largest_first=many_groups).limit(bound_limit)
        left = _above_bounds(bounds, ranked, spec, null_keys=null_keys)
        return ranked_by_window(left, ranked, spec)
    left = ranked.rows.where(_can_be_best(ranked, spec))
    return (ranked_by_sort if spec.ties == "first" else ranked_by_window)(left, ranked, spec)


def _above_bounds(bounds: DataFrame, ranked: RankedRows, spec: TopN, *, null_keys: bool) -> DataFrame:
    """The rows that are not worse than their partition's bound, and all of those without one."""
    rows = ranked.rows
    names = {name: unused(name, rows.columns) for name in bounds.columns}
    bounds = F.broadcast(bounds.withColumnsRenamed(names))
    bound, *keys = (named(name) for name in names.values())
    pairs = zip(map(named, ranked.partition_by), keys, strict=True)
    same = [column.eqNullSafe(key) if null_keys else column == key for column, key in pairs]
    score = named(ranked.score)
    if spec.nulls != "first":  # NULL is the worst: nothing is worse than a bound of NULL
        keep = bound.isNull() | _at_least(score, bound, spec)
    else:  # NULL is the best, and a bound of NULL keeps nothing else
        bounded = unused("bounded", [*rows.columns, *names.values()])
        bounds = bounds.withColumn(bounded, F.lit(True))
        keep = named(bounded).isNull() | score.isNull() | _at_least(score, bound, spec)
    return rows.join(bounds, same, "left").where(keep).select(*map(named, rows.columns))


def _bounds(ranked: RankedRows, spec: TopN, one_in: int, *, largest_first: bool) -> DataFrame:
    """`bound, key0, key1, …`: the n-th best score of each partition in the sample."""
    score, place, size = F.col("bound"), F.col("place"), F.col("size")
    keys = {f"key{at}": named(name) for at, name in enumerate(ranked.partition_by)}
    sample = _sample(ranked, one_in).select(
        named(ranked.score).alias("bound"), *(column.alias(key) for key, column in keys.items())
    )
    if spec.ties == "dense":  # the n-th distinct score
        sample = sample.distinct()
    partition = Window.partitionBy(*keys)
    best_first = partition.orderBy(in_order(score, spec.order, nulls=spec.nulls))
    placed = sample.withColumn("place", F.row_number().over(best_first))
    if largest_first:
        placed = placed.withColumn("size", F.count(F.lit(1)).over(partition))
    found = placed.where(place == spec.n)
    return (found.orderBy(size.desc(), *keys) if largest_first else found).select("bound", *keys)


def _sample(ranked: RankedRows, one_in: int) -> DataFrame:
    """Rows chosen by their content: the same ones on every engine and in every retry."""
    rows = ranked.rows
    kinds = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    must = dict.fromkeys((*ranked.partition_by, ranked.score))
    more = [name for name in rows.columns if name not in must and kinds[name] in _CHEAP][:_HASHED]
    hashed = F.xxhash64(*map(named, (*must, *more)))
    return rows.where(F.pmod(hashed, F.lit(one_in)) == 0) if one_in > 1 else rows


def _can_be_best(ranked: RankedRows, spec: TopN) -> Column:
    """Not worse than the n-th best score of all, which a subquery finds by reading that column only."""
    scores = ranked.rows.select(named(ranked.score).alias("bound"))
    if spec.ties == "dense":
        scores = scores.distinct()
    score = F.col("bound")
    best = scores.orderBy(in_order(score, spec.order, nulls=spec.nulls)).limit(spec.n)
    # With fewer scores than n this is the worst one that is not NULL: nothing but NULL is worse.
    bound = best.select((F.min if spec.order == "desc" else F.max)(score)).scalar()
    column = named(ranked.score)
    better = _at_least(column, bound, spec)
    kept = better if spec.nulls == "drop" else better | column.isNull()
    # No score at all: then the bound is NULL, and only rows of NULL are left to rank.
    if _is_float(ranked.rows.schema[ranked.score].dataType) and spec.nan == "largest":
        # A filter that no reader can push down: statistics of files that others wrote leave NaN out.
        return F.isnan(column) | kept
    return kept


def _at_least(score: Column, bound: Column, spec: TopN) -> Column:
    return score >= bound if spec.order == "desc" else score <= bound


def _is_float(kind: DataType) -> bool:
    return isinstance(kind, (FloatType, DoubleType))
