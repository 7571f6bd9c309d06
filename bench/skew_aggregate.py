"""Aggregations over a hot group of 30 % of the rows, in one stage and in two: total work, and on 100 cores.

Both run in one process, in turn; the best time of each counts, and the answers are compared. The tasks are
cut as a cluster would cut them, and their times, each at the best of its rounds, are replayed on 2, 16 and
100 cores, longest first.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `bench` and `common` importable

from bench.bench_data import DATA, ROOT, make_data
from bench.bench_spark import jvm_cpu_seconds, spark_session
from bench.skew_levels import (
    CLUSTER_CORES,
    MANY_TASKS,
    best_stages,
    max_to_median,
    plain_stages,
    replayed,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from common.tuning.decision import Decision

CASES = {
    "sum, count, avg": ("sum(amount) as s", "count(*) as n", "avg(cat) as a"),
    "count distinct": ("count(distinct id) as ids",),
    "two count distinct": ("count(distinct id) as ids", "count(distinct amount) as amounts"),
    "percentile": ("percentile(amount, 0.5) as half",),
    "three percentiles": ("percentile(amount, array(0.1, 0.5, 0.99)) as p",),
    "mode": ("mode(amount) as often",),
    "collect_set": ("size(collect_set(amount)) as amounts",),
    "collect_list": ("size(collect_list(amount)) as amounts",),
    "count distinct, percentile": ("count(distinct id) as ids", "percentile(amount, 0.5) as half"),
    "count distinct, sketch": ("count(distinct id) as ids", "approx_count_distinct(payload) as texts"),
}
STRATEGIES = ("plain", "two-stage")


@dataclass(frozen=True)
class Measurement:
    """One answer, once.

    Attributes:
        case: Name of the aggregates.
        strategy: "plain" or "two-stage".
        choice: What auto chooses for 100 cores.
        seconds: Until all rows were consumed, here.
        cpu_seconds: Of the JVM.
        replayed_seconds: The tasks on so many cores, see `replayed`.
        longest_seconds: The longest task.
        uneven_ratio: The longest task of a shuffle's stage over the median one, in the worst stage.
    """

    case: str
    strategy: str
    choice: str
    seconds: float
    cpu_seconds: float
    replayed_seconds: dict[str, float]
    longest_seconds: float
    uneven_ratio: float


def main() -> None:
    """Run from the command line."""
    asked = _arguments()
    data = DATA / f"{asked.rows}"
    make_data(data, rows=asked.rows, tables=("skewed",))
    load, best = os.getloadavg()[0], []
    with spark_session(
        "spark", name="bench skew-aggregate", heap_gib=asked.heap, settings=MANY_TASKS
    ) as spark:
        _warm_up(spark, data / "skewed.parquet")
        for case in asked.only or CASES:
            pair = list(_best(spark, data / "skewed.parquet", case, asked.repeats))
            best += pair
            _say(pair)
    print(f"\n{asked.rows:,} rows; all answers equal; load {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    asked.results.mkdir(parents=True, exist_ok=True)
    found = {"rows": asked.rows, "load": load, "measured": [asdict(it) for it in best]}
    (asked.results / f"skew_aggregate-{asked.rows}.json").write_text(json.dumps(found, indent=1) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=2, help="times each runs (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=CASES, metavar="CASE", help=", ".join(CASES))
    parser.add_argument(
        "--heap", type=int, default=4, metavar="GIB", help="of the JVM (default: %(default)s)"
    )
    parser.add_argument("--results", type=Path, default=ROOT / "bench" / "results", help="folder of the JSON")
    return parser.parse_args()


def _warm_up(spark: SparkSession, file: Path) -> None:
    rows = spark.read.parquet(str(file)).where("id < 100000")
    rows.selectExpr("percentile(amount, 0.5)", "count(distinct id)").collect()


def _best(spark: SparkSession, file: Path, case: str, repeats: int) -> Iterator[Measurement]:
    answers = []
    for strategy in STRATEGIES:
        runs = [_measured(spark, file, case, strategy) for _ in range(repeats)]
        yield _measurement(case, strategy, runs)
        answers.append(_answer(_frame(spark, file, case, strategy)[0]))
    if answers[0] != answers[1]:
        raise SystemExit(f"{case}: the answers differ: {answers}")


def _measured(spark: SparkSession, file: Path, case: str, strategy: str) -> dict[str, Any]:
    from common.engine.stage_metrics import stage_mark, stages_since

    mark, started, cpu = stage_mark(spark), time.perf_counter(), jvm_cpu_seconds(spark)
    frame, choice = _frame(spark, file, case, strategy)
    frame.write.format("noop").mode("overwrite").save()
    seconds, cpu = time.perf_counter() - started, jvm_cpu_seconds(spark) - cpu
    stages = plain_stages(stages_since(spark, mark) or ())
    return {"choice": choice, "seconds": seconds, "cpu_seconds": cpu, "stages": stages}


def _measurement(case: str, strategy: str, runs: Sequence[Mapping[str, Any]]) -> Measurement:
    best, stages = min(runs, key=lambda run: float(run["seconds"])), best_stages(runs)
    return Measurement(
        case,
        strategy,
        best["choice"],
        best["seconds"],
        best["cpu_seconds"],
        replayed(stages),
        max((max(stage["seconds"]) for stage in stages), default=0.0),
        max((max_to_median(it["seconds"]) for it in stages if it["shuffle_read_bytes"]), default=1.0),
    )


def _frame(spark: SparkSession, file: Path, case: str, strategy: str) -> tuple[DataFrame, str]:
    """The answer as the job builds it on a cluster of 100 cores, and what auto would choose there."""
    from jobs.skew_aggregate import Settings, SkewAggregate

    inputs, job = {"input": spark.read.parquet(str(file))}, SkewAggregate()
    settings = {"aggregate": CASES[case], "group_by": ("key",)}
    decision = _decision(file, Settings(**settings, strategy=strategy))
    return job.build(inputs, Settings(**settings), decision), _decision(file, Settings(**settings)).choice


def _decision(file: Path, settings: Any) -> Decision:
    from common.engine.facts import sample_keys, static_facts
    from common.engine.listing import list_input
    from common.settings.inputs import InputRequest
    from common.tuning.facts import Facts
    from jobs.skew_aggregate import SkewAggregate

    listing = list_input(InputRequest("input", (str(file),)))
    known = replace(static_facts(listing), sample=sample_keys(listing, settings.group_by))
    return SkewAggregate().plan(Facts({"input": known}, core_count=CLUSTER_CORES), settings)


def _answer(frame: DataFrame) -> dict[str, str]:
    """Rows and the sum of their hashes; the last digits of a sum of floats are left out."""
    from pyspark.sql import functions as F

    from common.transforms.fingerprint import fingerprint

    if "s" in frame.columns:
        frame = frame.withColumn("s", F.round("s", 2)).withColumn("a", F.round("a", 9))
    found = fingerprint(frame).first()
    assert found is not None
    return {"rows": str(found["row_count"]), "hashes": str(found["hash_sum"])}


def _say(pair: Sequence[Measurement]) -> None:
    plain = pair[0].replayed_seconds[str(CLUSTER_CORES)]
    for run in pair:
        walls = "  ".join(f"{cores}: {seconds:7.2f} s" for cores, seconds in run.replayed_seconds.items())
        auto = "  <- auto" if run.choice == run.strategy else ""
        times = plain / run.replayed_seconds[str(CLUSTER_CORES)]
        print(
            f"{run.case:28} {run.strategy:10} {run.seconds:7.1f} s {run.cpu_seconds:7.1f} s CPU  {walls}"
            f"  longest {run.longest_seconds:6.2f} s  max/median {run.uneven_ratio:6.1f}  x{times:.1f}{auto}",
            flush=True,
        )


if __name__ == "__main__":
    main()
