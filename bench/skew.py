"""Joins of skewed, Zipf-distributed and even keys: every strategy of skew-join beside Spark's own, as ratios.

Times are those of two cores. What a hundred cores would wait for is replayed from measured task times,
longest first, of a run laid out for many tasks.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `bench` and `common` importable

from bench.bench_data import DATA, ROOT, make_data
from bench.bench_spark import SPARK_SIDES, compare_answers, from_process
from bench.skew_sides import CLUSTER_CORES
from common.tuning.levelness import StageRun, replayed_seconds, spread, waves

KEYS = {
    "skewed": "30 % of one key, 15 % of four",
    "zipf": "keys by Zipf's law, 1.2",
    "uniform": "even keys",
}
SHAPES = tuple(KEYS)
CORES = (2, 16, CLUSTER_CORES)
# The plan without mitigation is there for the replay; strategies of the job against Spark's own join.
TIMED = ("plain", "shuffle", "isolate", "salt", "auto")
REPLAYED = ("plain, no AQE", "plain", "salt", "auto")
REPLAY_ROUNDS = 3
SIDES_SCRIPT = str(Path(__file__).with_name("skew_sides.py"))
Runs = dict[tuple[str, str, str], list[dict[str, Any]]]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rows", type=int, default=20_000_000, help="rows on the left (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=2, help="processes of each side (default: %(default)s)")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES, help="(default: all)")
    parser.add_argument(
        "--sides", nargs="+", choices=SPARK_SIDES, default=SPARK_SIDES, help="(default: both)"
    )
    results = ROOT / "bench" / "results"
    parser.add_argument(
        "--results", type=Path, default=results, help="folder of the JSON file and the picture"
    )
    arguments = parser.parse_args()
    data = DATA / f"{arguments.rows}"
    make_data(data, rows=arguments.rows, tables=(*arguments.shapes, "dims"))
    load = os.getloadavg()[0]
    timed = _timed(arguments, data)
    replayed = _replayed(arguments, data)
    report = _report(timed, replayed)
    for line in _lines(report):
        print(line)
    print(f"{arguments.rows:,} rows; load {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    _keep(report, timed, replayed, arguments, load)


def _timed(arguments: argparse.Namespace, data: Path) -> Runs:
    runs: Runs = {}
    for shape in arguments.shapes:
        for number in range(arguments.rounds):
            for side in arguments.sides if number % 2 == 0 else reversed(arguments.sides):
                # Answers are compared once; the comparison costs a run of each.
                more = ["--check"] if number == 0 else []
                for line in _lines_of(side, data, shape, TIMED, *more):
                    runs.setdefault((shape, side, line["way"]), []).append(line)
    print(f"{compare_answers(runs)} answers compared: all equal", file=sys.stderr)
    return runs


def _replayed(arguments: argparse.Namespace, data: Path) -> Runs:
    """The tasks of each way, in several rounds: the first one compiles code."""
    runs: Runs = {}
    for shape in arguments.shapes:
        for line in _lines_of("spark", data, shape, REPLAYED, "--many-tasks", repeats=REPLAY_ROUNDS):
            runs.setdefault((shape, "spark", line["way"]), []).append(line)
    return runs


def _lines_of(
    side: str, data: Path, shape: str, ways: Sequence[str], *more: str, repeats: int = 1
) -> Iterable[dict[str, Any]]:
    words = ["--side", side, "--data", str(data), "--shape", shape, "--repeats", str(repeats)]
    words += ["--ways", *ways, *more]
    for line in from_process(SIDES_SCRIPT, *words):
        if "seconds" in line:
            chosen = f" ({line['choice']})" if line["way"] == "auto" else ""
            told = f"{shape:<8} {side:<6} {line['way']}{chosen}: {line['seconds']:.1f} s"
            print(f"{told}, CPU {line['cpu_seconds']:.1f} s", file=sys.stderr)
        yield line


def join_tasks(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """The tasks of the join's stage, the one that reads most from shuffles, each at the best of its rounds.

    A task reads the same rows in every round. So what else the machine did at the time (compiling, collecting
    garbage, other processes) is left out, and what the way of dividing the work makes of a task stays.
    """
    stages = [max(line["stages"], key=lambda stage: stage["shuffle_read_bytes"]) for line in lines]
    alike = [stage for stage in stages if len(stage["seconds"]) == len(stages[-1]["seconds"])]
    return {
        name: [min(values) for values in zip(*(stage[name] for stage in alike), strict=True)]
        for name in ("seconds", "cpu_seconds", "shuffle_bytes")
    }


def _report(timed: Runs, replayed: Runs) -> dict[str, Any]:
    best: dict[str, dict[str, dict[str, float]]] = {}
    for (shape, side, way), lines in timed.items():
        seconds = min(line["seconds"] for line in lines if "seconds" in line)
        best.setdefault(shape, {}).setdefault(side, {})[way] = seconds
    level: dict[str, dict[str, dict[str, Any]]] = {}
    for (shape, side, way), lines in replayed.items():
        level.setdefault(shape, {}).setdefault(side, {})[way] = _levels(lines)
    return {"seconds": best, "level": level, "targets": list(_targets(best, level))}


def _levels(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rounds = [
        waves(StageRun(it["submitted"], it["completed"], it["seconds"]) for it in line["stages"])
        for line in lines
    ]
    join = join_tasks(lines)
    return {
        "replayed_seconds": {
            str(cores): min(replayed_seconds(together, cores) for together in rounds) for cores in CORES
        },
        "join_stage_seconds": replayed_seconds([join["seconds"]], CLUSTER_CORES),
        "join_tasks": len(join["seconds"]),
        "max_to_median": max_to_median(join["seconds"]),
        "cpu_max_to_median": max_to_median(join["cpu_seconds"]),
        # Of the tasks that read a shuffle: those of isolated keys read files.
        "bytes_max_to_median": max_to_median(size for size in join["shuffle_bytes"] if size),
    }


def max_to_median(values: Iterable[float]) -> float:
    """How many times the median the largest is; 1 for none.

    >>> max_to_median([3.0, 1.0, 2.0])
    1.5
    """
    found = spread(values)
    return found.max / found.median if found.median else 1.0


def _targets(
    best: Mapping[str, Mapping[str, Mapping[str, float]]],
    level: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]],
) -> Iterable[dict[str, Any]]:
    skewed = best.get("skewed", {})
    if "spark" in skewed and "comet" in skewed:
        ratio = skewed["spark"]["plain"] / skewed["comet"]["auto"]
        yield _target(
            "skewed: plain Spark / auto on Comet, seconds on 2 cores", ratio, ">= 1.8", ratio >= 1.8
        )
    for side, ways in level.get("skewed", {}).items():
        yield from _level_targets(f"skewed, {side}", ways["plain, no AQE"], ways["auto"])
    for side, ways in best.get("uniform", {}).items():
        over = ways["auto"] - 1.05 * ways["plain"]
        yield _target(f"uniform, {side}: auto over 1.05 plain, seconds", over, "<= 0.5", over <= 0.5)
    for shape, sides in best.items():
        for side, ways in sides.items():
            over = ways["auto"] - 1.1 * min(ways.values())
            yield _target(f"{shape}, {side}: auto over 1.1 best, seconds", over, "<= 0.5", over <= 0.5)


def _level_targets(
    what: str, unmitigated: Mapping[str, Any], auto: Mapping[str, Any]
) -> Iterable[dict[str, Any]]:
    walls = [found["replayed_seconds"][str(CLUSTER_CORES)] for found in (unmitigated, auto)]
    ratio = walls[0] / walls[1]
    yield _target(f"{what}: no mitigation / auto, {CLUSTER_CORES} cores", ratio, ">= 10", ratio >= 10)
    ratio = unmitigated["join_stage_seconds"] / auto["join_stage_seconds"]
    name = f"{what}: the same of the join's stage alone, which hot keys hold up"
    yield _target(name, ratio, ">= 10", ratio >= 10)
    ratio = auto["max_to_median"]
    yield _target(f"{what}: longest / median task of auto's join stage", ratio, "<= 2", ratio <= 2)
    ratio = auto["cpu_max_to_median"]
    yield _target(f"{what}: the same of CPU time, without waits for a core", ratio, "<= 2", ratio <= 2)


def _target(what: str, value: float, must: str, met: bool) -> dict[str, Any]:
    return {"what": what, "value": round(value, 2), "must": must, "outcome": "met" if met else "missed"}


def _lines(report: Mapping[str, Any]) -> Iterable[str]:
    yield f"{'shape':<9}{'side':<8}" + "".join(f"{way:>15}" for way in TIMED) + "   seconds on 2 cores"
    for shape, sides in report["seconds"].items():
        for side, ways in sides.items():
            yield f"{shape:<9}{side:<8}" + "".join(f"{ways[way]:>15.1f}" for way in TIMED)
    yield ""
    columns = "".join(f"{f'{cores} cores':>11}" for cores in CORES)
    heads = f"{'join tasks':>11}{'max/median':>12}{'of CPU':>8}{'of bytes':>10}{'join stage':>12}{columns}"
    yield f"{'shape':<9}{'side':<7}{'way':<15}{heads}   seconds, replayed"
    for shape, sides in report["level"].items():
        for side, ways in sides.items():
            for way, found in ways.items():
                walls = "".join(f"{found['replayed_seconds'][str(cores)]:>11.2f}" for cores in CORES)
                stage = f"{found['max_to_median']:>12.1f}{found['cpu_max_to_median']:>8.1f}"
                stage += f"{found['bytes_max_to_median']:>10.1f}{found['join_stage_seconds']:>12.2f}"
                yield f"{shape:<9}{side:<7}{way:<15}{found['join_tasks']:>11}{stage}{walls}"
    yield ""
    for target in report["targets"]:
        yield f"{target['outcome']:<7}{target['value']:>8.2f}  {target['must']:<8}{target['what']}"


def _keep(
    report: Mapping[str, Any], timed: Runs, replayed: Runs, arguments: argparse.Namespace, load: float
) -> None:
    from bench.skew_picture import draw

    now = datetime.now(UTC)
    arguments.results.mkdir(parents=True, exist_ok=True)
    name = f"skew-{now:%Y%m%dT%H%M%SZ}"
    kept = {
        "when": now.isoformat(timespec="seconds"),
        "rows": arguments.rows,
        "load": [round(load, 2), round(os.getloadavg()[0], 2)],
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        **report,
        "timed": {" / ".join(key): lines for key, lines in timed.items()},
        "replayed": {" / ".join(key): lines for key, lines in replayed.items()},
    }
    (arguments.results / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")
    for shape in arguments.shapes:
        ways = [lines for (of, _, _), lines in replayed.items() if of == shape]
        path = arguments.results / f"{name}-{shape}.svg"
        title = f"Task times of the join: {KEYS[shape]}, {arguments.rows:,} rows"
        draw({_named(lines[-1]): join_tasks(lines)["seconds"] for lines in ways}, path, title=title)
        print(f"picture: {path}")


def _named(line: Mapping[str, Any]) -> str:
    return f"auto ({line['choice']})" if line["way"] == "auto" else line["way"]


if __name__ == "__main__":
    main()
