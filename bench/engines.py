"""Plain Spark against Comet: group by, window and join on 20M rows, in alternating order, as ratios.

Each side runs in its own process, in turn; the best time of each counts. CPU seconds are those of the JVM: on
a machine that is busy with other work their ratio says more than that of the times.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `bench` and `common` importable

from bench.bench_data import DATA, ROOT, make_data
from bench.bench_spark import SPARK_SIDES, from_process, jvm_cpu_seconds, spark_session

WORK = {
    "group by": "SELECT key, sum(amount) AS total, count(*) AS n FROM facts GROUP BY key",
    "window": "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY cat ORDER BY amount DESC, id) "
    "AS place FROM facts) WHERE place <= 3",
    "join": "SELECT d.region, sum(f.amount) AS total, count(*) AS n "
    "FROM facts f JOIN dims d ON f.key = d.key GROUP BY d.region",
}
# Side to work to (seconds, CPU seconds) of each round.
Measured = dict[str, dict[str, list[tuple[float, float]]]]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows of facts (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="times each side runs (default: %(default)s)")
    results = ROOT / "bench" / "results"
    parser.add_argument("--results", type=Path, default=results, help="folder of the JSON file")
    parser.add_argument("--side", choices=SPARK_SIDES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    data = DATA / f"{arguments.rows}"
    if arguments.side:
        print(json.dumps(_measure(arguments.side, data)))
        return
    make_data(data, rows=arguments.rows)
    load = os.getloadavg()[0]
    measured: Measured = {side: {name: [] for name in WORK} for side in SPARK_SIDES}
    for number in range(arguments.rounds):
        for side in SPARK_SIDES if number % 2 == 0 else reversed(SPARK_SIDES):
            for name, pair in _in_process(side, arguments.rows).items():
                measured[side][name].append(pair)
    report(measured, rows=arguments.rows, load=load, folder=arguments.results)


def _in_process(side: str, rows: int) -> dict[str, tuple[float, float]]:
    measured: dict[str, tuple[float, float]] = {}
    for line in from_process(__file__, "--side", side, "--rows", str(rows)):
        measured |= {name: (wall, cpu) for name, (wall, cpu) in line.items()}
    shown = ", ".join(f"{name} {wall:.1f} s (CPU {cpu:.1f} s)" for name, (wall, cpu) in measured.items())
    print(f"{side}: {shown}", file=sys.stderr)
    return measured


def _measure(side: str, data: Path) -> dict[str, tuple[float, float]]:
    """Seconds and CPU seconds of each piece of work, its rows consumed and not kept."""
    from common.engine.comet import reasons_against

    # Joins that are sorted and merged, as those of large sides are.
    settings = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
    with spark_session(side, name=f"bench {side}", settings=settings) as spark:
        for name in ("facts", "dims"):
            spark.read.parquet(str(data / f"{name}.parquet")).createOrReplaceTempView(name)
        spark.sql("SELECT cat, count(*) FROM facts WHERE id < 1000 GROUP BY cat").collect()
        measured = {}
        for name, query in WORK.items():
            assert side == "spark" or not reasons_against(spark.sql(query))
            started, cpu = time.perf_counter(), jvm_cpu_seconds(spark)
            spark.sql(query).write.format("noop").mode("overwrite").save()
            measured[name] = (time.perf_counter() - started, jvm_cpu_seconds(spark) - cpu)
        return measured


def report(measured: Measured, *, rows: int, load: float, folder: Path) -> None:
    """Print the ratios of the best, and keep all of it as JSON."""
    walls, cpus = ({side: _best(work, part) for side, work in measured.items()} for part in (0, 1))
    print(f"{'work':<10}  {'spark s':>8}  {'comet s':>8}  {'spark / comet':>13}  {'by CPU':>7}")
    for name in WORK:
        plain, comet = walls["spark"][name], walls["comet"][name]
        by_cpu = _ratio(cpus, name)
        print(f"{name:<10}  {plain:>8.1f}  {comet:>8.1f}  {plain / comet:>13.2f}  {by_cpu:>7.2f}")
    print(f"{rows:,} rows; load {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    now = datetime.now(UTC)
    result = {
        "when": now.isoformat(timespec="seconds"),
        "rows": rows,
        "load": [round(load, 2), round(os.getloadavg()[0], 2)],
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "seconds_and_cpu_seconds": measured,
        "ratios": {name: round(_ratio(walls, name), 3) for name in WORK},
        "cpu_ratios": {name: round(_ratio(cpus, name), 3) for name in WORK},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"engines-{now:%Y%m%dT%H%M%SZ}.json").write_text(json.dumps(result, indent=2) + "\n")


def _ratio(best: Mapping[str, Mapping[str, float]], name: str) -> float:
    return best["spark"][name] / (best["comet"][name] or 1.0)


def _best(work: Mapping[str, list[tuple[float, float]]], part: int) -> dict[str, float]:
    return {name: min(pair[part] for pair in rounds) for name, rounds in work.items()}


if __name__ == "__main__":
    main()
