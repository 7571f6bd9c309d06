"""One side of bench/skew.py in a process of its own: joins of one shape by every strategy."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `bench` and `common` importable

from bench.bench_spark import jvm_cpu_seconds, spark_session
from bench.skew_levels import CLUSTER_CORES, MANY_TASKS, plain_stages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ON = "key"
# Below what a row of dims takes in memory, so that no side can be broadcast as a whole.
LIMIT_BYTES_PER_ROW = 16


@dataclass(frozen=True)
class Way:
    """One way to join.

    Attributes:
        strategy: Of skew-join; "plain" for Spark's own join.
        settings: Of the session, while it runs.
    """

    strategy: str
    settings: Mapping[str, str]


WAYS = {
    "plain, no AQE": Way("plain", {"spark.sql.adaptive.enabled": "false"}),
    "plain": Way("plain", {}),
    "shuffle": Way("shuffle", {}),
    "isolate": Way("isolate", {}),
    "salt": Way("salt", {}),
    "auto": Way("auto", {}),
}


def main() -> None:
    """Print a JSON object for each measured join."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--shape", required=True)
    parser.add_argument("--ways", nargs="+", required=True)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--many-tasks", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    settings = {"spark.sql.autoBroadcastJoinThreshold": "-1", **(MANY_TASKS if arguments.many_tasks else {})}
    with spark_session(arguments.side, name="bench skew", settings=settings) as spark:
        bench = Bench(spark, arguments.data, arguments.shape, arguments.many_tasks)
        bench.warm_up()
        for _ in range(arguments.repeats):
            for name in arguments.ways:
                print(json.dumps({"way": name, **bench.measured(WAYS[name])}), flush=True)
        for name in arguments.ways if arguments.check else ():
            print(json.dumps({"way": name, "answer": bench.answer(WAYS[name])}), flush=True)


class Bench:
    """A session with the two inputs, and what the job does with them."""

    def __init__(self, spark: SparkSession, data: Path, shape: str, many_tasks: bool) -> None:
        self._spark = spark
        self._paths = {"left": data / f"{shape}.parquet", "right": data / "dims.parquet"}
        self._cores = CLUSTER_CORES if many_tasks else 2

    def warm_up(self) -> None:
        """Compile what every query needs."""
        frames = self._frames()
        small = {name: df.where(f"{ON} < 1000 AND {ON} % 7 = 1") for name, df in frames.items()}
        small["left"].join(small["right"], ON).write.format("noop").mode("overwrite").save()

    def measured(self, way: Way) -> dict[str, Any]:
        """Seconds of all that the way does, looking for hot keys included; and what its tasks took."""
        from common.engine.stage_metrics import stage_mark, stages_since

        mark, started, cpu = stage_mark(self._spark), time.perf_counter(), jvm_cpu_seconds(self._spark)
        joined, decision = self._joined(way)
        planned = time.perf_counter() - started
        self._with(way, lambda: joined.write.format("noop").mode("overwrite").save())
        seconds = time.perf_counter() - started
        stages = stages_since(self._spark, mark) or ()
        return {
            "seconds": seconds,
            "planning_seconds": planned,
            "cpu_seconds": jvm_cpu_seconds(self._spark) - cpu,
            "choice": decision,
            "stages": plain_stages(stages),
        }

    def answer(self, way: Way) -> dict[str, str]:
        """The fingerprint of its rows."""
        from common.transforms.fingerprint import fingerprint

        joined, _ = self._joined(way)
        columns = sorted(joined.columns)
        found: list[Any] = []
        self._with(way, lambda: found.extend(fingerprint(joined, columns=columns).collect()))
        return {name: str(value) for name, value in found[0].asDict().items()}

    def _with(self, way: Way, act: Any) -> None:
        before = {key: self._spark.conf.get(key) for key in way.settings}
        for key, value in way.settings.items():
            self._spark.conf.set(key, value)
        try:
            act()
        finally:
            for key, value in before.items():
                self._spark.conf.set(key, value or "")

    def _frames(self) -> dict[str, DataFrame]:
        return {name: self._spark.read.parquet(str(path)) for name, path in self._paths.items()}

    def _joined(self, way: Way) -> tuple[DataFrame, str]:
        frames = self._frames()
        if way.strategy == "plain":
            return frames["left"].join(frames["right"], ON), "plain"
        return self._by_job(frames, way.strategy)

    def _by_job(self, frames: Mapping[str, DataFrame], strategy: str) -> tuple[DataFrame, str]:
        from common.runs.evidence import probed
        from jobs.skew_join import SkewJoin

        job, settings = SkewJoin(), _settings(strategy, self._paths)
        facts = probed(job, self._facts(job.sample(settings)), frames, settings)
        decision = job.plan(facts, settings)
        print(decision.line(), file=sys.stderr)
        return job.build(frames, settings, decision), decision.choice

    def _facts(self, wanted: Mapping[str, Sequence[str]]) -> Any:
        from dataclasses import replace

        from common.engine.column_widths import column_widths
        from common.engine.comet import is_active
        from common.engine.facts import sample_keys, static_facts
        from common.engine.listing import list_input
        from common.engine.storage import storage_for
        from common.settings.inputs import InputRequest
        from common.tuning.facts import Facts

        inputs = {}
        for name, path in self._paths.items():
            listing = list_input(InputRequest(name, (str(path),)), storage_for(str(path)))
            inputs[name] = replace(
                static_facts(listing),
                sample=sample_keys(listing, wanted[name]),
                column_widths=column_widths(listing),
            )
        accelerator = "comet" if is_active(self._spark) else "none"
        return Facts(inputs, core_count=self._cores, accelerator=accelerator)


def _settings(strategy: str, paths: Mapping[str, Path]) -> Any:
    import pyarrow.parquet as pq

    from common.settings.job import with_inputs
    from jobs.skew_join import Settings

    model = with_inputs(Settings, ("left", "right"))
    return model(
        on=(ON,),
        strategy=strategy,
        max_broadcast_bytes=f"{LIMIT_BYTES_PER_ROW * pq.read_metadata(paths['right']).num_rows}b",
        replication_budget=4.0,
        **{name: (str(path),) for name, path in paths.items()},
    )


if __name__ == "__main__":
    main()
