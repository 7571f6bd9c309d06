"""One side of bench/lookup.py in a process of its own: lookups in one dimension, every way."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `bench` and `common` importable

from bench.bench_spark import jvm_cpu_seconds, jvm_pid, own_bytes, peak_bytes, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from common.tuning.decision import Decision

# Spark's own join, with its hint; the job's ways, with the look at the dimension that each run of it takes.
PLAIN = {"plain broadcast": "broadcast", "plain shuffle": "merge"}
WAYS = (*PLAIN, "variable", "join", "shuffle", "auto")
TAKE = ("name", "region")


def main() -> None:
    """Print a JSON object for each measured lookup."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", required=True)
    parser.add_argument("--facts", type=Path, required=True)
    parser.add_argument("--dimension", type=Path, required=True)
    parser.add_argument("--ways", nargs="+", required=True)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    settings = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
    with spark_session(arguments.side, name="bench lookup", settings=settings) as spark:
        bench = Bench(spark, arguments.facts, arguments.dimension)
        bench.warm_up()
        for way in arguments.ways:
            print(json.dumps({"way": way, **bench.measured(way)}), flush=True)
        for way in arguments.ways if arguments.check else ():
            print(json.dumps({"way": way, "answer": bench.answer(way)}), flush=True)


class Bench:
    """A session with the two inputs, and what the job does with them."""

    def __init__(self, spark: SparkSession, facts: Path, dimension: Path) -> None:
        self._spark = spark
        self._paths = {"facts": facts, "dimension": dimension}

    def warm_up(self) -> None:
        """Compile what every query needs, and start the Python workers."""
        for way in ("plain broadcast", "variable"):
            with self._rows(way, few=True) as (rows, _):
                rows.write.format("noop").mode("overwrite").save()

    def measured(self, way: str) -> dict[str, Any]:
        """Seconds of all that the way does, the look at the dimension included."""
        started, cpu = time.perf_counter(), jvm_cpu_seconds(self._spark)
        with self._rows(way) as (rows, decision):
            rows.write.format("noop").mode("overwrite").save()
            seconds = time.perf_counter() - started
            workers = list(_python_workers(jvm_pid(self._spark)))
        return {
            "seconds": seconds,
            "cpu_seconds": jvm_cpu_seconds(self._spark) - cpu,
            "choice": decision.choice if decision else way,
            "worker_peak_bytes": max(map(peak_bytes, workers), default=0) if way == "variable" else 0,
            "worker_own_bytes": max(map(own_bytes, workers), default=0) if way == "variable" else 0,
        }

    def answer(self, way: str) -> dict[str, str]:
        """The fingerprint of its rows."""
        from common.transforms.fingerprint import fingerprint

        with self._rows(way) as (rows, _):
            (found,) = fingerprint(rows, columns=sorted(rows.columns)).collect()
        return {name: str(value) for name, value in found.asDict().items()}

    @contextmanager
    def _rows(self, way: str, *, few: bool = False) -> Iterator[tuple[DataFrame, Decision | None]]:
        frames = {name: self._spark.read.parquet(str(path)) for name, path in self._paths.items()}
        if few:
            frames = {name: frame.where("key < 1000 AND key % 7 = 1") for name, frame in frames.items()}
        if way in PLAIN:
            dimension = frames["dimension"].select("key", *TAKE).hint(PLAIN[way])
            yield frames["facts"].join(dimension, "key", "left").select(*frames["facts"].columns, *TAKE), None
            return
        with ExitStack() as stack:
            yield self._by_job(frames, way, stack)

    def _by_job(
        self, frames: Mapping[str, DataFrame], way: str, stack: ExitStack
    ) -> tuple[DataFrame, Decision]:
        from common.engine.broadcast_tables import broadcast_table
        from common.engine.comet import is_active
        from common.runs.evidence import probed
        from common.runs.inputs import ReadInputs
        from common.settings.engines import capabilities
        from common.tuning.facts import Facts
        from jobs.lookup import Lookup

        job, settings = Lookup(), self._settings(way)
        accelerator = "comet" if is_active(self._spark) else "none"
        cores = self._spark.sparkContext.defaultParallelism
        known = capabilities("classic", spark_version=self._spark.version)
        facts = Facts({}, capabilities=known, core_count=cores, accelerator=accelerator)
        decision = job.plan(probed(job, facts, frames, settings), settings)
        inputs = ReadInputs(self._spark, {})
        inputs._frames.update(frames)
        for name, shared in job.share(inputs, settings, decision).items():
            table = broadcast_table(shared.rows, workers=cores, max_bytes=shared.max_bytes)
            inputs.shared[name] = stack.enter_context(table)
        return job.build(inputs, settings, decision).rows, decision

    def _settings(self, way: str) -> Any:
        from common.settings.job import with_inputs
        from jobs.lookup import Lookup, Settings

        return with_inputs(Settings, Lookup.inputs)(
            on=("key",),
            take=TAKE,
            strategy="join" if way == "shuffle" else way,
            max_broadcast_bytes="1b" if way == "shuffle" else "2g",
            **{name: (str(path),) for name, path in self._paths.items()},
        )


def _python_workers(parent: int) -> Iterator[int]:
    """The processes of Python below the JVM; Linux tells."""
    tasks = Path(f"/proc/{parent}/task")
    for task in tasks.iterdir() if tasks.exists() else ():
        children = task / "children"
        for child in children.read_text().split() if children.exists() else ():
            yield int(child)
            yield from _python_workers(int(child))


if __name__ == "__main__":
    main()
