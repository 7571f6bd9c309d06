"""Top-N's driver: what it needs of memory at 1x and at 4x rows, with its executor in another process.

Each strategy answers on a cluster of one executor, whose driver has a heap of half a GiB. While it does, the
driver's heap is collected again and again: the largest live heap of these moments is what the driver needs.
Beside it stands the peak resident set of the driver's JVM, which an idle collector lets grow to the heap's
limit whatever is in it, and of its Python. An answer that the heap does not suffice for ends the benchmark.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `bench` and `common` importable

from bench.bench_data import DATA, ROOT, TINY_ROWS, make_data
from bench.bench_spark import forget_peak, from_process, jvm_pid, peak_bytes, spark_session
from bench.topn_shapes import SHAPES, Shape
from bench.topn_sides import on_spark, strategies_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("cat-3", "key-3", "all-10")
# Groups that an aggregation makes, and then ranks.
GROUPED = Shape(
    "groups-10",
    "top 10 keys by their sum",
    {"score": "sum(amount)", "n": 10, "group_by": ("key",)},
    None,
    "facts",
)
SHAPES_BY_NAME = {shape.name: shape for shape in SHAPES if shape.name in NAMES} | {GROUPED.name: GROUPED}
# The objects of a strategy are the same; what the collector finds at one moment or another is not.
SAME_LIVE_RATIO, SAME_LIVE_BYTES = 1.1, 8 * 1024**2
COLLECTION_SECONDS = 0.3


def main() -> None:
    """Run from the command line."""
    asked = _arguments()
    if asked.work:
        for line in _work(asked):
            print(json.dumps(line), flush=True)
        return
    load = os.getloadavg()[0]
    lines = [line for factor in asked.factors for line in _measured(asked, asked.rows * factor)]
    rows = list(_side_by_side(lines, [asked.rows * factor for factor in asked.factors]))
    for text in _table(rows, asked):
        print(text)
    _keep(asked, rows, lines, load)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--rows", type=int, default=5_000_000, help="rows of facts at 1x (default: %(default)s)")
    add("--factors", type=int, nargs="+", default=[1, 4], help="times as many rows (default: 1 4)")
    add("--heap", type=int, default=512, metavar="MIB", help="the driver's heap (default: %(default)s)")
    add("--only", action="append", choices=SHAPES_BY_NAME, metavar="SHAPE", help=", ".join(SHAPES_BY_NAME))
    add("--strategies", nargs="+", help="default: all that suit a shape")
    add("--results", type=Path, default=ROOT / "bench" / "results", help="folder of the JSON file")
    add("--work", action="store_true", help=argparse.SUPPRESS)  # the process that this one starts
    return parser.parse_args()


def _measured(asked: argparse.Namespace, rows: int) -> Iterator[dict[str, Any]]:
    make_data(DATA / f"{rows}", rows=rows, tables=("facts",))
    words = ["--work", "--rows", str(rows), "--heap", str(asked.heap)]
    words += [word for name in asked.only or () for word in ("--only", name)]
    words += ["--strategies", *asked.strategies] if asked.strategies else []
    for line in from_process(__file__, *words):
        print(
            f"{rows:>12,} {line['shape']:<10} {line['strategy']:<10} {line['seconds']:.1f} s", file=sys.stderr
        )
        yield {"rows": rows, **line}


def _work(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Each strategy's figures, in a driver of this process."""
    with tempfile.TemporaryDirectory() as folder:
        # The worker is a thread of the driver; the executor's files go where it says.
        os.environ["SPARK_WORKER_DIR"] = folder
        settings = {
            "spark.master": "local-cluster[1,2,2048]",
            "spark.executor.memory": "2g",
            "spark.driver.memory": f"{asked.heap}m",
        }
        with spark_session("spark", name="bench topn memory", settings=settings) as spark:
            make_data(DATA / f"{TINY_ROWS}", rows=TINY_ROWS, tables=("facts",))
            for strategy in ("window", "auto"):  # what the first queries leave in a driver for good
                on_spark(
                    spark, "spark", DATA / f"{TINY_ROWS}", SHAPES_BY_NAME["cat-3"], strategy, first=False
                )
            for name in asked.only or SHAPES_BY_NAME:
                shape = SHAPES_BY_NAME[name]
                for strategy in _strategies(shape, asked.strategies):
                    yield _needed(spark, DATA / f"{asked.rows}", shape, strategy)


def _strategies(shape: Shape, wanted: Sequence[str] | None) -> Iterable[str]:
    suitable = ("auto",) if shape is GROUPED else strategies_of(shape, "spark")
    return [name for name in suitable if name in (wanted or suitable)]


def _needed(spark: SparkSession, data: Path, shape: Shape, strategy: str) -> dict[str, Any]:
    live = _live_heap(spark)
    before = live()
    resets = [forget_peak(pid) for pid in (jvm_pid(spark), "self")]
    with _collecting(live) as seen:
        found = on_spark(spark, "spark", data, shape, strategy, first=False)
    return {
        "shape": shape.name,
        "strategy": strategy,
        "choice": found.choice,
        "seconds": found.seconds,
        "live_before_bytes": before,
        "live_peak_bytes": max(seen),
        "collections": len(seen),
        "jvm_peak_bytes": peak_bytes(jvm_pid(spark)),
        "python_peak_bytes": peak_bytes("self"),
        "peaks_are_its_own": all(resets),
    }


def _live_heap(spark: SparkSession) -> Callable[[], int]:
    """Collects the driver's heap and tells what is left in it, in bytes."""
    runtime: Any = spark._jvm.java.lang.Runtime.getRuntime()  # type: ignore[union-attr]

    def live() -> int:
        runtime.gc()
        return int(runtime.totalMemory() - runtime.freeMemory())

    return live


@contextmanager
def _collecting(live: Callable[[], int]) -> Iterator[list[int]]:
    """What is live at many moments of the block, and after it."""
    seen: list[int] = []
    stop = threading.Event()

    def collect() -> None:
        while not stop.wait(COLLECTION_SECONDS):
            seen.append(live())

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()
        seen.append(live())


def _side_by_side(lines: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    by_way: dict[tuple[str, str], dict[int, Mapping[str, Any]]] = {}
    for line in lines:
        by_way.setdefault((line["shape"], line["strategy"]), {})[line["rows"]] = line
    for (shape, strategy), found in by_way.items():
        live = [found[rows]["live_peak_bytes"] for rows in sizes]
        grows = live[-1] > max(live[0] * SAME_LIVE_RATIO, live[0] + SAME_LIVE_BYTES)
        yield {
            "shape": shape,
            "strategy": strategy,
            "choices": [found[rows]["choice"] for rows in sizes],
            "live_peak_bytes": live,
            "jvm_peak_bytes": [found[rows]["jvm_peak_bytes"] for rows in sizes],
            "python_peak_bytes": [found[rows]["python_peak_bytes"] for rows in sizes],
            "outcome": "grows" if grows else "bounded",
        }


def _table(rows: Sequence[Mapping[str, Any]], asked: argparse.Namespace) -> Iterator[str]:
    sizes = [f"{asked.rows * factor:,}" for factor in asked.factors]
    kinds = {"live heap": "live_peak_bytes", "JVM": "jvm_peak_bytes", "Python": "python_peak_bytes"}
    yield f"peak MiB of the driver, whose heap has {asked.heap}; its executor is another process"
    yield f"{'':<22}" + "".join(f"{kind:>{12 * len(sizes)}}" for kind in kinds)
    yield f"{'shape':<11}{'strategy':<11}" + "".join(f"{size:>12}" for _ in kinds for size in sizes)
    for row in rows:
        figures = "".join(f"{bytes_ / 1024**2:>12.0f}" for kind in kinds.values() for bytes_ in row[kind])
        chosen = f" ({', '.join(dict.fromkeys(row['choices']))})" if row["strategy"] == "auto" else ""
        yield f"{row['shape']:<11}{row['strategy']:<11}{figures}  {row['outcome']}{chosen}"
    near = f"{SAME_LIVE_RATIO - 1:.0%} or {SAME_LIVE_BYTES >> 20} MiB"
    yield f"bounded: the live heap is within {near} of that at 1x"


def _keep(
    asked: argparse.Namespace,
    rows: Sequence[Mapping[str, Any]],
    lines: Sequence[Mapping[str, Any]],
    load: float,
) -> None:
    now = datetime.now(UTC)
    asked.results.mkdir(parents=True, exist_ok=True)
    kept = {
        "when": now.isoformat(timespec="seconds"),
        "rows": [asked.rows * factor for factor in asked.factors],
        "heap_mib": asked.heap,
        "load": [round(load, 2), round(os.getloadavg()[0], 2)],
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "peaks": rows,
        "measurements": lines,
    }
    path = asked.results / f"topn_memory-{now:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
