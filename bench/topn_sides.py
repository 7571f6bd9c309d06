"""The sides of bench-topn: each strategy on plain Spark and on Comet, and DuckDB and Polars beside them.

All rows of an answer are consumed and none kept: Spark writes to its noop sink, DuckDB hands Arrow batches
over that are dropped, Polars collects. Reading the Parquet files counts for every side, and for `auto` all
that a run plans by as well: the listing, the footers, the sample.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bench.bench_data import literal
from bench.bench_spark import SPARK_SIDES, jvm_cpu_seconds, jvm_pid, peak_bytes, spark_session
from bench.topn_shapes import Shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIDES = (*SPARK_SIDES, "duckdb", "polars")
STRATEGIES = ("window", "sort", "aggregate", "prune")
# Rows, the sum of their hashes (Spark's only), and the sum of id * rank, which every engine can tell.
Answer = Mapping[str, str]
T = TypeVar("T")
# What takes longer has its code compiled within its first run, and is not run again.
LONG_SECONDS = 15


@dataclass(frozen=True)
class Measurement:
    """One answer, once.

    Attributes:
        shape: Name of the shape.
        side: spark, comet, duckdb or polars.
        strategy: Of topn ("prune-16": one row in 16 is sampled); "auto"; "sql", DuckDB's; "lazy",
            Polars' only one.
        seconds: Until all rows were consumed.
        cpu_seconds: Of all cores, the JVM's and Python's.
        choice: What `auto` chose.
        plain: Why Comet left the query to Spark.
        answer: In the first round only.
    """

    shape: str
    side: str
    strategy: str
    seconds: float
    cpu_seconds: float
    choice: str = ""
    plain: str = ""
    answer: Answer | None = None


def strategies_of(shape: Shape, side: str, rates: Sequence[int] = ()) -> tuple[str, ...]:
    """The strategies that suit a shape; the plain window first, since the others are compared with it."""
    if side not in SPARK_SIDES:
        return ("sql",) if side == "duckdb" else ("lazy",) if shape.polars else ()
    cuts = shape.spec.get("ties", "first") == "first"
    suits = {"sort": shape.is_global, "aggregate": cuts and not shape.has_many_groups}
    suitable = [name for name in STRATEGIES if suits.get(name, True)]
    if shape.spec.get("partition_by"):
        suitable += [f"prune-{rate}" for rate in rates]
    return (*suitable, "auto")


def measure(
    side: str,
    data: Path,
    shapes: Sequence[Shape],
    *,
    number: int,
    heap_gib: int,
    rates: Sequence[int],
    repeats: int,
) -> Iterator[Measurement]:
    """Each shape by each strategy of a side, in this process; every second round in the reverse order."""
    asked = [(shape, strategy) for shape in shapes for strategy in strategies_of(shape, side, rates)]
    asked = asked if number % 2 == 0 else asked[::-1]
    first = number == 0
    if side == "duckdb":
        yield from _on_duckdb(data, [shape for shape, _ in asked], first=first, repeats=repeats)
    elif side == "polars":
        yield from _on_polars(data, [shape for shape, _ in asked], first=first, repeats=repeats)
    else:
        with spark_session(side, name=f"bench topn {side}", heap_gib=heap_gib) as spark:
            _warm_up(spark, data, shapes)
            for shape, strategy in asked:
                runs: list[Measurement] = []
                while len(runs) < repeats and sum(run.seconds for run in runs) < LONG_SECONDS:
                    runs.append(on_spark(spark, side, data, shape, strategy, first=first and not runs))
                yield replace(min(runs, key=lambda run: run.seconds), answer=runs[0].answer)


def measure_peaks(side: str, data: Path, shapes: Sequence[Shape], *, heap_gib: int) -> dict[str, int]:
    """Peak memory of the driver's two processes, after `auto` has answered each shape once."""
    with spark_session(side, name=f"bench topn {side}", heap_gib=heap_gib) as spark:
        for shape in shapes:
            on_spark(spark, side, data, shape, "auto", first=False)
        return {"jvm_bytes": peak_bytes(jvm_pid(spark)), "python_bytes": peak_bytes("self")}


def _warm_up(spark: SparkSession, data: Path, shapes: Sequence[Shape]) -> None:
    rows = spark.read.parquet(str(_file(data, shapes[0]))).where("id < 1000")
    rows.groupBy("cat").count().collect()
    rows.orderBy("amount").limit(5).write.format("noop").mode("overwrite").save()


def on_spark(
    spark: SparkSession, side: str, data: Path, shape: Shape, strategy: str, *, first: bool
) -> Measurement:
    """One answer by one strategy; all of its rows are consumed, and with `first` told as well."""
    from common.engine.comet import plain_spark, reasons_against

    started, cpu = time.perf_counter(), jvm_cpu_seconds(spark) + time.process_time()
    frame, choice = _frame(spark, _file(data, shape), shape, strategy)
    reasons = reasons_against(frame) if side == "comet" else []
    with plain_spark(spark, reasons):
        frame = frame.select("*") if reasons else frame
        frame.write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - started
        cpu = jvm_cpu_seconds(spark) + time.process_time() - cpu
        answer = _answer(frame, side) if first else None
    return Measurement(shape.name, side, strategy, seconds, cpu, choice, "; ".join(reasons), answer)


def _frame(spark: SparkSession, file: Path, shape: Shape, strategy: str) -> tuple[DataFrame, str]:
    from common.transforms.topn import sort_top_n, window_top_n
    from common.transforms.topn_aggregate import aggregate_top_n
    from common.transforms.topn_prune import prune_top_n
    from common.transforms.topn_rows import TopN

    if strategy == "auto":
        return _planned(spark, file, shape)
    rows = spark.read.parquet(str(file))
    spec = TopN(**shape.spec)
    name, _, rate = strategy.partition("-")
    if name == "prune":
        return prune_top_n(rows, spec, one_in=int(rate)) if rate else prune_top_n(rows, spec), ""
    by_name = {"window": window_top_n, "sort": sort_top_n, "aggregate": aggregate_top_n}
    return by_name[name](rows, spec), ""


def _planned(spark: SparkSession, file: Path, shape: Shape) -> tuple[DataFrame, str]:
    """As a run of the job does it, from the listing on."""
    from common.engine.listing import list_input
    from common.engine.local_session import ClassicEngine
    from common.engine.tables import read_input
    from common.runs.evidence import gather_facts
    from common.settings.inputs import InputRequest
    from jobs.topn import Settings, Topn

    job, settings = Topn(), Settings(**{**shape.spec, "score": (shape.spec["score"],)})
    listing = list_input(InputRequest("input", (str(file),)))
    inputs = {"input": read_input(spark, listing)}
    facts = gather_facts(job.sample(settings), ClassicEngine(spark, "local"), {"input": listing}, inputs)
    decision = job.plan(facts, settings)
    rate = decision.evidence.get("one_in") if settings.partition_by else None
    choice = f"{decision.choice} 1/{rate}" if rate else decision.choice
    return job.build(inputs, settings, decision), choice


def _answer(frame: DataFrame, side: str) -> Answer:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    from common.transforms.fingerprint import fingerprint

    if side == "comet":  # which cannot observe: the query would leave it
        found = fingerprint(frame).first()
        assert found is not None
        return {"rows": str(found["row_count"]), "hashes": str(found["hash_sum"])}
    seen = Observation()
    found = fingerprint(frame.observe(seen, F.sum(F.col("id") * F.col("rank")).alias("sum"))).first()
    assert found is not None
    return {
        "rows": str(found["row_count"]),
        "hashes": str(found["hash_sum"]),
        "ids by rank": str(seen.get["sum"]),
    }


def _on_duckdb(data: Path, shapes: Sequence[Shape], *, first: bool, repeats: int) -> Iterator[Measurement]:
    import duckdb

    with (
        tempfile.TemporaryDirectory() as spill,
        duckdb.connect(config={"temp_directory": spill}) as connection,
    ):
        for shape in shapes:
            file = literal(_file(data, shape))
            connection.execute(f"CREATE OR REPLACE VIEW {shape.table} AS FROM read_parquet({file})")
            connection.execute(f"SELECT count(*) FROM {shape.table} WHERE id < 1000").fetchall()
            query = shape.sql()
            seconds, cpu, _ = _timed(partial(_dropped, connection, query), repeats)
            answer = None
            if first:
                totals = f"SELECT count(*), sum(id * rank) FROM ({query})"
                answer = _counted(*connection.execute(totals).fetchall()[0])
            yield Measurement(shape.name, "duckdb", "sql", seconds, cpu, answer=answer)


def _dropped(connection: Any, query: str) -> None:
    for _ in connection.execute(query).to_arrow_reader():
        pass


def _on_polars(data: Path, shapes: Sequence[Shape], *, first: bool, repeats: int) -> Iterator[Measurement]:
    import polars as pl

    for shape in shapes:
        assert shape.polars is not None
        query = shape.polars(pl.scan_parquet(_file(data, shape)), shape.spec)
        pl.scan_parquet(_file(data, shape)).filter(pl.col("id") < 1000).select(pl.len()).collect()
        seconds, cpu, best = _timed(query.collect, repeats)
        answer = None
        if first:
            answer = _counted(best.height, int((best["id"] * best["rank"].cast(pl.Int64)).sum()))
        yield Measurement(shape.name, "polars", "lazy", seconds, cpu, answer=answer)


def _counted(rows: int, ids_by_rank: int) -> Answer:
    return {"rows": str(rows), "ids by rank": str(ids_by_rank)}


def _timed(work: Callable[[], T], repeats: int) -> tuple[float, float, T]:
    """The best of the runs, and the last one's answer."""
    times = []
    for _ in range(repeats):
        started, cpu = time.perf_counter(), time.process_time()
        found = work()
        times.append((time.perf_counter() - started, time.process_time() - cpu))
    return *min(times), found


def _file(data: Path, shape: Shape) -> Path:
    return data / f"{shape.table}.parquet"
