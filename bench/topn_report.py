"""What bench-topn prints and keeps: seconds per shape, the issue's targets, `auto` against the best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from bench.bench_spark import SPARK_SIDES
from bench.topn_shapes import Shape
from bench.topn_sides import Measurement
from common.core.console import print_table

Way = tuple[str, str]  # side, strategy
# How far `auto` may be from the best strategy of its side: by one or by the other.
WITHIN_RATIO, WITHIN_SECONDS = 1.15, 0.5
# Peaks that differ by less are the same: a heap is filled before it is swept.
SAME_PEAK_RATIO = 1.25
NO_STRATEGY = ("auto",)
PLAIN_WINDOW: tuple[Way, ...] = (("spark", "window"),)
PLAIN_SORT: tuple[Way, ...] = (("spark", "sort"),)
DUCKDB: tuple[Way, ...] = (("duckdb", "sql"),)
PICTURE = ("spark window", "spark sort", "spark auto", "comet auto", "duckdb sql", "polars lazy")


@dataclass(frozen=True)
class Best:
    """The best of all rounds: seconds, CPU seconds, and what was said of the last one."""

    seconds: float
    cpu_seconds: float
    note: str


@dataclass(frozen=True)
class Target:
    """A ratio that must be reached: the fastest of some ways over one other."""

    shape: str
    text: str
    of: tuple[Way, ...]
    by: Way
    must_reach: float


def _targets() -> Iterable[Target]:
    plain, comet = ("spark", "auto"), ("comet", "auto")
    for shape in ("cat-3", "cat-100"):
        yield Target(shape, "plain window / auto on Comet", PLAIN_WINDOW, comet, 15)
        yield Target(shape, "plain window / plain auto", PLAIN_WINDOW, plain, 8)
        yield Target(shape, "DuckDB QUALIFY / auto on Comet", DUCKDB, comet, 3)
    yield Target("key-3", "plain window / plain auto", PLAIN_WINDOW, plain, 1.4)
    yield Target("key-3", "plain window / auto on Comet", PLAIN_WINDOW, comet, 2.5)
    yield Target("all-10", "plain orderBy().limit() / plain auto", PLAIN_SORT, plain, 2.5)
    yield Target("all-10", "plain orderBy().limit() / auto on Comet", PLAIN_SORT, comet, 2.5)


TARGETS = tuple(_targets())


class Results:
    """The best measurement of each (shape, side, strategy)."""

    def __init__(self, measured: Sequence[Measurement]) -> None:
        self._best: dict[tuple[str, Way], Best] = {}
        for item in measured:
            key = (item.shape, (item.side, item.strategy))
            note = "; ".join(filter(None, (item.choice, item.plain and f"on plain Spark: {item.plain}")))
            former = self._best.get(key, Best(item.seconds, item.cpu_seconds, note))
            self._best[key] = Best(
                min(item.seconds, former.seconds), min(item.cpu_seconds, former.cpu_seconds), note
            )

    def of(self, shape: str) -> dict[Way, Best]:
        """All ways of one shape, the fastest first."""
        found = {way: best for (name, way), best in self._best.items() if name == shape}
        return dict(sorted(found.items(), key=lambda item: item[1].seconds))

    def ratio(self, target: Target) -> tuple[float, float] | None:
        """By time and by CPU; None when a side has not run."""
        ways = self.of(target.shape)
        slow = [ways[way] for way in target.of if way in ways]
        if not slow or target.by not in ways:
            return None
        fast = ways[target.by]
        seconds, cpu = min(item.seconds for item in slow), min(item.cpu_seconds for item in slow)
        return seconds / fast.seconds, cpu / (fast.cpu_seconds or 1.0)

    def distances(self, shape: str) -> list[dict[str, Any]]:
        """`auto` against the best strategy, on each side of Spark."""
        ways, found = self.of(shape), []
        for side in SPARK_SIDES:
            others = {
                name: best for (of, name), best in ways.items() if of == side and name not in NO_STRATEGY
            }
            if not others or (side, "auto") not in ways:
                continue
            auto, name = ways[side, "auto"], min(others, key=lambda other: others[other].seconds)
            best = others[name].seconds
            near = auto.seconds <= best * WITHIN_RATIO or auto.seconds - best <= WITHIN_SECONDS
            measured = {"auto_seconds": auto.seconds, "best": name, "best_seconds": best}
            found.append({"shape": shape, "side": side, "auto": auto.note, **measured, "within": near})
        return found


def print_shapes(results: Results, shapes: Sequence[Shape]) -> None:
    """One table a shape; those with a target as a picture too."""
    for shape in shapes:
        ways = results.of(shape.name)
        window = ways.get(("spark", "window"))
        rows = [
            (strategy, side, _two(best.seconds), _two(window.seconds / best.seconds if window else None),
             _two(best.cpu_seconds), best.note)
            for (side, strategy), best in ways.items()
        ]  # fmt: skip
        columns = ("strategy", "side", "seconds", "plain window / this", "CPU seconds", "note")
        _print(columns, rows, f"{shape.name}: {shape.title}")
    for shape in shapes:
        named = {f"{side} {name}": best for (side, name), best in results.of(shape.name).items()}
        bars = [(name, _two(named[name].seconds)) for name in PICTURE if name in named]
        if shape.is_target and bars:
            print_table(("way", "seconds"), bars, measures=("seconds",), title=f"\n{shape.title}")


def print_targets(results: Results, shapes: Sequence[Shape]) -> list[dict[str, Any]]:
    """The issue's table; the plain side is a ranking window, or a bounded sort, on plain Spark."""
    kept = []
    for target in TARGETS:
        if target.shape in {shape.name for shape in shapes}:
            ratio = results.ratio(target)
            outcome = "not run" if ratio is None else "met" if ratio[0] >= target.must_reach else "missed"
            time, cpu = ratio or (None, None)
            kept.append((target.shape, target.text, time, cpu, target.must_reach, outcome))
    rows = [
        (shape, text, _two(time), _two(cpu), _two(must_reach), outcome)
        for shape, text, time, cpu, must_reach, outcome in kept
        if time is not None
    ]
    missing = f"{len(kept) - len(rows)} not run: a side was left out" if len(rows) < len(kept) else None
    _print(("shape", "ratio", "measured", "by CPU", "must reach", "outcome"), rows, "targets", missing)
    names = ("shape", "ratio", "measured", "by_cpu", "must_reach", "outcome")
    return [dict(zip(names, row, strict=True)) for row in kept]


def print_distances(results: Results, shapes: Sequence[Shape]) -> list[dict[str, Any]]:
    """`auto` against the best strategy of the same side."""
    kept = [row for shape in shapes for row in results.distances(shape.name)]
    rows = [
        (row["shape"], row["side"], row["auto"], _two(row["auto_seconds"]), row["best"],
         _two(row["best_seconds"]), "within" if row["within"] else "too far")
        for row in kept
    ]  # fmt: skip
    columns = ("shape", "side", "auto chose", "auto s", "best", "best s", "outcome")
    near = sum(row["within"] for row in kept)
    caption = f"within {WITHIN_RATIO - 1:.0%} or {WITHIN_SECONDS} s: {near} of {len(kept)}"
    _print(columns, rows, "auto against the best strategy of its side", caption)
    return kept


def print_peaks(peaks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Peak memory of the driver at 1x and 4x rows; `peaks` holds pairs of them, side by side."""
    kept = []
    for small, large in zip(peaks[::2], peaks[1::2], strict=True):
        for process in ("jvm", "python"):
            one, four = small[f"{process}_bytes"], large[f"{process}_bytes"]
            ratio = four / one if one else None
            outcome = "not told" if ratio is None else "bounded" if ratio <= SAME_PEAK_RATIO else "grows"
            kept.append({"side": small["side"], "process": process, "bytes_at_1x": one, "bytes_at_4x": four,
                         "ratio": ratio, "outcome": outcome})  # fmt: skip
    rows = [
        (row["side"], row["process"], row["bytes_at_1x"] >> 20, row["bytes_at_4x"] >> 20, _two(row["ratio"]),
         row["outcome"])
        for row in kept
    ]  # fmt: skip
    columns = ("side", "process", "MiB at 1x", "MiB at 4x", "4x / 1x", "outcome")
    caption = f"peak resident set of auto on the shapes with a target; bounded: 4x / 1x <= {SAME_PEAK_RATIO}"
    _print(columns, rows, "peak memory of the driver", caption)
    return kept


def as_data(shapes: Sequence[Shape], measured: Sequence[Measurement]) -> dict[str, Any]:
    """Each shape with all that was measured of it, JSON-ready."""
    return {
        shape.name: {
            "title": shape.title,
            "table": shape.table,
            "spec": shape.spec,
            "measurements": [asdict(item) for item in measured if item.shape == shape.name],
        }
        for shape in shapes
    }


def _print(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str, caption: str | None = None
) -> None:
    """Without the columns that tell nothing."""
    told = [at for at in range(len(columns)) if any(row[at] not in (None, "") for row in rows)]
    if rows:
        shown = [[row[at] for at in told] for row in rows]
        print_table([columns[at] for at in told], shown, title=f"\n{title}", caption=caption)


def _two(value: float | None) -> Decimal | None:
    """With two decimals, so that they stand below each other."""
    return None if value is None else Decimal(f"{value:.2f}")
