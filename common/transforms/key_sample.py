"""A sample of a join's keys, with all their rows on both sides: what a proof can be made on."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from common.core.errors import ParameterError
from common.transforms.columns import named, resolve
from common.transforms.join_keys import any_null, key_hash
from common.transforms.join_salts import row_hash
from common.transforms.join_sides import JoinSpec, joined_sides

# Spark derives from a filter one for each way to rename some of its columns: 2^n.
_HASHED_COLUMNS = 4


def keyed_sample(
    left: DataFrame, right: DataFrame, spec: JoinSpec, *, one_in: int, always: Collection[int] = ()
) -> tuple[DataFrame, DataFrame]:
    """The rows of one key in so many, chosen by its hash, on both sides.

    Rows with a NULL in the key, which meet no others, are chosen by their first columns.

    Args:
        left: Any rows.
        right: Any rows.
        spec: The join.
        one_in: At least 1; 1 keeps all.
        always: Hashes of keys that are kept in any case.

    Returns:
        Both sides with the same columns and fewer rows.

    Raises:
        ParameterError: `one_in` is below 1.  ColumnMissingError, ColumnTypeError: see `joined_sides`.

    Plan:
        Lazy and narrow: a filter on each side.
    """
    if one_in < 1:
        raise ParameterError("parameter", "one_in", expected="a whole number >= 1", got=str(one_in))
    kinds = joined_sides(left, right, spec).left.kinds
    ours = _names(left, [a for a, _ in spec.on], where="the input left")
    theirs = _names(right, [b for _, b in spec.on], where="the input right")

    def sampled(df: DataFrame, names: Sequence[str]) -> DataFrame:
        return df.where(_chosen(df, names, kinds, one_in=one_in, always=always))

    return sampled(left, ours), sampled(right, theirs)


def _names(df: DataFrame, keys: Sequence[str], *, where: str) -> tuple[str, ...]:
    return resolve(keys, available=df.columns, where=where)


def _chosen(
    df: DataFrame,
    names: Sequence[str],
    kinds: Sequence[DataType],
    *,
    one_in: int,
    always: Collection[int],
) -> Column:
    keys = ((named(name).cast(kind), kind) for name, kind in zip(names, kinds, strict=True))
    hashed = key_hash(keys)
    kept = F.pmod(hashed, F.lit(one_in)) == 0
    if always:
        kept = kept | hashed.isin(sorted(always))
    others = [name for name in df.columns if name not in names][:_HASHED_COLUMNS] or names
    by_row = row_hash(df.select(*map(named, others)))
    return F.when(any_null(names), F.pmod(by_row, F.lit(one_in)) == 0).otherwise(kept)
