"""Plain Spark against Comet: group by, window and join on 20M rows, in alternating order, as ratios.

Each side runs in its own process, in turn; the best time of each counts. CPU seconds are those of the JVM: on
a machine that is busy with other work their ratio says more than that of the times.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

RESULTS = ROOT / "bench" / "results"
DATA = ROOT / "data" / "generated" / "bench"
SIDES = ("spark", "comet")
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
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    data = DATA / f"{arguments.rows}"
    if arguments.side:
        print(json.dumps(_measure(arguments.side, data)))
        return
    make_data(data, rows=arguments.rows)
    load = os.getloadavg()[0]
    measured: Measured = {side: {name: [] for name in WORK} for side in SIDES}
    for number in range(arguments.rounds):
        for side in SIDES if number % 2 == 0 else reversed(SIDES):
            for name, pair in _in_process(side, arguments.rows).items():
                measured[side][name].append(pair)
    report(measured, rows=arguments.rows, load=load)


def make_data(folder: Path, *, rows: int) -> None:
    """Facts and dims as Parquet: 30 % of the keys are one value, 15 % four more. No randomness."""
    import duckdb

    done = folder / "done"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    print(f"making {rows:,} rows in {folder.relative_to(ROOT)}", file=sys.stderr)
    keys = max(rows // 20, 10)
    # hash() of a number is the same on every machine: a seed that needs no generator state.
    draw = "(hash(i * 3 + {n}) % 1000000)::BIGINT"
    facts = f"""
        SELECT i AS id,
          CASE WHEN {draw.format(n=0)} < 300000 THEN 1 WHEN {draw.format(n=0)} < 450000
            THEN 2 + {draw.format(n=1)} % 4 ELSE (hash(i * 3 + 1) % {keys})::BIGINT END AS key,
          {draw.format(n=2)} / 100.0::DOUBLE AS amount,
          (hash(i * 7 + 5) % 101)::INTEGER AS cat,
          'payload ' || (hash(i) % 1000000000)::VARCHAR AS payload
        FROM range({rows}) t(i)"""
    dims = f"SELECT i AS key, 'name ' || i AS name, 'region ' || i % 25 AS region FROM range({keys}) t(i)"
    with duckdb.connect() as connection:
        for name, query in (("facts", facts), ("dims", dims)):
            path = folder / f"{name}.parquet"
            connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 1000000)")
    done.touch()


def _in_process(side: str, rows: int) -> dict[str, tuple[float, float]]:
    command = [sys.executable, __file__, "--side", side, "--rows", str(rows)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(ran.stderr[-4000:])
    measured: dict[str, list[float]] = json.loads(ran.stdout.splitlines()[-1])
    shown = ", ".join(f"{name} {wall:.1f} s (CPU {cpu:.1f} s)" for name, (wall, cpu) in measured.items())
    print(f"{side}: {shown}", file=sys.stderr)
    return {name: (wall, cpu) for name, (wall, cpu) in measured.items()}


def _measure(side: str, data: Path) -> dict[str, tuple[float, float]]:
    """Seconds and CPU seconds of each piece of work, its rows consumed and not kept."""
    from pyspark.sql import SparkSession

    from common.engine.comet import is_active, reasons_against

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = _settings(side)
    builder = SparkSession.builder.appName(f"bench {side}")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        if is_active(spark) != (side == "comet"):
            raise SystemExit(f"{side}: Comet is {'not ' if side == 'comet' else ''}active")
        for name in ("facts", "dims"):
            spark.read.parquet(str(data / f"{name}.parquet")).createOrReplaceTempView(name)
        spark.sql("SELECT cat, count(*) FROM facts WHERE id < 1000 GROUP BY cat").collect()
        measured = {}
        for name, query in WORK.items():
            assert side == "spark" or not reasons_against(spark.sql(query))
            started, cpu = time.perf_counter(), _cpu_seconds(spark)
            spark.sql(query).write.format("noop").mode("overwrite").save()
            measured[name] = (time.perf_counter() - started, _cpu_seconds(spark) - cpu)
        return measured
    finally:
        spark.stop()


def _cpu_seconds(spark: Any) -> float:
    """What the JVM has used of all cores, native threads included; Linux tells."""
    stat = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/stat")
    if not stat.exists():
        return 0.0
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _settings(side: str) -> dict[str, str]:
    from common.settings.profiles import load_profile

    profile = load_profile("local" if side == "spark" else "local+comet", folder=ROOT / "conf")
    settings = {key: setting.value for key, setting in profile.settings.items()}
    # The same heap on both sides, and joins that are sorted and merged, as those of large sides are.
    settings |= {"spark.driver.memory": "4g", "spark.sql.autoBroadcastJoinThreshold": "-1"}
    if side == "spark":
        return settings
    import pyspark

    from common.engine.comet import prepare_comet
    from common.engine.java import check_java
    from common.engine.machine import read_machine
    from common.tuning.accelerator import RunFacts

    decision, added = prepare_comet(
        "comet",
        RunFacts("local", pyspark.__version__, read_machine(), heap_bytes=4 * 1024**3),
        java=str(Path(check_java().home, "bin", "java")),
        spark_home=str(Path(pyspark.__file__).parent),
    )
    if decision.choice != "comet":
        raise SystemExit(decision.line())
    return {**settings, **added}


def report(measured: Measured, *, rows: int, load: float) -> None:
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
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"engines-{now:%Y%m%dT%H%M%SZ}.json").write_text(json.dumps(result, indent=2) + "\n")


def _ratio(best: Mapping[str, Mapping[str, float]], name: str) -> float:
    return best["spark"][name] / (best["comet"][name] or 1.0)


def _best(work: Mapping[str, list[tuple[float, float]]], part: int) -> dict[str, float]:
    return {name: min(pair[part] for pair in rounds) for name, rounds in work.items()}


if __name__ == "__main__":
    main()
