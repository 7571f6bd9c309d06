"""Top-N: every strategy on plain Spark and on Comet, DuckDB and Polars beside them, over twenty shapes.

Each side runs in a process of its own, in turn, in alternating order, and each query twice in it unless it
is long, since a JVM is slow until it has compiled what runs often; the best time of each counts. The answers
of the first round are compared with those of the plain window, and a difference ends the benchmark.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `bench` and `common` importable

from bench.bench_data import DATA, ROOT, make_data
from bench.bench_spark import SPARK_SIDES, from_process
from bench.topn_answers import Answers
from bench.topn_report import Results, as_data, print_distances, print_peaks, print_shapes, print_targets
from bench.topn_shapes import SHAPES, Shape
from bench.topn_sides import SIDES, Measurement, measure, measure_peaks


def main() -> None:
    """Run from the command line."""
    asked = _arguments()
    shapes = [shape for shape in SHAPES if shape.name in (asked.only or [other.name for other in SHAPES])]
    if asked.side:
        _work(asked, shapes)
        return
    data = DATA / f"{asked.rows}"
    make_data(data, rows=asked.rows, tables=sorted({shape.table for shape in shapes}))
    load, answers = os.getloadavg()[0], Answers()
    measured = list(_rounds(asked, answers))
    results = Results(measured)
    print_shapes(results, shapes)
    found: dict[str, Any] = {
        "targets": print_targets(results, shapes),
        "auto": print_distances(results, shapes),
        "peaks": print_peaks(list(_peaks(asked, shapes))) if asked.memory else [],
        "compared": answers.compared,
        "shapes": as_data(shapes, measured),
    }
    count = sum(len(ways) for ways in answers.compared.values())
    print(f"\n{count} answers compared: all equal")
    print(f"{asked.rows:,} rows; load {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    _keep(asked, found, load)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--rows", type=int, default=20_000_000, help="rows of facts (default: %(default)s)")
    add("--rounds", type=int, default=1, help="times each side runs (default: %(default)s)")
    add("--repeats", type=int, default=2, help="times each query runs in a round (default: %(default)s)")
    names = [shape.name for shape in SHAPES]
    add("--only", action="append", choices=names, metavar="SHAPE", help=f"repeatable: {', '.join(names)}")
    add("--sides", nargs="+", choices=SIDES, default=list(SIDES), help="default: all")
    add("--heap", type=int, default=4, metavar="GIB", help="heap of Spark's JVM (default: %(default)s)")
    add("--rates", type=int, nargs="+", default=[], help="sampling rates to try prune with besides its own")
    add("--memory", action="store_true", help="also the driver's peak memory of auto, at 1x and 4x rows")
    add("--results", type=Path, default=ROOT / "bench" / "results", help="folder of the JSON file")
    add("--side", choices=SIDES, help=argparse.SUPPRESS)  # the three for the processes that this one starts
    add("--round", type=int, default=0, help=argparse.SUPPRESS)
    add("--peak", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _work(asked: argparse.Namespace, shapes: Sequence[Shape]) -> None:
    """One side, in this process: a line of JSON for each measurement."""
    data = DATA / f"{asked.rows}"
    if asked.peak:
        print(json.dumps(measure_peaks(asked.side, data, shapes, heap_gib=asked.heap)), flush=True)
        return
    for measurement in measure(
        asked.side,
        data,
        shapes,
        number=asked.round,
        heap_gib=asked.heap,
        rates=asked.rates,
        repeats=asked.repeats,
    ):
        print(json.dumps(asdict(measurement)), flush=True)


def _rounds(asked: argparse.Namespace, answers: Answers) -> Iterator[Measurement]:
    sides = [side for side in SIDES if side in asked.sides]
    for number in range(asked.rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            print(f"round {number + 1} of {asked.rounds}: {side}", file=sys.stderr)
            words = _words(side, asked, rows=asked.rows, shapes=asked.only or ())
            with closing(from_process(__file__, *words, "--round", str(number))) as lines:
                for line in lines:
                    measurement = Measurement(**line)
                    answers.add(measurement)
                    _say(measurement)
                    yield measurement


def _peaks(asked: argparse.Namespace, shapes: Sequence[Shape]) -> Iterator[dict[str, Any]]:
    """At 1x and at 4x rows, each in a process of its own."""
    wanted = [shape for shape in shapes if shape.is_target] or shapes
    for side in (side for side in SPARK_SIDES if side in asked.sides):
        for rows in (asked.rows, asked.rows * 4):
            make_data(DATA / f"{rows}", rows=rows, tables=sorted({shape.table for shape in wanted}))
            words = _words(side, asked, rows=rows, shapes=[shape.name for shape in wanted])
            for line in from_process(__file__, *words, "--peak"):
                yield {"side": side, "rows": rows, **line}


def _words(side: str, asked: argparse.Namespace, *, rows: int, shapes: Sequence[str]) -> list[str]:
    only = [word for name in shapes for word in ("--only", name)]
    rates = ["--rates", *map(str, asked.rates)] if asked.rates else []
    sizes = ["--rows", str(rows), "--heap", str(asked.heap), "--repeats", str(asked.repeats)]
    return ["--side", side, *sizes, *only, *rates]


def _say(item: Measurement) -> None:
    how = f"{item.strategy} ({item.choice})" if item.choice else item.strategy
    line = f"  {item.shape:<10} {how:<16} {item.seconds:>7.2f} s  CPU {item.cpu_seconds:>7.2f} s"
    print(line, file=sys.stderr)


def _keep(asked: argparse.Namespace, found: dict[str, Any], load: float) -> None:
    now = datetime.now(UTC)
    result = {
        "when": now.isoformat(timespec="seconds"),
        "rows": asked.rows,
        "rounds": asked.rounds,
        "repeats": asked.repeats,
        "heap_gib": asked.heap,
        "load": [round(load, 2), round(os.getloadavg()[0], 2)],
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "versions": {name: version(name) for name in ("pyspark", "duckdb", "polars", "saltpan")},
        **found,
    }
    asked.results.mkdir(parents=True, exist_ok=True)
    path = asked.results / f"topn-{now:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(f"kept in {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")


if __name__ == "__main__":
    main()
