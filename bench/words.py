"""Word count: the job's strategies against Spark as a user would write it, DuckDB and Polars beside them.

Each side runs in a process of its own, each query twice in it unless it is long; the best time counts. The
answers of all ways are compared, and a difference ends the benchmark.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `bench` and `common` importable

from bench.bench_data import ROOT
from bench.bench_spark import from_process
from bench.words_data import TEXTS, make_texts, text_file
from bench.words_sides import SIDES, TASKS, TITLES, Measurement, measure
from common.core.console import print_table

Way = tuple[str, str]  # side, way
AUTO: Way = ("spark", "auto")
# (task, what is compared with auto, in words, must reach)
TARGETS: tuple[tuple[str, Way, str, float], ...] = (
    ("split", ("spark", "plain sql"), "plain SQL explode(split) / auto", 3),
    ("words", ("spark", "plain sql"), "plain SQL regex / auto", 5),
    ("split", ("spark", "plain rdd"), "RDD textbook / auto", 9),
    ("words", ("duckdb", "query"), "DuckDB regexp_extract_all / auto", 1.3),
    ("mixed", ("spark", "plain sql"), "mixed text: plain SQL regex / auto", 3),
)


def main() -> None:
    """Run from the command line."""
    asked = _arguments()
    if asked.side:
        for item in measure(asked.side, asked.only, megabytes=asked.megabytes, repeats=asked.repeats):
            print(json.dumps(asdict(item)), flush=True)
        return
    make_texts(megabytes=asked.megabytes)
    load = os.getloadavg()[0]
    measured = list(_rounds(asked))
    compared = _compared(measured)
    _print_tasks(measured)
    targets = _print_targets(measured)
    print(f"\n{compared} answers compared: all equal")
    print(f"{asked.megabytes} MB; load {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    _keep(asked, measured, targets, load)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--megabytes", type=int, default=370, help="size of each text (default: %(default)s)")
    add("--repeats", type=int, default=2, help="times each query runs (default: %(default)s)")
    add("--only", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    add("--sides", nargs="+", choices=SIDES, default=list(SIDES), help="default: all")
    add("--results", type=Path, default=ROOT / "bench" / "results", help="folder of the JSON file")
    add("--side", choices=SIDES, help=argparse.SUPPRESS)  # for the processes that this one starts
    return parser.parse_args()


def _rounds(asked: argparse.Namespace) -> Iterator[Measurement]:
    sizes = ["--megabytes", str(asked.megabytes), "--repeats", str(asked.repeats)]
    for side in asked.sides:
        print(side, file=sys.stderr)
        with closing(from_process(__file__, "--side", side, *sizes, "--only", *asked.only)) as lines:
            for line in lines:
                item = Measurement(**line)
                print(f"  {item.task:<8} {item.way:<10} {item.seconds:>7.2f} s", file=sys.stderr)
                yield item


def _compared(measured: list[Measurement]) -> int:
    """How many answers are equal to the first one of their task.

    Raises:
        SystemExit: one is not.
    """
    first: dict[str, Measurement] = {}
    for item in measured:
        other = first.setdefault(item.task, item)
        if item.answer != other.answer:
            ours, theirs = f"{item.side} {item.way}", f"{other.side} {other.way}"
            raise SystemExit(f"{item.task}: {ours} has {item.answer}, {theirs} has {other.answer}")
    return len(measured) - len(first)


def _print_tasks(measured: list[Measurement]) -> None:
    for task, title in TITLES.items():
        items = sorted((item for item in measured if item.task == task), key=lambda item: item.seconds)
        auto = _seconds(measured, task, AUTO)
        rows = [
            (
                f"{item.side} {item.way}",
                _two(item.seconds),
                _two(item.seconds / auto if auto else None),
                item.note,
            )
            for item in items
        ]
        if rows:
            columns = ("way", "seconds", "this / auto", "note")
            print_table(columns, rows, measures=("seconds",), title=f"\n{title}: {text_size(items[0])}")


def text_size(item: Measurement) -> str:
    """What was counted, in words."""
    answer = item.answer or {}
    return f"{answer.get('words', 0):,} words, {answer.get('distinct', 0):,} distinct"


def _print_targets(measured: list[Measurement]) -> list[dict[str, Any]]:
    kept = []
    for task, way, text, must_reach in TARGETS:
        other, auto = _seconds(measured, task, way), _seconds(measured, task, AUTO)
        ratio = other / auto if other and auto else None
        outcome = "not run" if ratio is None else "met" if ratio >= must_reach else "missed"
        kept.append({"ratio": text, "measured": ratio, "must_reach": must_reach, "outcome": outcome})
    rows = [
        (row["ratio"], _two(row["measured"]), _two(row["must_reach"]), row["outcome"])
        for row in kept
        if row["measured"] is not None
    ]
    if rows:
        print_table(("ratio", "measured", "must reach", "outcome"), rows, title="\ntargets")
    return kept


def _seconds(measured: list[Measurement], task: str, way: Way) -> float | None:
    found = (item.seconds for item in measured if item.task == task and (item.side, item.way) == way)
    return next(found, None)


def _keep(asked: argparse.Namespace, measured: list[Measurement], targets: Any, load: float) -> None:
    now = datetime.now(UTC)
    result = {
        "when": now.isoformat(timespec="seconds"),
        "megabytes": asked.megabytes,
        "bytes": {name: text_file(name, megabytes=asked.megabytes).stat().st_size for name in TEXTS},
        "repeats": asked.repeats,
        "load": [round(load, 2), round(os.getloadavg()[0], 2)],
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "versions": {name: version(name) for name in ("pyspark", "duckdb", "polars", "pyarrow", "saltpan")},
        "targets": targets,
        "measurements": [asdict(item) for item in measured],
    }
    asked.results.mkdir(parents=True, exist_ok=True)
    path = asked.results / f"words-{now:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(f"kept in {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")


def _two(value: float | None) -> Decimal | None:
    """With two decimals, so that they stand below each other."""
    return None if value is None else Decimal(f"{value:.2f}")


if __name__ == "__main__":
    main()
