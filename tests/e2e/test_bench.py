"""The benchmarks run, and compare the answers; how long things take is nobody's concern here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.topn_answers import Answers
from bench.topn_sides import Measurement
from tests.e2e.conftest import ROOT, Shell

Bench = Callable[..., tuple[Mapping[str, Any], str]]


@pytest.fixture
def bench(shell: Shell) -> Bench:
    """Runs a benchmark on 20,000 rows; what it has kept, and what it has printed."""

    def run(name: str, *words: str) -> tuple[Mapping[str, Any], str]:
        results = shell.folder / "results"
        asked: Sequence[object] = [sys.executable, ROOT / "bench" / f"{name}.py", *words]
        ended = shell([*asked, "--rows", "20000", "--rounds", "1", "--results", results], timeout=600)
        assert ended.code == 0, ended.err
        (kept,) = results.glob(f"{name}-*.json")
        return json.loads(kept.read_text()), ended.out

    return run


def test_topn_compares_all_ways_to_the_same_answer(bench: Bench) -> None:
    kept, out = bench(
        "topn", "--only", "cat-3", "--only", "tie-all", "--sides", "spark", "duckdb", "polars",
        "--repeats", "1",
    )  # fmt: skip
    assert set(kept["shapes"]) == {"cat-3", "tie-all"}
    assert set(kept["compared"]["cat-3"]) == {
        "spark aggregate", "spark prune", "spark auto", "duckdb sql", "polars lazy"
    }  # fmt: skip
    assert set(kept["compared"]["tie-all"]) == {
        "spark sort", "spark aggregate", "spark prune", "spark auto", "duckdb sql", "polars lazy"
    }  # fmt: skip
    first = kept["shapes"]["cat-3"]["measurements"][0]
    assert (first["side"], first["strategy"], first["answer"]["rows"]) == ("spark", "window", "303")
    # Of equal scores the lowest ids win: 0 to 9, by rank 1 to 10.
    ranks = kept["shapes"]["tie-all"]["measurements"][0]["answer"]["ids by rank"]
    assert ranks == str(sum(number * (number + 1) for number in range(10)))
    by_ratio = {row["ratio"]: row["outcome"] for row in kept["targets"]}
    assert by_ratio["plain window / auto on Comet"] == "not run"
    assert by_ratio["plain window / plain auto"] in ("met", "missed")
    assert {(row["shape"], row["side"]) for row in kept["auto"]} == {("cat-3", "spark"), ("tie-all", "spark")}
    assert "11 answers compared: all equal" in out


def test_lookup_compares_all_ways_to_the_same_rows(bench: Bench) -> None:
    kept, out = bench("lookup", "--sizes", "1k", "--sides", "spark")
    assert set(kept["seconds"]["1k"]["spark"]) == {
        "plain broadcast", "plain shuffle", "variable", "join", "shuffle", "auto"
    }  # fmt: skip
    lines = [line for lines in kept["runs"].values() for line in lines]
    # Each of the 20,000 facts has its one row of the dimension.
    assert [line["answer"]["row_count"] for line in lines if "answer" in line] == ["20000"] * 6
    choices = {line["way"]: line["choice"] for line in lines if "choice" in line}
    assert (choices["variable"], choices["join"], choices["shuffle"]) == ("variable", "join", "join")
    assert kept["memory"]["1k"]["spark"]["worker_own_bytes"] > 0
    assert [row["outcome"] in ("met", "missed") for row in kept["targets"]] == [True]
    assert "6 answers compared: all equal" in out


def test_engines_measures_the_three_kinds_of_work(bench: Bench, comet_jar: Path) -> None:
    kept, _ = bench("engines")
    assert set(kept["ratios"]) == {"group by", "window", "join"}
    for side in ("spark", "comet"):
        rounds = kept["seconds_and_cpu_seconds"][side]
        assert {name: len(times) for name, times in rounds.items()} == {"group by": 1, "window": 1, "join": 1}


def test_skew_compares_all_strategies_to_the_same_rows(bench: Bench) -> None:
    kept, out = bench("skew", "--shapes", "skewed", "--sides", "spark")
    assert list(kept["seconds"]["skewed"]["spark"]) == ["plain", "shuffle", "isolate", "salt", "auto"]
    levels = kept["level"]["skewed"]["spark"]
    assert list(levels) == ["plain, no AQE", "plain", "salt", "auto"]
    # Without AQE the join's stage has the partitions that were asked for.
    assert levels["plain, no AQE"]["join_tasks"] == 200
    answers = [line["answer"] for lines in kept["timed"].values() for line in lines if "answer" in line]
    # Each of the 20,000 facts has its one row of dims.
    assert [answer["row_count"] for answer in answers] == ["20000"] * 5
    assert {row["outcome"] for row in kept["targets"]} <= {"met", "missed"}
    assert "skewed.svg" in out


def test_skew_aggregate_compares_both_strategies(shell: Shell) -> None:
    asked = [sys.executable, ROOT / "bench" / "skew_aggregate.py", "--rows", "20000", "--repeats", "1"]
    ended = shell([*asked, "--only", "mode", "--results", shell.folder], timeout=600)
    assert ended.code == 0, ended.err
    kept = json.loads((shell.folder / "skew_aggregate-20000.json").read_text())
    assert [(it["case"], it["strategy"]) for it in kept["measured"]] == [
        ("mode", "plain"),
        ("mode", "two-stage"),
    ]
    assert "20,000 rows; all answers equal" in ended.out


def test_words_compares_all_ways_to_the_same_answer(shell: Shell) -> None:
    asked = [sys.executable, ROOT / "bench" / "words.py", "--megabytes", "1", "--repeats", "1"]
    ended = shell([*asked, "--results", shell.folder], timeout=600)
    assert ended.code == 0, ended.err
    (kept,) = shell.folder.glob("words-*.json")
    found = json.loads(kept.read_text())
    ways = {(item["task"], item["side"], item["way"]) for item in found["measurements"]}
    spark = {("spark", way) for way in ("plain sql", "auto", "sql")}
    others = {("duckdb", "query"), ("polars", "query")}
    assert ways == {("split", "spark", "plain rdd")} | {
        (task, *way) for task in ("split", "words", "mixed") for way in spark | others
    }
    # Twelve words a line, none of them parted by the rule.
    words = {item["task"]: item["answer"]["words"] for item in found["measurements"]}
    assert words["split"] == words["words"] == 12 * round(1_000_000 / 77.4)
    assert {row["outcome"] for row in found["targets"]} <= {"met", "missed"}
    assert "13 answers compared: all equal" in ended.out


def given(side: str, strategy: str, **answer: str) -> Measurement:
    return Measurement("cat-3", side, strategy, 1.0, 1.0, answer=answer)


def test_another_answer_ends_the_benchmark() -> None:
    answers = Answers()
    answers.add(given("spark", "window", rows="3", hashes="7", ids="12"))
    answers.add(given("duckdb", "sql", rows="3", ids="12"))
    answers.add(given("comet", "auto", rows="3", hashes="7"))
    with pytest.raises(SystemExit, match="comet prune differs from that of spark window: hashes 8 instead"):
        answers.add(given("comet", "prune", rows="3", hashes="8"))
    with pytest.raises(SystemExit, match="polars lazy differs from that of spark window: ids 13 instead"):
        answers.add(given("polars", "lazy", rows="3", ids="13"))
    assert answers.compared == {"cat-3": ["duckdb sql", "comet auto"]}
