"""The shapes of bench-topn: what is asked of each, in the settings of topn, in SQL and in Polars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

_FUNCTIONS = {"first": "row_number", "all": "rank", "dense": "dense_rank"}


@dataclass(frozen=True)
class Shape:
    """One question, asked of every side.

    Attributes:
        name: For --only.
        title: For people.
        spec: Settings of topn. Equal scores go by `id`, the first column: the output columns' order.
        polars: The same in Polars; None leaves it out.
        table: facts, edges or tiny.
        is_target: The issue sets a target for it.
    """

    name: str
    title: str
    spec: Mapping[str, Any]
    polars: Callable[[pl.LazyFrame, Mapping[str, Any]], pl.LazyFrame] | None
    table: str = "edges"
    is_target: bool = False

    @property
    def is_global(self) -> bool:
        """One ranking that keeps exactly n rows."""
        return not self.spec.get("partition_by") and self.spec.get("ties", "first") == "first"

    @property
    def has_many_groups(self) -> bool:
        """As many as would fill the heap with an object for each row kept."""
        return bool({"key", "id"} & set(self.spec.get("partition_by", ())))

    def sql(self) -> str:
        """As a user of DuckDB writes it."""
        spec, ties = self.spec, self.spec.get("ties", "first")
        columns, n = ", ".join(spec.get("columns", ())) or "*", spec["n"]
        order = f"ORDER BY {spec['score']} DESC NULLS LAST" + (", id" if ties == "first" else "")
        if self.is_global:
            best = f"SELECT {columns} FROM {self.table} {order} LIMIT {n}"
            return f"SELECT *, row_number() OVER ({order}) AS rank FROM ({best})"
        by = ", ".join(spec.get("partition_by", ()))
        window = f"{_FUNCTIONS[ties]}() OVER ({f'PARTITION BY {by} ' if by else ''}{order})"
        return f"SELECT {columns}, {window} AS rank FROM {self.table} QUALIFY rank <= {n}"


def _of_all(frame: pl.LazyFrame, spec: Mapping[str, Any]) -> pl.LazyFrame:
    by = [spec["score"], "id"]
    best = frame.top_k(spec["n"], by=by, reverse=[False, True])
    return best.sort(by, descending=[True, False], nulls_last=True).with_row_index("rank", offset=1)


def _of_few_groups(frame: pl.LazyFrame, spec: Mapping[str, Any]) -> pl.LazyFrame:
    """By far the fastest way for hundreds of groups, and the slowest for millions."""
    import polars as pl

    keys, by = list(spec["partition_by"]), [spec["score"], "id"]
    rows = pl.struct(pl.exclude(keys)).top_k_by(by, spec["n"], reverse=[False, True])
    best = frame.group_by(keys).agg(rows.alias("row")).explode("row").unnest("row")
    return _ranked(best.sort(by, descending=[True, False], nulls_last=True), keys)


def _of_many_groups(frame: pl.LazyFrame, spec: Mapping[str, Any]) -> pl.LazyFrame:
    keys, by = list(spec["partition_by"]), [spec["score"], "id"]
    best = frame.sort(by, descending=[True, False], nulls_last=True).group_by(keys).head(spec["n"])
    return _ranked(best, keys)


def _ranked(best: pl.LazyFrame, keys: list[str]) -> pl.LazyFrame:
    import polars as pl

    return best.with_columns(pl.int_range(1, pl.len() + 1).over(keys).alias("rank"))


def _of_few_groups_narrow(frame: pl.LazyFrame, spec: Mapping[str, Any]) -> pl.LazyFrame:
    return _of_few_groups(frame.select(spec["columns"]), spec)


def _spec(n: int, *by: str, score: str = "amount", **more: Any) -> dict[str, Any]:
    return {"score": score, "n": n, "partition_by": by, **more}


SHAPES = (
    Shape("cat-3", "top 3 per cat", _spec(3, "cat"), _of_few_groups, "facts", is_target=True),
    Shape("cat-100", "top 100 per cat", _spec(100, "cat"), _of_few_groups, "facts", is_target=True),
    Shape("key-3", "top 3 per key", _spec(3, "key"), _of_many_groups, "facts", is_target=True),
    Shape("all-10", "top 10 of all", _spec(10), _of_all, "facts", is_target=True),
    Shape("all-1", "top 1 of all", _spec(1), _of_all),
    Shape("all-10000", "top 10,000 of all", _spec(10_000), _of_all),
    Shape("cat-1", "top 1 per cat", _spec(1, "cat"), _of_few_groups),
    Shape("cat-10000", "top 10,000 per cat", _spec(10_000, "cat"), _of_few_groups),
    Shape("one-10", "top 10 of one group", _spec(10, "one"), _of_few_groups),
    Shape("id-1", "top 1 per id, all distinct", _spec(1, "id"), _of_many_groups),
    Shape("key-100", "top 100 per key", _spec(100, "key"), _of_many_groups),
    Shape("hot-10", "top 10 per hot, 90 % of the rows in one group", _spec(10, "hot"), _of_few_groups),
    Shape(
        "narrow-10",
        "top 10 per cat, three columns",
        _spec(10, "cat", columns=("id", "cat", "amount")),
        _of_few_groups_narrow,
    ),
    Shape("kept-10", "top 10 per cat, ties kept", _spec(10, "cat", ties="all"), None),
    Shape("tie-all", "top 10 of all, every score equal", _spec(10, score="tie"), _of_all),
    Shape("tie-cat", "top 10 per cat, every score equal", _spec(10, "cat", score="tie"), _of_few_groups),
    Shape("null-all", "top 10 of all, no score", _spec(10, score="nothing"), _of_all),
    Shape("null-cat", "top 10 per cat, no score", _spec(10, "cat", score="nothing"), _of_few_groups),
    Shape("tiny-cat", "top 3 per cat of 1,000 rows", _spec(3, "cat"), _of_few_groups, "tiny"),
    Shape("tiny-all", "top 10 of 1,000 rows", _spec(10), _of_all, "tiny"),
)
