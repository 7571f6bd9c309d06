"""Lookups in a thousand to a million rows: broadcast variable, broadcast join and shuffle join, as ratios."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `bench` and `common` importable

from bench.bench_data import DATA, ROOT, make_data
from bench.bench_spark import SPARK_SIDES, compare_answers, from_process
from bench.lookup_sides import WAYS

DIMENSIONS = {"1k": 1_000, "100k": 100_000, "1M": 1_000_000}
SIDES_SCRIPT = str(Path(__file__).with_name("lookup_sides.py"))
# (dimension, side, way) to its lines.
Runs = dict[tuple[str, str, str], list[dict[str, Any]]]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows of facts (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each side (default: %(default)s)")
    parser.add_argument(
        "--sizes", nargs="+", choices=DIMENSIONS, default=tuple(DIMENSIONS), help="(default: all)"
    )
    parser.add_argument(
        "--sides", nargs="+", choices=SPARK_SIDES, default=SPARK_SIDES, help="(default: both)"
    )
    results = ROOT / "bench" / "results"
    parser.add_argument("--results", type=Path, default=results, help="folder of the JSON file")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    runs = _runs(arguments)
    report = _report(runs)
    for line in _lines(report):
        print(line)
    print(f"{arguments.rows:,} rows; load {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    _keep(report, runs, arguments, load)


def _runs(arguments: argparse.Namespace) -> Runs:
    facts = DATA / f"{arguments.rows}"
    make_data(facts, rows=arguments.rows, tables=("uniform",))
    runs: Runs = {}
    for size in arguments.sizes:
        # One row per key; the table of so many keys belongs to twenty times as many rows.
        dimension = DATA / f"{DIMENSIONS[size] * 20}"
        make_data(dimension, rows=DIMENSIONS[size] * 20, tables=("dims",))
        paths = ["--facts", str(facts / "uniform.parquet"), "--dimension", str(dimension / "dims.parquet")]
        for number in range(arguments.rounds):
            for side in arguments.sides if number % 2 == 0 else reversed(arguments.sides):
                # Answers are compared once; the comparison costs a run of each.
                more = ["--check"] if number == 0 else []
                for line in from_process(SIDES_SCRIPT, "--side", side, *paths, "--ways", *WAYS, *more):
                    if "seconds" in line:
                        print(f"{size:<5} {side:<6} {line['way']}: {line['seconds']:.1f} s", file=sys.stderr)
                    runs.setdefault((size, side, line["way"]), []).append(line)
    print(f"{compare_answers(runs)} answers compared: all equal")
    return runs


def _report(runs: Runs) -> dict[str, Any]:
    best: dict[str, dict[str, dict[str, float]]] = {}
    memory: dict[str, dict[str, dict[str, int]]] = {}
    for (size, side, way), lines in runs.items():
        timed = [line for line in lines if "seconds" in line]
        best.setdefault(size, {}).setdefault(side, {})[way] = min(line["seconds"] for line in timed)
        if way == "variable":
            peaks = {
                name: max(line[name] for line in timed) for name in ("worker_peak_bytes", "worker_own_bytes")
            }
            memory.setdefault(size, {})[side] = peaks
    return {"seconds": best, "memory": memory, "targets": list(_targets(best))}


def _targets(best: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Iterable[dict[str, Any]]:
    for size, sides in best.items():
        for side, ways in sides.items():
            over = ways["auto"] - 1.1 * min(ways.values())
            yield {
                "what": f"{size}, {side}: auto over 1.1 best, seconds",
                "value": round(over, 2),
                "must": "<= 0.5",
                "outcome": "met" if over <= 0.5 else "missed",
            }


def _lines(report: Mapping[str, Any]) -> Iterable[str]:
    yield f"{'rows':<6}{'side':<8}" + "".join(f"{way:>17}" for way in WAYS) + "   seconds"
    for size, sides in report["seconds"].items():
        for side, ways in sides.items():
            yield f"{size:<6}{side:<8}" + "".join(f"{ways[way]:>17.1f}" for way in WAYS)
    yield ""
    yield f"{'rows':<6}{'side':<8}{'peak':>10}{'own':>10}   MiB of a worker: with shared pages, without"
    for size, sides in report["memory"].items():
        for side, found in sides.items():
            peak, own = (found[name] / 1024**2 for name in ("worker_peak_bytes", "worker_own_bytes"))
            yield f"{size:<6}{side:<8}{peak:>10.0f}{own:>10.0f}"
    yield ""
    for target in report["targets"]:
        yield f"{target['outcome']:<7}{target['value']:>8.2f}  {target['must']:<8}{target['what']}"


def _keep(report: Mapping[str, Any], runs: Runs, arguments: argparse.Namespace, load: float) -> None:
    now = datetime.now(UTC)
    arguments.results.mkdir(parents=True, exist_ok=True)
    kept = {
        "when": now.isoformat(timespec="seconds"),
        "rows": arguments.rows,
        "load": [round(load, 2), round(os.getloadavg()[0], 2)],
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        **report,
        "runs": {" / ".join(key): lines for key, lines in runs.items()},
    }
    (arguments.results / f"lookup-{now:%Y%m%dT%H%M%SZ}.json").write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
