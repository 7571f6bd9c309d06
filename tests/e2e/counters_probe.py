"""Runs in a process of its own: tasks that fail, a lost shuffle, speculation, actions that run twice.

counters_probe.py FOLDER

A cluster on this machine, of two hosts by its own account: Spark's local mode knows no speculation, and a
copy of a task never goes to the host of the first.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pyspark import AccumulatorParam, SparkContext, TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from common.engine.counted_rows import RowCounters
from common.engine.counters import Counters
from common.engine.task_counters import TaskCounters
from common.engine.worker_daemon import daemon_settings
from common.transforms.counters import Counter
from common.transforms.tallies import Tally

if TYPE_CHECKING:
    import pyarrow as pa

ROOT = sys.path[0]
ROWS, PARTITIONS = 100, 4
HOSTS = ("127.0.0.1", "127.0.0.2")
FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SQL = (Counter("rows"), Counter("total", "sum", "id"), Counter("largest", "max", "id"))
PYTHON = (*(Counter(c.name, c.kind) for c in SQL), Counter("parities", "distinct"))


def main(folder: Path) -> None:
    """Write down what each counter said, to told.json."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": ROOT}
    os.environ["PYSPARK_SUBMIT_ARGS"] = f'--driver-java-options "{FAST_START}" pyspark-shell'
    spark = (
        SparkSession.builder.master(cluster(folder / "workers"))
        .config("spark.driver.host", HOSTS[0])
        .config("spark.executor.memory", "512m")
        .config("spark.executor.extraJavaOptions", FAST_START)
        .config("spark.ui.enabled", "false")
        .config("spark.local.dir", str(folder / "scratch"))
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.speculation", "true")
        .config("spark.speculation.interval", "100ms")
        .config("spark.speculation.multiplier", "1.1")
        .config("spark.speculation.quantile", "0.5")
        .config("spark.speculation.minTaskRuntime", "300ms")
        .config("spark.stage.maxConsecutiveAttempts", "8")
        .config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", "false")
        .config(map=daemon_settings({}))
        .getOrCreate()
    )
    told: dict[str, Any] = {}
    try:
        for fault in (fail_and_wait, fetch_failure):
            told[fault.__name__] = counted(spark, folder, fault)
        told["rdd"] = rdd(spark, folder)
        told["zero"] = zero(spark)
        told["markers"] = sorted(path.name for path in folder.glob("*.once"))
    finally:
        spark.stop()
    (folder / "told.json").write_text(json.dumps(told))


def cluster(folder: Path) -> str:
    """Start a master and two workers inside this process's JVM; the master's address."""
    SparkContext._ensure_initialized()
    gateway: Any = SparkContext._gateway
    deploy = gateway.jvm.org.apache.spark.deploy
    conf = gateway.jvm.org.apache.spark.SparkConf()
    master = deploy.master.Master.startRpcEnvAndEndpoint(HOSTS[0], 0, 0, conf)
    masters = gateway.new_array(gateway.jvm.java.lang.String, 1)
    masters[0] = master._1().address().toSparkURL()
    option = gateway.jvm.scala.Option
    for number, host in enumerate(HOSTS):
        # Its host, ports, cores, MiB, masters, folder, number, settings, and no service of shared files.
        known = (host, 0, 0, 1, 512, masters, str(folder / str(number)), option.apply(number), conf)
        deploy.worker.Worker.startRpcEnvAndEndpoint(*known, option.empty())
    return str(masters[0])


Fault = Callable[[Path, str, int], None]


def fail_and_wait(folder: Path, name: str, seen: int) -> None:
    """One task fails after half its rows; another waits for a copy of itself to begin, and both go on."""
    if name != "map":
        return
    partition = TaskContext.get().partitionId()
    if partition == 0 and seen > 1 and once(folder, "failed"):
        raise RuntimeError("a task that fails after half its rows")
    if partition == 1 and seen == 1 and not once(folder, "slow"):
        once(folder, "copied")
    end = time.monotonic() + 10
    while partition == 1 and not (folder / "copied.once").exists() and time.monotonic() < end:
        time.sleep(0.01)


def fetch_failure(folder: Path, name: str, seen: int) -> None:
    """The shuffle of all counted rows is lost when they are read."""
    if name == "read" and once(folder, "lost"):
        for file in (folder / "scratch").rglob("shuffle_*"):
            file.unlink()
        raise RuntimeError("a task whose shuffle is gone when it is tried again")


def counted(spark: SparkSession, folder: Path, fault: Fault) -> dict[str, Any]:
    """All three kinds of counters over the same rows, which are then shuffled and read."""
    tasks, rows = TaskCounters(spark, *PYTHON), RowCounters(*PYTHON)
    sql = Counters(*SQL)
    plain = spark.sparkContext.accumulator(0)
    base = spark.range(0, ROWS, 1, PARTITIONS).repartition(PARTITIONS, "id")

    def count(batches: Iterator[pa.RecordBatch], tally: Tally) -> Iterator[pa.RecordBatch]:
        seen = 0
        for batch in batches:
            for half in (batch.slice(0, batch.num_rows // 2), batch.slice(batch.num_rows // 2)):
                seen += 1
                tell(tally, half.column(0).to_pylist())
                plain.add(half.num_rows)
                fault(folder, "map", seen)
                yield half

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            fault(folder, "read", 0)
            yield batch

    def once_more(batches: Iterator[pa.RecordBatch], tally: Tally) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            tell(tally, batch.column(0).to_pylist())
            yield batch

    mapped = sql.attach(tasks.map_in_arrow(base, count, base.schema))
    mapped = rows.map_in_arrow(mapped, once_more, base.schema)
    groups = mapped.groupBy((F.col("id") % 10).alias("k")).agg(F.count(F.lit(1)).alias("n"))
    answer = sum(row["n"] for row in groups.mapInArrow(read, groups.schema).collect())
    return {
        "answer": answer,
        "plain": plain.value,
        "tasks": said(tasks),
        "rows": said(rows),
        "sql": said(sql),
    }


def tell(tally: Tally, ids: list[int]) -> None:
    """Count the ids."""
    tally.add("rows", len(ids))
    tally.add("total", sum(ids))
    tally.see_all("largest", ids)
    tally.see_all("parities", [number % 2 for number in ids])


def said(counters: Any) -> dict[str, Any]:
    """What counters say after the action."""
    reading = counters.settle()
    return {"values": reading.values, "naive": reading.naive, "why": reading.why}


def rdd(spark: SparkSession, folder: Path) -> list[Any]:
    """Case e2: a task fails on its first attempt, after adding one for each row."""
    tasks, plain = TaskCounters(spark, Counter("rows")), spark.sparkContext.accumulator(0)

    def fail_first(rows: Iterator[int], tally: Tally) -> Iterator[int]:
        for row in rows:
            tally.add("rows")
            plain.add(1)
            yield row
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("a task that fails on its first attempt")

    context = spark.sparkContext
    context.parallelize(range(10), 2).mapPartitions(tasks.map_rows(fail_first)).count()
    first = [plain.value, tasks.value("rows")]
    return [*first, tasks.read().why]


class SharedZero(AccumulatorParam[int]):
    """The mistake of case e3."""

    def zero(self, value: int) -> int:
        return value

    def addInPlace(self, value1: int, value2: int) -> int:  # noqa: N802
        return value1 + value2


def zero(spark: SparkSession) -> list[int]:
    """Case e3: what the mistake gives; ours in a second action, when the driver holds tallies already."""
    context = spark.sparkContext
    wrong = context.accumulator(10, SharedZero())
    context.parallelize([1, 1], 2).foreach(wrong.add)
    tasks = TaskCounters(spark, Counter("rows", "sum"))

    def add(rows: Iterator[int], tally: Tally) -> Iterator[int]:
        for row in rows:
            tally.add("rows", row)
            yield row

    for numbers in ([5, 5], [1, 1]):
        context.parallelize(numbers, 2).mapPartitions(tasks.map_rows(add)).count()
    return [wrong.value, tasks.read().values["rows"], tasks.read().naive["rows"]]


def once(folder: Path, *names: object) -> bool:
    """True for the first who asks."""
    try:
        (folder / f"{'-'.join(map(str, names))}.once").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
