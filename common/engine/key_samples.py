"""How the keys of an input spread, from a few row groups or a few rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from common.core.errors import ColumnMissingError
from common.engine.ddl import quoted
from common.engine.footers import evenly_spaced
from common.engine.input_paths import reading
from common.engine.listing import Listing
from common.tuning.facts import KeySample

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame

GROUP_LIMIT = 8
ROW_LIMIT = 200_000
READ_LIMIT = 4_000_000
_SIZES_KEPT = 1_000
_KEYS_KEPT = 200


def sample_keys(listing: Listing, columns: Sequence[str]) -> KeySample | None:
    """Count the keys in at most 8 evenly spaced row groups of a local Parquet input, without a session.

    Rows are taken by position, every n-th, at most about 200,000 in all: the same files give the same
    sample.

    Args:
        listing: What was found.
        columns: The key, by name (case aside); columns of folder names too.

    Returns:
        None when it is not cheap (another format or file system), when there are no rows, and when a
        column is not there or cannot be counted.
    """
    if not listing.is_local or listing.format != "parquet" or not listing.files or not columns:
        return None
    tables = _key_tables(listing, columns)
    if not tables:
        return None
    return _counted(tables, tuple(columns))


def sampled_facts(df: DataFrame, columns: Sequence[str], *, row_limit: int = 100_000) -> KeySample | None:
    """Count the keys among the first rows, the engine's own way for any input.

    The sample is the first rows by position: a sorted input shows only its beginning, and what comes first
    is up to the engine.

    Args:
        df: Rows.
        columns: The key, by name.
        row_limit: Rows to look at.

    Returns:
        None when there are no rows.

    Raises:
        ColumnMissingError: a named column is absent.

    Plan:
        One small action: the first partitions are read until there are enough rows, whose keys come to the
        driver as text.
    """
    from pyspark.sql import functions as F

    real = {name.lower(): name for name in df.columns}
    missing = [name for name in columns if name.lower() not in real]
    if missing:
        raise ColumnMissingError.among(missing, df.columns, where="the input")
    texts = [
        F.col(quoted(real[name.lower()])).cast("string").alias(f"k{at}") for at, name in enumerate(columns)
    ]
    rows = df.select(*texts).take(row_limit)
    counts = Counter(tuple(row) for row in rows)
    if not counts:
        return None
    largest, count = max(counts.items(), key=lambda item: (item[1], _key_text(item[0])))
    return KeySample(
        tuple(columns),
        len(rows),
        len(counts),
        _key_text(largest),
        count / len(rows),
        tuple(sorted(counts.values(), reverse=True)[:_SIZES_KEPT]),
        sum(size == 1 for size in counts.values()),
        sum(size for key, size in counts.items() if None in key) / len(rows),
        _top_keys(counts.most_common(_KEYS_KEPT)),
        is_clustered=len(rows) == row_limit and are_clustered([tuple(row) for row in rows], counts),
    )


def are_clustered(keys: Sequence[tuple[object, ...]], counts: Mapping[tuple[object, ...], int]) -> bool:
    """True when neighbours are equal much more often than in a random order, or all are.

    >>> ordered, mixed = [(at // 50,) for at in range(100)], [(at * 7 % 10,) for at in range(100)]
    >>> are_clustered(ordered, Counter(ordered)), are_clustered(mixed, Counter(mixed))
    (True, False)
    """
    pairs = max(len(keys) - 1, 1)
    equal = sum(one == other for one, other in pairwise(keys)) / pairs
    by_chance = sum((count / len(keys)) ** 2 for count in counts.values())
    return len(counts) == 1 or equal > 1.5 * by_chance + 0.02


def _key_tables(listing: Listing, columns: Sequence[str]) -> list[pa.Table] | None:
    """The key columns `k0`, `k1`, … of some row groups; None when a column is not there."""
    import pyarrow.parquet as pq

    limit = _group_limit(listing.files[0].path)
    files = [listing.files[position] for position in evenly_spaced(len(listing.files), limit=limit)]
    tables: list[pa.Table] = []
    per_file = max(1, limit // len(files))
    for file in files:
        with reading(file.path), pq.ParquetFile(file.path) as content:
            for group in evenly_spaced(content.num_row_groups, limit=per_file):
                table = _key_table(content, group, columns, dict(file.partition))
                if table is None:
                    return None
                tables.append(table)
    return _thinned(tables)


def _group_limit(path: str) -> int:
    """How many row groups to read: at most 8, and fewer where they are large, but not one alone."""
    import pyarrow.parquet as pq

    with reading(path), pq.ParquetFile(path) as content:
        groups = content.num_row_groups
        rows = content.metadata.row_group(0).num_rows if groups else 0
    return max(2, min(GROUP_LIMIT, READ_LIMIT // max(rows, 1)))


def _thinned(tables: list[pa.Table]) -> list[pa.Table]:
    step = -(-sum(table.num_rows for table in tables) // ROW_LIMIT)
    return [table.take(list(range(0, table.num_rows, step))) for table in tables] if step > 1 else tables


def _key_table(
    content: pq.ParquetFile, group: int, columns: Sequence[str], partition: Mapping[str, str | None]
) -> pa.Table | None:
    import pyarrow as pa

    folders = {name.lower(): value for name, value in partition.items()}
    inside = {name.lower(): name for name in content.schema_arrow.names}
    real = [name.lower() for name in columns]
    if any(name not in folders and name not in inside for name in real):
        return None
    read = content.read_row_group(
        group, columns=[inside[name] for name in dict.fromkeys(real) if name not in folders]
    )
    rows = content.metadata.row_group(group).num_rows
    arrays = [
        pa.array([folders[name]] * rows, pa.string()) if name in folders else read.column(inside[name])
        for name in real
    ]
    return pa.table(arrays, names=[f"k{at}" for at in range(len(arrays))])


def _counted(tables: Sequence[pa.Table], columns: tuple[str, ...]) -> KeySample | None:
    import numpy as np
    import pyarrow as pa

    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
        counted = whole.group_by(whole.column_names).aggregate([([], "count_all")])
    except pa.ArrowException:  # nested types cannot be counted, differing ones not united
        return None
    if not whole.num_rows:
        return None
    names = whole.column_names
    most = counted.sort_by([("count_all", "descending")]).slice(0, _KEYS_KEPT)
    top = [(tuple(row[name] for name in names), row["count_all"]) for row in most.to_pylist()]
    sizes = np.sort(counted["count_all"].to_numpy())[::-1]
    return KeySample(
        columns,
        whole.num_rows,
        counted.num_rows,
        _key_text(top[0][0]),
        top[0][1] / whole.num_rows,
        tuple(sizes[:_SIZES_KEPT].tolist()),
        int((sizes == 1).sum()),
        (whole.num_rows - whole.drop_null().num_rows) / whole.num_rows,
        _top_keys(top),
    )


def _top_keys(top: Iterable[tuple[tuple[object, ...], int]]) -> tuple[tuple[tuple[str, ...], int], ...]:
    """The keys that a join can pair, as text that Spark reads back; seen once they say nothing."""
    return tuple(
        (tuple(map(str, key)), count)
        for key, count in top
        if count > 1 and not any(value is None or isinstance(value, bytes) for value in key)
    )


def _key_text(values: Sequence[object]) -> str:
    return ", ".join("NULL" if value is None else str(value) for value in values)
