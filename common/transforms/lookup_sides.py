"""The two sides of a lookup made ready: names that cannot clash, keys of one type, the output's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from common.core.errors import ColumnTypeError, ParameterError
from common.transforms.columns import named, resolve
from common.transforms.join_keys import casts_said, common_type, is_hashable
from common.transforms.lookup_spec import LookupSpec

FACTS, DIMENSION = "the input facts", "the input dimension"


@dataclass(frozen=True)
class LookupSides:
    """Both sides of a lookup.

    Attributes:
        facts: Columns f0, f1, … as given, and k0, k1, …: the keys in the type they are compared in.
        dimension: Columns c0, c1, … as given, and q0, q1, …: the keys; rows with a NULL key are left out.
        kinds: The types of the keys.
        fact_names: What f0, f1, … are called.
        dimension_names: What c0, c1, … are called.
        taken: (column of the dimension such as c3, its name in the output).
        casts: "name: type -> type" for each key that was cast.
    """

    facts: DataFrame
    dimension: DataFrame
    kinds: tuple[DataType, ...]
    fact_names: tuple[str, ...]
    dimension_names: tuple[str, ...]
    taken: tuple[tuple[str, str], ...]
    casts: tuple[str, ...] = ()

    @property
    def fact_keys(self) -> tuple[str, ...]:
        """The key columns of the facts."""
        return tuple(f"k{at}" for at in range(len(self.kinds)))

    @property
    def dimension_keys(self) -> tuple[str, ...]:
        """The key columns of the dimension."""
        return tuple(f"q{at}" for at in range(len(self.kinds)))

    @property
    def is_hashable(self) -> bool:
        """False for keys of collated text, arrays and structs, which have no hash that goes by equality."""
        return all(map(is_hashable, self.kinds))

    def inner(self, names: Sequence[str]) -> tuple[str, ...]:
        """The dimension's columns of these names, as typed: c0, c1, …"""
        real = resolve(names, available=self.dimension_names, where=DIMENSION)
        return tuple(f"c{self.dimension_names.index(name)}" for name in real)


def lookup_sides(facts: DataFrame, dimension: DataFrame, spec: LookupSpec) -> LookupSides:
    """Make both sides ready.

    Args:
        facts: Any rows.
        dimension: Any rows.
        spec: What is asked.

    Raises:
        ColumnMissingError: a key or a taken column is absent.
        ColumnTypeError: two keys have no type in common.
        ParameterError: a taken column has the name of another one.

    Plan:
        Lazy and narrow.
    """
    ours = resolve([a for a, _ in spec.on], available=facts.columns, where=FACTS)
    theirs = resolve([b for _, b in spec.on], available=dimension.columns, where=DIMENSION)
    pairs = list(zip(ours, theirs, strict=True))
    kinds = tuple(_common_type(facts, dimension, pair) for pair in pairs)
    wanted = list(dict.fromkeys(a for a, _ in spec.take))
    real = dict(zip(wanted, resolve(wanted, available=dimension.columns, where=DIMENSION), strict=True))
    taken = [(real[column], name or real[column]) for column, name in spec.take]
    _refuse_clashes(facts.columns, taken)
    places = {name: f"c{at}" for at, name in enumerate(dimension.columns)}
    right = _side(dimension, "c", theirs, "q", kinds)
    return LookupSides(
        _side(facts, "f", ours, "k", kinds),
        right.where(reduce(lambda a, b: a & b, (named(f"q{at}").isNotNull() for at in range(len(kinds))))),
        kinds,
        tuple(facts.columns),
        tuple(dimension.columns),
        tuple((places[column], name) for column, name in taken),
        casts_said((("facts", facts), ("dimension", dimension)), pairs, kinds),
    )


def _common_type(facts: DataFrame, dimension: DataFrame, pair: tuple[str, str]) -> DataType:
    left, right = facts.schema[pair[0]].dataType, dimension.schema[pair[1]].dataType
    try:
        return common_type(left, right, names=pair)
    except ColumnTypeError as error:
        hint = "cast one side, for example in a view or by --facts-schema or --dimension-schema"
        raise ColumnTypeError(
            error.what, error.name, expected=error.expected, got=error.got, hint=hint
        ) from None


def _refuse_clashes(facts: Sequence[str], taken: Sequence[tuple[str, str]]) -> None:
    seen = {name.lower() for name in facts}
    for column, name in taken:
        if name.lower() in seen:
            raise ParameterError(
                "taken column",
                name,
                expected="a name that no other column of the output has",
                got="one that is there already",
                hint=f"give it another one: --take {column}=dimension_{column}",
            )
        seen.add(name.lower())


def _side(
    df: DataFrame, letter: str, keys: Sequence[str], key_letter: str, kinds: Sequence[DataType]
) -> DataFrame:
    columns = [named(name).alias(f"{letter}{at}") for at, name in enumerate(df.columns)]
    cast = [_cast(df, name, kind) for name, kind in zip(keys, kinds, strict=True)]
    return df.select(*columns, *(key.alias(f"{key_letter}{at}") for at, key in enumerate(cast)))


def _cast(df: DataFrame, name: str, kind: DataType) -> Column:
    return named(name) if df.schema[name].dataType == kind else named(name).cast(kind)


def key_text(names: Sequence[str]) -> Column:
    """A key as people read it: its parts as text, with | between, NULL as such."""
    return F.concat_ws("|", *(F.coalesce(named(name).cast("string"), F.lit("NULL")) for name in names))
