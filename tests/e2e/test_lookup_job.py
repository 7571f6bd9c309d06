"""lookup as a user calls it, on a year of real flights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from tests.e2e.conftest import FLIGHTS, Ended

Run = Callable[..., Ended]
AIRPORTS, PLANES = FLIGHTS.parent / "airports", FLIGHTS.parent / "planes"
TO_PLANES = ["--facts", FLIGHTS, "--dimension", PLANES, "--on", "tailnum", "--take", "year=built,model"]


def test_flights_of_unknown_planes_are_counted_and_kept_apart(saltpan: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--strategy", "variable", "--missing", "quarantine", "--max-rejects", "52606", "--verify"]
    ended = saltpan("lookup", *TO_PLANES, *words, "--output", out)
    assert ended.code == 0, ended.err
    assert ended.record is not None
    counted = {"facts": 336_776, "matched": 284_170, "missing": 52_606, "null_keys": 2_512, "duplicates": 0}
    assert ended.record["counters"] == counted
    assert ended.record["output"]["rejects"] == f"{out}.rejects"
    assert "decision: variable: as asked; 3,322 dimension rows" in ended.err
    assert "284,170 rows equal the plain plan's" in ended.err
    assert "Warning" not in ended.err
    answer, rejects = pq.read_table(out), pq.read_table(f"{out}.rejects")
    assert (answer.num_rows, answer.column_names[-2:]) == (284_170, ["built", "model"])
    assert rejects.column_names == ["reject_reason", *answer.column_names[:-2]]
    reasons = rejects["reject_reason"].to_pylist()
    assert (reasons.count("NULL_KEY"), reasons.count("NO_MATCH")) == (2_512, 50_094)


def test_a_destination_without_an_airport_publishes_nothing(saltpan: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--facts", FLIGHTS, "--dimension", AIRPORTS, "--on", "dest=faa", "--take", "name=dest_name"]
    ended = saltpan("lookup", *words, "--missing", "fail", "--output", out)
    assert ended.code == 3, ended.err
    assert "7,602 rows without one" in ended.err
    assert "SJU (5,819 rows), BQN (896 rows), STT (522 rows), PSE (365 rows)" in ended.err
    assert ended.record is not None
    assert (ended.record["counters"]["missing"], ended.record["counters"]["matched"]) == (7_602, 329_174)
    assert not out.exists()
    assert sorted(path.name for path in tmp_path.iterdir() if "out" in path.name) == []


def test_what_is_typed_wrong(saltpan: Run) -> None:
    wrong = ["--missing", "ignore", "--duplicates", "first", "--as-of", "June", "--strategy", "dict"]
    ended = saltpan("lookup", *TO_PLANES, *wrong, "--max-rejects", "some")
    assert ended.code == 2
    for flag in ("--missing", "--duplicates", "--as-of", "--strategy", "--max-rejects"):
        assert flag in ended.err
    assert "default:VALUE" in ended.err
