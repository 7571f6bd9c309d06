"""skew-aggregate end to end, on a month of real flights, against DuckDB."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import duckdb
import pytest

from tests.e2e.conftest import FLIGHTS, ROOT, Ended

Run = Callable[..., Ended]

JANUARY = FLIGHTS / "date=2013-01-*"
ASKED = ["--input", JANUARY, "--group-by", "carrier", "--where", "distance > 0", "--format", "csv"]
AGGREGATES = [
    "--aggregate",
    "count(distinct tailnum) as planes, median(arr_delay) as half, mode(dest) as often",
    "--aggregate",
    "avg(distance) as miles",
    "--aggregate",
    "size(collect_set(dest)) as places, percentile(arr_delay, 0.9) - percentile(arr_delay, 0.1) as span",
]


def by_duckdb() -> list[tuple[object, ...]]:
    return duckdb.sql(
        f"""
        SELECT carrier, count(DISTINCT tailnum), quantile_cont(arr_delay, 0.5)::DOUBLE,
          arg_max(dest, n), sum_distance / flights, count(DISTINCT dest),
          quantile_cont(arr_delay, 0.9)::DOUBLE - quantile_cont(arr_delay, 0.1)::DOUBLE
        FROM read_parquet('{JANUARY}/*.parquet')
        JOIN (SELECT carrier, dest, count(*) AS n FROM read_parquet('{JANUARY}/*.parquet') GROUP BY ALL)
          USING (carrier, dest)
        JOIN (SELECT carrier, sum(distance) AS sum_distance, count(*) AS flights
          FROM read_parquet('{JANUARY}/*.parquet') GROUP BY ALL) USING (carrier)
        GROUP BY ALL ORDER BY carrier
        """
    ).fetchall()


def test_two_stages_equal_duckdb_and_the_plain_plan(saltpan: Run) -> None:
    ended = saltpan(
        "skew-aggregate", *ASKED, *AGGREGATES, "--strategy", "two-stage", "--salts", "8", "--verify"
    )
    assert ended.code == 0, ended.err
    header, *rows = csv.reader(io.StringIO(ended.out))
    assert header == ["carrier", "planes", "half", "often", "miles", "places", "span"]
    expected = by_duckdb()
    assert len(rows) == len(expected) == 16
    for row, right in zip(rows, expected, strict=True):
        assert (row[0], int(row[1]), row[3], int(row[5])) == (right[0], right[1], right[3], right[5])
        found = [float(row[at]) for at in (2, 4, 6)]
        assert found == pytest.approx([right[2], right[4], right[6]])
    assert "decision: two-stage: as asked; 27,004 rows by carrier" in ended.err
    record = ended.record
    assert record is not None
    assert record["verification"]["compared_within_1e-9"] == ["miles"]
    assert record["decisions"][-1]["evidence"]["salts"] == 8


def test_auto_on_this_machine_says_what_it_leaves_to_spark(submit: Run) -> None:
    words = [*ASKED, "--aggregate", "count(distinct tailnum) as planes, sum(distance) as miles"]
    ended = submit(ROOT / "jobs" / "skew_aggregate.py", *words)
    assert ended.code == 0, ended.err
    assert "not two-stage (Spark counts distinct values in two stages itself" in ended.err
    rows = {row[0]: (int(row[1]), int(row[2])) for row in list(csv.reader(io.StringIO(ended.out)))[1:]}
    assert rows["HA"] == (9, 154_473)  # 31 flights of 4,983 miles to Honolulu
    assert len(rows) == 16


@pytest.mark.parametrize(
    ("aggregates", "code", "words"),
    [
        (["distance + 1"], 2, "expected an aggregate, got none in it"),
        (["rank() over (order by distance)"], 2, "got a window (OVER)"),
        (["first(dest)"], 2, "another partitioning"),
        (["sum(distance"], 2, "expected brackets in pairs"),
    ],
)
def test_mistakes_that_need_no_spark(saltpan: Run, aggregates: list[str], code: int, words: str) -> None:
    flags = [word for text in aggregates for word in ("--aggregate", text)]
    ended = saltpan("skew-aggregate", *ASKED, *flags)
    assert (ended.code, "Traceback" in ended.err) == (code, False)
    assert words in ended.err


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--aggregate", "sum(distanz)"], 3, "did you mean `distance`"),
        (["--aggregate", "no_such(distance)", "--strategy", "two-stage"], 2, "got no_such"),
    ],
)
def test_mistakes_that_spark_finds(saltpan: Run, flags: list[str], code: int, words: str) -> None:
    ended = saltpan("skew-aggregate", *ASKED, *flags)
    assert (ended.code, "Traceback" in ended.err) == (code, False), ended.err
    assert words in ended.err
