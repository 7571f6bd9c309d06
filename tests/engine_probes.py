"""Tries every capability of engines.toml on one engine; as a script, on a server, in a process of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Observation
from pyspark.sql import functions as F

from common import __version__
from common.engine.hadoop_storage import HadoopStorage
from common.engine.plans import read_plan
from common.engine.session import choose_site, open_engine
from common.settings.profiles import conf_folder, load_profile


def classic(spark: Any, folder: Path) -> bool:
    return bool(spark._jvm.java.lang.System.getProperty("java.version"))


def rdd(spark: Any, folder: Path) -> bool:
    return bool(spark.range(3, numPartitions=2).rdd.count() == 3)


def accumulator(spark: Any, folder: Path) -> bool:
    total = spark.sparkContext.accumulator(0)
    spark.sparkContext.parallelize([1, 2], 2).foreach(total.add)
    return bool(total.value == 3)


def broadcast_variable(spark: Any, folder: Path) -> bool:
    held = spark.sparkContext.broadcast([5])
    return bool(spark.sparkContext.parallelize([1], 1).map(lambda x: x + held.value[0]).collect() == [6])


def file_systems(spark: Any, folder: Path) -> bool:
    return HadoopStorage(spark).exists(f"file://{folder}")


def observe(spark: Any, folder: Path) -> bool:
    seen = Observation()
    spark.range(7).observe(seen, F.count(F.lit(1)).alias("rows")).collect()
    return bool(seen.get["rows"] == 7)


def adaptive(spark: Any, folder: Path) -> bool:
    return bool(
        read_plan(spark.range(9).groupBy((F.col("id") % 2).alias("k")).count()).of("AdaptiveSparkPlan")
    )


def metadata_columns(spark: Any, folder: Path) -> bool:
    pq.write_table(pa.table({"a": [1]}), folder / "one.parquet")
    row = spark.read.parquet(f"file://{folder}/one.parquet").select("_metadata.file_name").first()
    return bool(row[0] == "one.parquet")


def python_workers(spark: Any, folder: Path) -> bool:
    def version(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import common

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"version": [common.__version__]})

    return bool(spark.range(1).mapInArrow(version, "version STRING").first()[0] == __version__)


def permissive_csv(spark: Any, folder: Path) -> bool:
    (folder / "bad.csv").write_text("1\nx\n")
    reader = spark.read.schema("a INT, bad STRING").option("columnNameOfCorruptRecord", "bad")
    rows = reader.csv(f"file://{folder}/bad.csv").collect()
    return sorted(map(tuple, rows), key=str) == [(1, None), (None, "x")]


def empty_write(spark: Any, folder: Path) -> bool:
    spark.createDataFrame([], "a INT, b STRING").write.parquet(f"file://{folder}/empty")
    back = spark.read.parquet(f"file://{folder}/empty")
    return (back.columns, back.count()) == (["a", "b"], 0)


def ordered_write(spark: Any, folder: Path) -> bool:
    mixed = spark.range(0, 100, 1, 1).select((F.col("id") * 37 % 101).alias("v"))
    mixed.sortWithinPartitions(F.desc("v")).write.parquet(f"file://{folder}/ordered")
    (part,) = (folder / "ordered").glob("*.parquet")
    return bool(
        pq.read_table(part)["v"].to_pylist() == sorted((i * 37 % 101 for i in range(100)), reverse=True)
    )


def top_k_aggregate(spark: Any, folder: Path) -> bool:
    row = spark.sql("SELECT max_by(x, y, 2) FROM VALUES (1, 10), (2, 30), (3, 20) AS t(x, y)").first()
    return bool(row[0] == [2, 3])


PROBES: tuple[Callable[[Any, Path], bool], ...] = (
    *(classic, rdd, accumulator, broadcast_variable, file_systems, observe, adaptive, metadata_columns),
    *(python_workers, permissive_csv, empty_write, ordered_write, top_k_aggregate),
)


def tried(spark: Any, folder: Path) -> dict[str, bool]:
    """Capability to whether it works here."""
    return {probe.__name__: _works(probe, spark, folder) for probe in PROBES}


def _works(probe: Callable[[Any, Path], bool], spark: Any, folder: Path) -> bool:
    try:
        return probe(spark, folder)
    except Exception as error:  # noqa: BLE001  whatever an engine raises for what it lacks
        sys.stderr.write(f"{probe.__name__}: {type(error).__name__}: {str(error).splitlines()[0][:120]}\n")
        return False


def main(folder: Path, remote: str) -> None:
    site = choose_site(os.environ, remote=remote)
    profile = load_profile(site.profile, folder=conf_folder(None, environ={}))
    with open_engine("probes", profile, site=site) as engine:
        told: dict[str, Any] = {"name": engine.name, "works": tried(engine.spark, folder)}
        told |= {"spark": engine.spark.version, "core_count": engine.core_count}
        engine.describe("a, b")
        told["tags"] = sorted(engine.spark.getTags())
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
