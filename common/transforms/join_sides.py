"""The two sides of a join made ready: names that cannot clash, keys of one type, and the output's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from common.core.errors import ParameterError, StrategyError
from common.transforms.columns import named, resolve, unused
from common.transforms.join_keys import casts_said, common_type, is_among, is_hashable, key_hash

# Key columns of a join whose keys are told by a hash.
MOST_COLUMNS = 8

How = Literal["inner", "left", "right", "full", "semi", "anti"]


@dataclass(frozen=True)
class JoinSpec:
    """What a join is asked for.

    Attributes:
        on: (left column, right column) pairs that must be equal. A pair of one name is one output column, as
            with SQL's USING; NULL equals nothing.
        how: The kind of join. semi and anti give left rows only, each once.
        select: Output columns, in this order; empty for all.
        drop: Keys, as text, whose rows are left out on both sides before the join.
    """

    on: tuple[tuple[str, str], ...]
    how: How = "inner"
    select: tuple[str, ...] = ()
    drop: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Side:
    """One side: `rows` with columns l0, l1, … or r0, r1, …, and which of them are the key."""

    rows: DataFrame
    keys: tuple[str, ...]

    @property
    def kinds(self) -> list[DataType]:
        """The types of the key columns."""
        return [self.rows.schema[name].dataType for name in self.keys]

    @property
    def hash(self) -> Column:
        """See `key_hash`."""
        return key_hash(zip(map(named, self.keys), self.kinds, strict=True))

    def having(self, condition: Column) -> Side:
        """Those of its rows for which the condition is true."""
        return Side(self.rows.where(condition), self.keys)


@dataclass(frozen=True)
class Output:
    """An output column: its name, and the internal columns whose first value that is not NULL it holds."""

    name: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Sides:
    """Both sides and what comes out.

    Attributes:
        left: Left rows.
        right: Right rows.
        how: The kind of join.
        outputs: The output's columns in order.
        casts: "name: type -> type" for each key that was cast.
    """

    left: Side
    right: Side
    how: How
    outputs: tuple[Output, ...]
    casts: tuple[str, ...] = ()

    @property
    def is_hashable(self) -> bool:
        """False for keys that cannot be told by a hash.

        Collated text, arrays and structs have none that goes by equality. From a filter on the hash of n
        columns Spark derives one for each way to rename some of them, 2^n: of twelve it plans for minutes.
        """
        return len(self.left.keys) <= MOST_COLUMNS and all(map(is_hashable, self.left.kinds))

    def finished(self, joined: DataFrame) -> DataFrame:
        """The output's columns of joined rows; what a side is missing there is NULL."""
        kinds = {field.name: field.dataType for side in self._both() for field in side.rows.schema.fields}
        there = set(joined.columns)

        def value(name: str) -> Column:
            return named(name) if name in there else F.lit(None).cast(kinds[name])

        columns = [(output.name, [value(name) for name in output.sources]) for output in self.outputs]
        return joined.select(
            *((F.coalesce(*found) if len(found) > 1 else found[0]).alias(name) for name, found in columns)
        )

    def _both(self) -> tuple[Side, Side]:
        return self.left, self.right


def check_hashable(sides: Sides, strategy: str) -> None:
    """Make sure that keys can be told by a hash.

    Raises:
        StrategyError: they cannot.
    """
    if not sides.is_hashable:
        raise StrategyError(
            "strategy",
            strategy,
            expected=f"at most {MOST_COLUMNS} key columns, whose equal values have one hash",
            got=", ".join(kind.simpleString() for kind in sides.left.kinds),
            hint="use shuffle or broadcast, or auto",
        )


def joined_sides(left: DataFrame, right: DataFrame, spec: JoinSpec) -> Sides:
    """Make both sides ready.

    Output columns are those of Spark's join: keys of one name once and first, then the other left columns,
    then the other right ones. A right column whose name is taken is called `right_NAME`.

    Args:
        left: Any rows.
        right: Any rows.
        spec: What is asked; names as typed.

    Raises:
        ColumnMissingError: a key or a selected column is absent.
        ColumnTypeError: two keys have no type in common.
        ParameterError: a dropped key has another number of parts than `spec.on`.

    Plan:
        Lazy and narrow: projections, and a filter when keys are dropped.
    """
    left_names = resolve([a for a, _ in spec.on], available=left.columns, where="the input left")
    right_names = resolve([b for _, b in spec.on], available=right.columns, where="the input right")
    pairs = list(zip(left_names, right_names, strict=True))
    kinds = {
        pair: common_type(left.schema[pair[0]].dataType, right.schema[pair[1]].dataType, names=pair)
        for pair in pairs
    }
    ours = _side(left, "l", {a: kinds[a, b] for a, b in pairs})
    theirs = _side(right, "r", {b: kinds[a, b] for a, b in pairs})
    for key in spec.drop:
        _check_parts(key, spec)
    if spec.drop:
        ours, theirs = (
            side.having(~is_among(side.keys, spec.drop, kinds=side.kinds)) for side in (ours, theirs)
        )
    outputs = _outputs(left.columns, right.columns, pairs, spec.how)
    casts = casts_said((("left", left), ("right", right)), kinds, kinds.values())
    return Sides(ours, theirs, spec.how, _selected(outputs, spec.select), casts)


def _check_parts(key: Sequence[str], spec: JoinSpec) -> None:
    if len(spec.on) > MOST_COLUMNS:
        expected, got = f"at most {MOST_COLUMNS} key columns", str(len(spec.on))
        hint = "leave the rows out before the join, in a view or a file of their own"
        raise ParameterError("dropped key", "|".join(key), expected=expected, got=got, hint=hint)
    if len(key) != len(spec.on):
        expected = f"{len(spec.on)} values, one for each key column"
        raise ParameterError("dropped key", "|".join(key), expected=expected, got=f"{len(key)} values")


def _side(df: DataFrame, letter: str, kinds: dict[str, DataType]) -> Side:
    names = {name: f"{letter}{at}" for at, name in enumerate(df.columns)}
    columns = [
        (named(name).cast(kinds[name]) if _differs(df, name, kinds) else named(name)).alias(inner)
        for name, inner in names.items()
    ]
    return Side(df.select(*columns), tuple(names[name] for name in kinds))


def _differs(df: DataFrame, name: str, kinds: dict[str, DataType]) -> bool:
    return name in kinds and df.schema[name].dataType != kinds[name]


def _outputs(
    left: Sequence[str], right: Sequence[str], pairs: Sequence[tuple[str, str]], how: How
) -> list[Output]:
    inner = {name: f"l{at}" for at, name in enumerate(left)}
    outer = {name: f"r{at}" for at, name in enumerate(right)}
    shared = [(a, b) for a, b in pairs if a.lower() == b.lower()]
    found = [Output(a, _key_sources(inner[a], outer[b], how)) for a, b in shared]
    found += [Output(name, (inner[name],)) for name in left if name not in {a for a, _ in shared}]
    if how in ("semi", "anti"):
        return found
    for name in right:
        if name in {b for _, b in shared}:
            continue
        taken = [output.name for output in found]
        clashes = name.lower() in {other.lower() for other in taken}
        found.append(Output(unused(f"right_{name}", [*taken, *right]) if clashes else name, (outer[name],)))
    return found


def _key_sources(left: str, right: str, how: How) -> tuple[str, ...]:
    return {"right": (right,), "full": (left, right)}.get(how, (left,))


def _selected(outputs: Sequence[Output], select: Sequence[str]) -> tuple[Output, ...]:
    if not select:
        return tuple(outputs)
    by_name = {output.name: output for output in outputs}
    return tuple(by_name[name] for name in resolve(select, available=list(by_name), where="the join"))
