"""The most frequent value, and the set of values: counted by (group, value), which spreads hot groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from common.transforms.aggregate_text import Call
from common.transforms.columns import named, unused
from common.transforms.two_stage_calls import kind_of
from common.transforms.two_stage_forms import value_of


def aggregated_values(
    rows: DataFrame, keys: Sequence[str], calls: Mapping[str, Call], places: Mapping[str, str]
) -> list[DataFrame]:
    """One frame for each different value: the group's columns, and one column for each call on it.

    Args:
        rows: Rows, read once for each value.
        keys: Columns of the group.
        calls: mode and collect_set, by their text.
        places: The name of each call's column.

    Plan:
        Lazy. Each value: a shuffle by (group, value) of each task's counts, one by group of what is left. A
        set must fit the task that merges it; sorting it costs that task n log n.
    """
    by_value: dict[str, list[str]] = {}
    for text, call in calls.items():
        by_value.setdefault(value_of(call, rows), []).append(text)
    frames = []
    for value, texts in by_value.items():
        name, count = unused("value", [*rows.columns, *keys]), unused("count", [*rows.columns, *keys])
        groups = [named(key) for key in keys]
        counted = rows.groupBy(*groups, F.expr(value).alias(name)).agg(F.count(F.lit(1)).alias(count))
        columns = [_from_counts(calls[text], named(name), named(count)).alias(places[text]) for text in texts]
        frames.append(counted.groupBy(*groups).agg(*columns))
    return frames


def _from_counts(call: Call, value: Column, count: Column) -> Column:
    if kind_of(call) == "set":
        return F.sort_array(F.collect_list(value))
    # The most frequent one is the first by (-count, value): what a task has met shrinks to one row per group.
    best = F.min(F.when(value.isNotNull(), F.struct((-count).alias("rank"), value.alias("value"))))
    return best["value"]
