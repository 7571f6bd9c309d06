"""What planners may know: facts about inputs and the engine, gathered by `engine`, read here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class KeySample:
    """How a sample of rows spreads over the values of some columns.

    Attributes:
        columns: The columns whose values were counted.
        row_count: Rows in the sample.
        distinct_count: Distinct value combinations in the sample: a lower bound of the whole.
        largest_key: The most frequent combination, as text.
        largest_ratio: Its share of the sampled rows, 0 to 1.
        group_sizes: Sampled rows of the most frequent combinations, descending, at most 1,000 of them.
        singleton_count: Combinations that were seen once.
        null_ratio: Share of the sampled rows with a NULL in any of the columns, 0 to 1.
        top_keys: The most frequent combinations without a NULL as text, with their sampled rows, at most 200.
        is_clustered: The sample is the first rows, and equal keys stand together in them more often than by
            chance: of the other rows it tells nothing.
    """

    columns: tuple[str, ...]
    row_count: int
    distinct_count: int
    largest_key: str
    largest_ratio: float
    group_sizes: tuple[int, ...] = ()
    singleton_count: int = 0
    null_ratio: float = 0.0
    top_keys: tuple[tuple[tuple[str, ...], int], ...] = ()
    is_clustered: bool = False

    def groups_among(self, row_count: int) -> int:
        """About how many combinations so many rows hold, when the sample is a fair one.

        Those seen once stand for sqrt(rows / sampled rows) each (the guaranteed-error estimator of Charikar
        et al., 2000); the others are taken to be all there are.

        >>> KeySample(("k",), 100, 60, "a", 0.4, (40, 1), singleton_count=50).groups_among(10_000)
        510
        """
        scale = math.sqrt(max(1.0, row_count / self.row_count))
        return round(self.distinct_count - self.singleton_count + scale * self.singleton_count)


@dataclass(frozen=True)
class InputFacts:
    """What is known about one input before any row of it is processed.

    Attributes:
        name: The input's name in the job ("input", "left").
        format: parquet, orc, csv, json, text or table.
        paths: As the user gave them.
        file_count: Data files; None when they cannot be listed (a table, a remote server).
        size_bytes: Their size on disk.
        row_count: Exact row count from the files' footers; None when no cheap way tells it.
        column_names: The columns, partition columns last; None when only the engine can tell.
        partition_columns: Columns that folder names hold.
        schema_declared: True when the user declared the types, or the files carry them.
        fingerprint: Digest of the files' paths, sizes and times; None for a table.
        sample: How the key columns spread, when the job asked for it and it was cheap.
        column_bytes: Stored bytes of each column in some of the files, by lower-case name: which columns
            are wide. Empty when no cheap way tells it.
        column_widths: Bytes of a value of each column as a join holds it in memory, on average over the first
            rows, by lower-case name. Empty when the job asked for no sample or no cheap way tells it.
        is_reachable: Python can open the files by itself.
        packed_files: Compressed files of plain text, which are read from their beginning only.
    """

    name: str
    format: str
    paths: tuple[str, ...]
    file_count: int | None = None
    size_bytes: int | None = None
    row_count: int | None = None
    column_names: tuple[str, ...] | None = None
    partition_columns: tuple[str, ...] = ()
    schema_declared: bool = True
    fingerprint: str | None = None
    sample: KeySample | None = None
    column_bytes: Mapping[str, int] = field(default_factory=dict)
    column_widths: Mapping[str, float] = field(default_factory=dict)
    is_reachable: bool = False
    packed_files: tuple[str, ...] = ()

    @property
    def about_row_count(self) -> int | None:
        """Exact rows, else as many as the stored bytes may hold at 50 each; None when neither is known."""
        if self.row_count is not None:
            return self.row_count
        return None if self.size_bytes is None else self.size_bytes // 50


@dataclass(frozen=True)
class Facts:
    """All that a planner is given.

    Attributes:
        inputs: Facts per input name.
        engine: "local", "submit", "connect".
        capabilities: What the engine can do ("rdd", "broadcast_variable", …).
        spark_version: For example "4.1.3"; empty before a session exists.
        core_count: Task slots of the engine; 0 when unknown.
        accelerator: What runs the plans natively: "comet", "none".
        probed: Rows of the small frames that the job asked for, by their name.
        workers_per_executor: Python workers that one executor runs at a time; 0 when unknown.
    """

    inputs: Mapping[str, InputFacts] = field(default_factory=dict)
    engine: str = "local"
    capabilities: frozenset[str] = frozenset()
    spark_version: str = ""
    core_count: int = 0
    accelerator: str = "none"
    probed: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    workers_per_executor: int = 0

    @property
    def python_workers(self) -> int:
        """Python workers of one executor, at most and at least one: all task slots where nobody tells."""
        return max(1, self.workers_per_executor or self.core_count)
