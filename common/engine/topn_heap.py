"""Top-N as an RDD: a bounded heap per task, then one merge. The form that textbooks teach, made exact.

Classic Spark only, and slower than the others: every row goes through Python. For comparison, and as a
pattern.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import total_ordering
from typing import Any, Literal, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from common.core.errors import StrategyError
from common.transforms.columns import named
from common.transforms.topn_rows import Nulls, Order, RankedRows, TopN, ranked_rows

REQUIRES = frozenset({"classic", "rdd"})

Key = Callable[[Any], Any]
Entry = tuple[Any, tuple[Any, ...]]  # sort key, row


class _Places(NamedTuple):
    """Where in a row things stand, and how they are compared."""

    group: tuple[int, ...]
    keys: tuple[tuple[int, Key], ...]
    score_count: int
    output: tuple[int, ...]
    n: int
    ties: Literal["first", "all", "dense"]


def heap_top_n(df: DataFrame, spec: TopN) -> DataFrame:
    """The n best rows by bounded heaps; the same answer as the other strategies under every rule.

    Returns:
        The output columns plus `spec.rank_column: int`. Row order is undefined.

    Raises:
        StrategyError: a compared column has a collation, which Python does not know.
        ColumnMissingError, ColumnTypeError, ParameterError: as the other strategies.

    Plan:
        Lazy. Every row goes to Python once. A task holds n rows (with ties more) of each partition that it
        meets; one shuffle of those by partition, reduced on the way (reduceByKey). Guidelines D5, D9.
    """
    ranked = ranked_rows(df, spec)
    places = _places(ranked, spec)
    schema = ranked.rows.select(*map(named, ranked.output)).schema
    out = StructType([*schema.fields, StructField(spec.rank_column, IntegerType(), nullable=False)])
    best = ranked.rows.rdd.mapPartitions(lambda rows: _best_of_task(rows, places))
    merged = best.reduceByKey(lambda a, b: _cut([*a, *b], places))
    answer = merged.flatMap(lambda pair: _numbered(pair[1], places))
    return df.sparkSession.createDataFrame(answer, out, verifySchema=False)


def _places(ranked: RankedRows, spec: TopN) -> _Places:
    columns = list(ranked.rows.columns)
    schema = ranked.rows.schema
    keys = [
        (columns.index(name), _score_key(schema[name].dataType, order=order, nulls=spec.nulls))
        for name, order in ranked.scores
    ]
    keys += [(columns.index(name), _nulls_first(_key_of(schema[name].dataType))) for name in ranked.tie_break]
    return _Places(
        tuple(columns.index(name) for name in ranked.partition_by),
        tuple(keys),
        len(ranked.scores),
        tuple(columns.index(name) for name in ranked.output),
        spec.n,
        spec.ties,
    )


def _best_of_task(rows: Iterable[Sequence[Any]], places: _Places) -> Iterator[tuple[Any, list[Entry]]]:
    """For each partition seen in this task its best rows; pruned whenever twice as many wait."""
    waiting: dict[Any, list[Entry]] = {}
    room = max(2 * places.n, 64)
    for row in rows:
        plain = tuple(row)
        group = tuple(_group_value(plain[at]) for at in places.group)
        entries = waiting.setdefault(group, [])
        entries.append((tuple(key(plain[at]) for at, key in places.keys), plain))
        if len(entries) > room and len(entries) & (len(entries) - 1) == 0:
            waiting[group] = _cut(entries, places)
    for group, entries in waiting.items():
        yield group, _cut(entries, places)


def _group_value(value: Any) -> Any:
    """A partition value as it can be a dictionary's key: NaN equals NaN, -0.0 is 0.0, lists are tuples."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0  # noqa: PLR0124  only NaN differs from itself
    if isinstance(value, (list, tuple)):
        return tuple(_group_value(item) for item in value)
    return bytes(value) if isinstance(value, bytearray) else value


def _cut(entries: list[Entry], places: _Places) -> list[Entry]:
    """The entries that can still be among the best."""
    if places.n == 0:
        return []
    if places.ties == "first":
        return heapq.nsmallest(places.n, entries, key=lambda entry: entry[0])
    scores = [entry[0][: places.score_count] for entry in entries]
    counted = _distinct(scores) if places.ties == "dense" else scores
    if len(counted) <= places.n:
        return entries
    last = heapq.nsmallest(places.n, counted)[-1]
    return [entry for entry in entries if not last < entry[0][: places.score_count]]


def _distinct(scores: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for score in sorted(scores):
        if not kept or kept[-1] < score:
            kept.append(score)
    return kept


def _numbered(entries: list[Entry], places: _Places) -> Iterator[tuple[Any, ...]]:
    """The output rows of one partition, with their ranks."""
    rank, before = 0, None
    for place, (key, row) in enumerate(sorted(entries, key=lambda entry: entry[0]), start=1):
        if places.ties == "first":
            rank = place
        elif before is None or before < key[: places.score_count]:
            rank = place if places.ties == "all" else rank + 1
        before = key[: places.score_count]
        yield (*(row[at] for at in places.output), rank)


@total_ordering
class _Descending:
    """A key that sorts the other way round."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and bool(self.key == other.key)

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.key < self.key)

    def __hash__(self) -> int:
        return hash(self.key)


def _score_key(kind: DataType, *, order: Order, nulls: Nulls) -> Key:
    key = _key_of(kind)
    missing = 0 if nulls == "first" else 2
    if order == "asc":
        return lambda value: (missing,) if value is None else (1, key(value))
    return lambda value: (missing,) if value is None else (1, _Descending(key(value)))


def _nulls_first(key: Key) -> Key:
    return lambda value: (0,) if value is None else (1, key(value))


def _key_of(kind: DataType) -> Key:
    """What makes Python compare values of this type as Spark does."""
    if isinstance(kind, (FloatType, DoubleType)):
        return lambda value: (1, 0.0) if value != value else (0, value)  # noqa: PLR0124  NaN is the greatest
    if isinstance(kind, TimestampType):
        return _instant
    if isinstance(kind, ArrayType):
        element = _nulls_first(_key_of(kind.elementType))
        return lambda value: tuple(map(element, value))
    if isinstance(kind, StructType):
        fields = [_nulls_first(_key_of(field.dataType)) for field in kind.fields]
        return lambda value: tuple(key(item) for key, item in zip(fields, value, strict=True))
    if isinstance(kind, StringType) and kind.simpleString() != "string":
        raise StrategyError(
            "strategy",
            "heap",
            expected="text compared by its bytes",
            got=kind.simpleString(),
            hint="use auto",
        )
    return _itself


def _instant(value: datetime) -> datetime:
    """Python gives instants in the machine's zone, where an hour of autumn comes twice."""
    return value.astimezone(UTC)


def _itself(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
