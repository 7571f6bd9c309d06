"""A streaming query over files whose dimension changes while it runs: rows a second, reloads, versions.

refreshing.py [--rows 2000000] [--files 40] [--change-seconds 0.5]

Every row is looked up in the version that its batch holds, which says its number in each of its values. A
batch in whose output two versions met, a row without a value or a row lost is an error.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from common.core.files import replace_file
from common.engine.refreshing import RefreshingBroadcast, broadcasting

KEYS = 10_000


def main() -> int:
    """Run the query and print what it did."""
    parser = argparse.ArgumentParser(description="streaming lookups while the dimension changes")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--change-seconds", type=float, default=0.5)
    asked = parser.parse_args()
    logging.getLogger("saltpan").setLevel(logging.ERROR)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), asked)


def measure(folder: Path, asked: argparse.Namespace) -> int:
    """Stream all files, with a writer that changes the dimension beside it."""
    write_facts(folder / "facts", rows=asked.rows, files=asked.files)
    source = folder / "dimension"
    replace_file(source, "1")
    spark = session()
    refreshing: RefreshingBroadcast[pa.Table] = RefreshingBroadcast(
        lambda: dimension(int(source.read_text())), broadcasting(spark), fingerprint=source.read_text
    )
    stop = threading.Event()

    def change() -> None:
        number = 1
        while not stop.wait(asked.change_seconds):
            number += 1
            # Every seventh cannot be read: the version before it stays.
            replace_file(source, "broken" if number % 7 == 0 else str(number))

    found: list[tuple[int, int, int, list[int]]] = []  # batch, version, rows, contents that were seen

    def enrich(batch: DataFrame, number: int) -> None:
        with refreshing.batch() as version:
            rows = batch.mapInArrow(looked_up(version.held), "content BIGINT")
            counts = rows.groupBy("content").count().collect()
            contents = [row["content"] for row in counts]
            found.append((number, version.number, sum(row["count"] for row in counts), contents))

    writer = threading.Thread(target=change)
    stream = spark.readStream.schema("k BIGINT").option("maxFilesPerTrigger", 1)
    refreshing.refresh()  # there is a first version before anything can be broken
    begin = time.monotonic()
    writer.start()
    try:
        query = stream.parquet(str(folder / "facts")).writeStream.foreachBatch(enrich)
        query.trigger(availableNow=True).start().awaitTermination()
    finally:
        stop.set()
        writer.join()
    seconds = time.monotonic() - begin
    state = refreshing.state
    refreshing.close()
    spark.stop()
    return report(found, state, rows=asked.rows, seconds=seconds)


def session() -> SparkSession:
    """A small session of this machine."""
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def write_facts(folder: Path, *, rows: int, files: int) -> None:
    """Keys in files of equal size."""
    folder.mkdir()
    each = rows // files
    for number in range(files):
        count = rows - each * (files - 1) if number == 0 else each
        pq.write_table(
            pa.table({"k": [row * 7919 % KEYS for row in range(count)]}), folder / f"{number}.parquet"
        )


def dimension(content: int) -> pa.Table:
    """A value for each key: the content's number."""
    return pa.table({"k": range(KEYS), "content": [content] * KEYS})


def looked_up(held: Any) -> Any:
    """What looks each key up in the version."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = held.value
        for batch in batches:
            places = pc.index_in(batch.column(0), value_set=table["k"].combine_chunks())
            content = table["content"].combine_chunks().take(places)
            yield pa.RecordBatch.from_arrays([content], names=["content"])

    return look


def report(found: list[tuple[int, int, int, list[int]]], state: Any, *, rows: int, seconds: float) -> int:
    """Print the figures; 1 when a batch was mixed or rows are not all there."""
    print(f"{rows:,} rows in {len(found)} batches, {seconds:.1f} s: {rows / seconds:,.0f} rows/s")
    print(f"{state.loads} versions loaded, {state.failures} loads failed")
    print("versions by batch: " + " ".join(str(version) for _, version, _, _ in found))
    mixed = [number for number, _, _, contents in found if len(contents) != 1 or None in contents]
    total = sum(count for _, _, count, _ in found)
    by_version: dict[int, set[int]] = {}
    for _, version, _, contents in found:
        by_version.setdefault(version, set()).update(contents)
    torn = [version for version, contents in by_version.items() if len(contents) != 1]
    if mixed or torn or total != rows:
        print(f"WRONG: mixed batches {mixed}, versions of two contents {torn}, {total:,} rows")
        return 1
    print("no batch saw two versions; every row has its value")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
