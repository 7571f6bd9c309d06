"""What the benchmarks read: rows that DuckDB makes from hashes of their number, the same on every machine.

facts  all rows: 30 % of the keys are one value, 15 % four more; 101 values of cat
dims   one row per key
edges  a tenth of the rows, with columns of one value, of NULL, and one that holds 90 % of the rows
tiny   1,000 rows of facts
skewed, zipf, uniform   rows of facts in small row groups, keyed as facts, by Zipf's law (1.2), and evenly
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data" / "generated" / "bench"
TINY_ROWS = 1_000


def make_data(folder: Path, *, rows: int, tables: Sequence[str] = ("facts", "dims")) -> None:
    """Make what is missing of the tables, one Parquet file each; a file that is there is whole."""
    import duckdb

    folder.mkdir(parents=True, exist_ok=True)
    for name in tables:
        path = folder / f"{name}.parquet"
        if path.exists():
            continue
        print(f"making {path.relative_to(ROOT)}", file=sys.stderr)
        part = path.with_suffix(f".{os.getpid()}.part")
        with duckdb.connect() as connection:
            group = GROUP_ROWS.get(name, 1_000_000)
            connection.execute(
                f"COPY ({TABLES[name](rows)}) TO {literal(part)} (FORMAT parquet, ROW_GROUP_SIZE {group})"
            )
        part.replace(path)


def literal(path: Path) -> str:
    """A path as SQL text."""
    return "'" + str(path).replace("'", "''") + "'"


def _facts(rows: int) -> str:
    # hash() of a number is the same on every machine: a seed that needs no generator state.
    draw = "(hash(i * 3 + {n}) % 1000000)::BIGINT"
    return f"""
        SELECT i AS id,
          CASE WHEN {draw.format(n=0)} < 300000 THEN 1 WHEN {draw.format(n=0)} < 450000
            THEN 2 + {draw.format(n=1)} % 4 ELSE (hash(i * 3 + 1) % {_keys(rows)})::BIGINT END AS key,
          {draw.format(n=2)} / 100.0::DOUBLE AS amount,
          (hash(i * 7 + 5) % 101)::INTEGER AS cat,
          'payload ' || (hash(i) % 1000000000)::VARCHAR AS payload
        FROM range({rows}) t(i)"""


def _dims(rows: int) -> str:
    return (
        f"SELECT i AS key, 'name ' || i AS name, 'region ' || i % 25 AS region FROM range({_keys(rows)}) t(i)"
    )


def _edges(rows: int) -> str:
    return f"""
        SELECT *, 1::INTEGER AS one, 5.0::DOUBLE AS tie, NULL::DOUBLE AS nothing,
          CASE WHEN hash(id * 5 + 1) % 10 < 9 THEN 0 ELSE (hash(id * 5 + 2) % 1000)::INTEGER END AS hot
        FROM ({_facts(max(rows // 10, TINY_ROWS))})"""


def _zipf(rows: int) -> str:
    # The inverse of the continuous law's distribution; what lies beyond the last key is spread evenly.
    u = "((hash(i * 3 + 7) % 1000000000 + 1) / 1000000000.0)"
    drawn, spread = f"floor({u} ** -5)::BIGINT", f"(hash(i * 3 + 1) % {_keys(rows)})::BIGINT"
    key = f"CASE WHEN {u} ** -5 < {_keys(rows)} THEN {drawn} ELSE {spread} END"
    return f"SELECT * REPLACE ({key} AS key) FROM ({_facts(rows)}) f(i, key, amount, cat, payload)"


def _uniform(rows: int) -> str:
    key = f"(hash(i * 3 + 1) % {_keys(rows)})::BIGINT"
    return f"SELECT * REPLACE ({key} AS key) FROM ({_facts(rows)}) f(i, key, amount, cat, payload)"


def _tiny(_rows: int) -> str:
    return _facts(TINY_ROWS)


def _keys(rows: int) -> int:
    return max(rows // 20, 10)


TABLES: dict[str, Callable[[int], str]] = {
    "facts": _facts,
    "dims": _dims,
    "edges": _edges,
    "tiny": _tiny,
    "skewed": _facts,
    "zipf": _zipf,
    "uniform": _uniform,
}
# Small enough for a task of its own each, on a hundred cores.
GROUP_ROWS = {"dims": 100_000, "skewed": 100_000, "zipf": 100_000, "uniform": 100_000}
