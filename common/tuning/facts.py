"""What planners may know: facts about inputs and the engine, gathered by `engine`, read here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class KeySample:
    """How a sample of rows spreads over the values of some columns.

    Attributes:
        columns: The columns whose values were counted.
        row_count: Rows in the sample.
        distinct_count: Distinct value combinations in the sample: a lower bound of the whole.
        largest_key: The most frequent combination, as text.
        largest_ratio: Its share of the sampled rows, 0 to 1.
    """

    columns: tuple[str, ...]
    row_count: int
    distinct_count: int
    largest_key: str
    largest_ratio: float


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


@dataclass(frozen=True)
class Facts:
    """All that a planner is given.

    Attributes:
        inputs: Facts per input name.
        engine: "local", "submit", "connect".
        capabilities: What the engine can do ("rdd", "broadcast_variable", …).
        spark_version: For example "4.1.3"; empty before a session exists.
        core_count: Task slots of the engine; 0 when unknown.
    """

    inputs: Mapping[str, InputFacts] = field(default_factory=dict)
    engine: str = "local"
    capabilities: frozenset[str] = frozenset()
    spark_version: str = ""
    core_count: int = 0
