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
from bench.skew_levels import CLUSTER_CORES, CORES, join_tasks, levels

KEYS = {
    "skewed": "30 % of one key, 15 % of four",
    "zipf": "keys by Zipf's law, 1.2",
    "uniform": "even keys",
}
SHAPES = tuple(KEYS)
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
    load, kept = os.getloadavg()[0], Kept(arguments)
    timed: Runs = {}
    replayed: Runs = {}
    for shape in arguments.shapes:
        _time(shape, arguments, data, timed)
        _replay(shape, arguments, data, replayed)
        report = _report(timed, replayed)
        # Kept as it goes: what was measured until now is there when a later shape is cut off.
        kept.report(report, timed, replayed, load)
        kept.picture(shape, replayed)
    print(f"{compare_answers(timed)} answers compared: all equal", file=sys.stderr)
    for line in _lines(report):
        print(line)
    print(f"{arguments.rows:,} rows; load {load:.1f} before, {os.getloadavg()[0]:.1f} after")


def _time(shape: str, arguments: argparse.Namespace, data: Path, runs: Runs) -> None:
    for number in range(arguments.rounds):
        for side in arguments.sides if number % 2 == 0 else reversed(arguments.sides):
            # Answers are compared once; the comparison costs a run of each.
            more = ["--check"] if number == 0 else []
            for line in _lines_of(side, data, shape, TIMED, *more):
                runs.setdefault((shape, side, line["way"]), []).append(line)
    compare_answers(runs)


def _replay(shape: str, arguments: argparse.Namespace, data: Path, runs: Runs) -> None:
    """The tasks of each way, in several rounds: the first one compiles code."""
    for side in arguments.sides:
        for line in _lines_of(side, data, shape, REPLAYED, "--many-tasks", repeats=REPLAY_ROUNDS):
            runs.setdefault((shape, side, line["way"]), []).append(line)


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


def _report(timed: Runs, replayed: Runs) -> dict[str, Any]:
    best: dict[str, dict[str, dict[str, float]]] = {}
    for (shape, side, way), lines in timed.items():
        seconds = min(line["seconds"] for line in lines if "seconds" in line)
        best.setdefault(shape, {}).setdefault(side, {})[way] = seconds
    level: dict[str, dict[str, dict[str, Any]]] = {}
    for (shape, side, way), lines in replayed.items():
        level.setdefault(shape, {}).setdefault(side, {})[way] = levels(lines)
    return {"seconds": best, "level": level, "targets": list(_targets(best, level))}


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
    sides = level.get("skewed", {})
    for side, ways in sides.items():
        yield from _level_targets(f"skewed, {side}", ways["plain, no AQE"], ways["auto"])
    if "spark" in sides and "comet" in sides:
        yield _wall_target(
            "skewed, plain Spark / auto on Comet", sides["spark"]["plain, no AQE"], sides["comet"]["auto"]
        )
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
    yield _wall_target(what, unmitigated, auto)
    ratio = unmitigated["join_stage_seconds"] / auto["join_stage_seconds"]
    name = f"{what}: the same of the join's stage alone, which hot keys hold up"
    yield _target(name, ratio, ">= 10", ratio >= 10)
    ratio = auto["max_to_median"]
    yield _target(f"{what}: longest / median task of auto's join stage", ratio, "<= 2", ratio <= 2)
    ratio = auto["cpu_max_to_median"]
    yield _target(f"{what}: the same of CPU time, without waits for a core", ratio, "<= 2", ratio <= 2)


def _wall_target(what: str, unmitigated: Mapping[str, Any], auto: Mapping[str, Any]) -> dict[str, Any]:
    before, after = (found["replayed_seconds"][str(CLUSTER_CORES)] for found in (unmitigated, auto))
    name, ratio = f"{what}: no mitigation / auto, replayed on {CLUSTER_CORES} cores", before / after
    return _target(name, ratio, ">= 10", ratio >= 10)


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


class Kept:
    """The files of one run: a JSON file with all that was measured, and a picture for each shape."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._when = datetime.now(UTC)
        arguments.results.mkdir(parents=True, exist_ok=True)

    def report(self, report: Mapping[str, Any], timed: Runs, replayed: Runs, load: float) -> None:
        """Write the JSON file, in the place of an earlier one of this run."""
        found = {
            "when": self._when.isoformat(timespec="seconds"),
            "rows": self._arguments.rows,
            "load": [round(load, 2), round(os.getloadavg()[0], 2)],
            "cores": os.cpu_count(),
            "machine": platform.machine(),
            **report,
            "timed": {" / ".join(key): lines for key, lines in timed.items()},
            "replayed": {" / ".join(key): lines for key, lines in replayed.items()},
        }
        self._path(".json").write_text(json.dumps(found, indent=1) + "\n")

    def picture(self, shape: str, replayed: Runs) -> None:
        """Draw the task times of one shape; Comet's are named so."""
        from bench.skew_picture import draw

        strips = {
            _named(side, lines[-1]): join_tasks(lines)["seconds"]
            for (of, side, _), lines in replayed.items()
            if of == shape
        }
        path = self._path(f"-{shape}.svg")
        draw(strips, path, title=f"Task times of the join: {KEYS[shape]}, {self._arguments.rows:,} rows")
        print(f"picture: {path}")

    def _path(self, end: str) -> Path:
        return Path(self._arguments.results) / f"skew-{self._when:%Y%m%dT%H%M%SZ}{end}"


def _named(side: str, line: Mapping[str, Any]) -> str:
    way = f"auto ({line['choice']})" if line["way"] == "auto" else str(line["way"])
    return way if side == "spark" else f"{way}, Comet"


if __name__ == "__main__":
    main()
