"""Quantiles of hot groups: values that are far from the asked ranks become one value on each side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DayTimeIntervalType, DecimalType, NumericType, YearMonthIntervalType

from common.transforms.columns import named, unordered, unused
from common.transforms.join_keys import any_null, is_hashable, key_hash, text_hash

_ACCURACY = 1_000
# Columns of a fixed width cost little to read, and tell rows of equal values apart in the sample.
_CHEAP = frozenset({"tinyint", "smallint", "int", "bigint", "date", "timestamp", "float", "double"})


@dataclass(frozen=True)
class Quantiles:
    """Ranks that are asked of one value.

    Attributes:
        value: SQL expression of the value.
        shares: The ranks as shares of the values, from the smallest: 0 to 1.
    """

    value: str
    shares: tuple[float, ...]


@dataclass(frozen=True)
class _Range:
    """The names of one rank's bounds; None where there can be none."""

    share: float
    low: str | None
    high: str | None


def clamped(
    rows: DataFrame,
    keys: Sequence[str],
    quantiles: Sequence[Quantiles],
    *,
    salts: int,
    hot_rows: int,
    one_in: int,
    hot_groups: Sequence[Sequence[str]] | None = None,
) -> tuple[DataFrame, list[str | None]]:
    """The rows with one more column for each of the quantiles, which has the same values at the asked ranks.

    In groups of at least `hot_rows` rows, values beyond the bounds around each rank are moved to the bound.
    That keeps the order of all values, and a pass over the rows has counted that each rank is between its
    bounds, wherever they come from: a bound that is beyond its rank is not used. So an aggregation gets the
    same answer from far fewer different values.

    Args:
        rows: Rows; read three times.
        keys: Columns of the group.
        quantiles: What is asked.
        salts: The bounds are 1/salts of a group's rows apart.
        hot_rows: Groups of fewer rows keep their values.
        one_in: The share of the rows that bounds are taken from.
        hot_groups: The groups that may be that large, their keys as text; those with a NULL in the key are
            always among them. None: any may be.

    Returns:
        The frame, and the names of the new columns: None where a value has no bounds (it is no number, or
        a key is a map).

    Plan:
        Lazy. A sketch of a sample's values by group, two broadcasts of the hot groups' bounds, one pass that
        counts. As the bounds of `prune_top_n`; Guideline K4.
    """
    kinds = [rows.select(F.expr(item.value)).schema[0].dataType for item in quantiles]
    wanted = [item if _has_bounds(kind) else None for item, kind in zip(quantiles, kinds, strict=True)]
    if salts == 1 or not any(wanted) or unordered(rows, names=keys):  # maps group, but do not join
        return rows, [None] * len(quantiles)
    taken = list(rows.columns)
    names = [unused(f"q{at}", taken) if item else None for at, item in enumerate(wanted)]
    pairs = [(name, item) for name, item in zip(names, wanted, strict=True) if name and item]
    valued = rows.withColumns({name: F.expr(item.value) for name, item in pairs})
    ranges = {
        name: _ranges(name, item.shares, width=0.5 / salts, taken=valued.columns) for name, item in pairs
    }
    own = {key: unused(f"k{at}", valued.columns) for at, key in enumerate(keys)}
    large = valued if hot_groups is None else _of_groups(valued, keys, hot_groups)
    sample = _sample(large, keys, list(ranges), one_in)
    bounds = _bounds(sample, own, ranges, salts=salts, least_rows=max(1, hot_rows // one_in))
    checked = _checked(_joined(valued, own, bounds, how="inner"), own, ranges)
    found = _joined(valued, own, checked, how="left")
    moved = [_moved(named(name), ranks).alias(name) for name, ranks in ranges.items()]
    return found.select(*map(named, rows.columns), *moved), names


def _has_bounds(kind: DataType) -> bool:
    return isinstance(kind, (NumericType, DayTimeIntervalType, YearMonthIntervalType))


def _ranges(name: str, shares: Sequence[float], *, width: float, taken: Sequence[str]) -> list[_Range]:
    """The bounds of each rank, from the lowest rank on."""
    return [
        _Range(
            share,
            unused(f"{name}_low{at}", taken) if share > width else None,
            unused(f"{name}_high{at}", taken) if share < 1 - width else None,
        )
        for at, share in enumerate(sorted(shares))
    ]


def _of_groups(rows: DataFrame, keys: Sequence[str], groups: Sequence[Sequence[str]]) -> DataFrame:
    """The rows of some groups, and seldom others by chance; all where keys cannot be told by a hash."""
    kinds = [rows.schema[key].dataType for key in keys]
    if not keys or not all(map(is_hashable, kinds)):
        return rows
    hashes = [text_hash(group, kinds=kinds) for group in groups]
    null = any_null(keys)
    found = key_hash(zip(map(named, keys), kinds, strict=True)).isin(hashes)
    return rows.where(null | found if hashes else null)


def _sample(rows: DataFrame, keys: Sequence[str], values: Sequence[str], one_in: int) -> DataFrame:
    """Rows chosen by their content: the same ones on every engine and in every retry."""
    cheap = [name for name, kind in rows.dtypes if kind in _CHEAP and name not in (*keys, *values)][:1]
    hashed = F.xxhash64(*map(named, (*values, *cheap)))
    return rows.where(F.pmod(hashed, F.lit(one_in)) == 0) if one_in > 1 else rows


def _bounds(
    sample: DataFrame, own: dict[str, str], ranges: dict[str, list[_Range]], *, salts: int, least_rows: int
) -> DataFrame:
    """The keys under names of their own, and the bounds of each rank, where the sample has a large group."""
    size, width = unused("size", sample.columns), 0.5 / salts
    accuracy = F.lit(max(_ACCURACY, 20 * salts))
    sketches: list[Column] = []
    columns: list[Column] = []
    for name, ranks in ranges.items():
        lows, highs, kind = f"{name}_lows", f"{name}_highs", sample.schema[name].dataType
        # A sketch holds doubles, and the nearest one may have a digit more than the type.
        value = named(name).cast("double") if isinstance(kind, DecimalType) else named(name)
        shares = [min(max(rank.share + shift, 0.0), 1.0) for shift in (-width, width) for rank in ranks]
        both = F.percentile_approx(value, shares, accuracy)
        for label, start in ((lows, 1), (highs, 1 + len(ranks))):
            sketches.append(F.sort_array(F.slice(both, start, len(ranks))).alias(label))
        for at, rank in enumerate(ranks):
            low, high = (F.col(side)[at].try_cast(kind) for side in (lows, highs))
            if rank.low:
                columns.append(low.alias(rank.low))
            if rank.high:
                columns.append(F.greatest(low, high).alias(rank.high))
    groups = sample.groupBy(*(named(key).alias(alias) for key, alias in own.items()))
    found = groups.agg(F.count(F.lit(1)).alias(size), *sketches).where(named(size) >= least_rows)
    return found.select(*map(named, own.values()), *columns)


def _joined(rows: DataFrame, own: dict[str, str], bounds: DataFrame, *, how: str) -> DataFrame:
    small = F.broadcast(bounds)
    if not own:
        return rows.crossJoin(small)
    same = [named(key).eqNullSafe(named(alias)) for key, alias in own.items()]
    return rows.join(small, reduce(lambda a, b: a & b, same), how)


def _checked(rows: DataFrame, own: dict[str, str], ranges: dict[str, list[_Range]]) -> DataFrame:
    """The bounds that are beyond no asked rank; NULL instead of the others."""
    counts: list[Column] = []
    kept: list[Column] = []
    for name, ranks in ranges.items():
        value = named(name)
        count = f"{name}_count"
        counts.append(F.count(value).alias(count))
        for rank in ranks:
            place = F.lit(rank.share) * (F.col(count) - 1)
            # One more row than needed on each side: percentile_disc may take the row before.
            if rank.low is not None:
                counts += _beyond(value < named(rank.low), rank.low)
                kept.append(_unless(rank.low, most=F.floor(place)))
            if rank.high is not None:
                counts += _beyond(value > named(rank.high), rank.high)
                kept.append(_unless(rank.high, most=F.col(count) - 1 - F.ceil(place)))
    keys = [named(alias) for alias in own.values()]
    return rows.groupBy(*keys).agg(*counts).select(*keys, *kept)


def _beyond(is_beyond: Column, bound: str) -> list[Column]:
    """How many values are beyond the bound, and the bound itself, which all rows of a group share."""
    return [F.count_if(is_beyond).alias(f"{bound}_beyond"), F.max(named(bound)).alias(f"{bound}_is")]


def _unless(bound: str, *, most: Column) -> Column:
    """The bound while fewer values than `most` are beyond it, else NULL."""
    return F.when(F.col(f"{bound}_beyond") < most, F.col(f"{bound}_is")).alias(bound)


def _moved(value: Column, ranks: Sequence[_Range]) -> Column:
    """The value, or the nearest bound above it, or the highest bound: a function that never falls."""
    moved = F.when(value.isNull(), value)
    for rank in ranks:
        if rank.low is not None:
            moved = moved.when(value < named(rank.low), named(rank.low))
        if rank.high is None:
            return moved.otherwise(value)
        moved = moved.when(named(rank.high).isNull() | (value <= named(rank.high)), value)
    last = ranks[-1].high
    assert last is not None  # a rank without an upper bound has returned
    return moved.otherwise(named(last))
