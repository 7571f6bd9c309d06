"""A streaming query over files whose dimension changes while it runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from common.engine.refreshing import RefreshingBroadcast, broadcasting


def test_each_batch_of_a_streaming_query_sees_one_version(spark: SparkSession, tmp_path: Path) -> None:
    facts, dimension, out = tmp_path / "facts", tmp_path / "dimension.json", tmp_path / "out"
    facts.mkdir()
    dimension.write_text('{"name": "one"}')
    for number in range(5):
        table = pa.table({"k": [number * 1000 + row for row in range(1000)]})
        pq.write_table(table, facts / f"{number}.parquet")

    refreshing: RefreshingBroadcast[dict[str, str]] = RefreshingBroadcast(
        lambda: json.loads(dimension.read_text()), broadcasting(spark), fingerprint=dimension.read_text
    )
    states: list[tuple[int, int, bool]] = []
    ended: list[Any] = []

    def enrich(batch: DataFrame, number: int) -> None:
        with refreshing.batch() as version:
            held: Any = version.held
            ended.append(held)

            def named(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                for rows in batches:
                    name = pa.array([held.value["name"]] * rows.num_rows)
                    yield pa.RecordBatch.from_arrays([rows.column(0), name], names=["k", "name"])

            # In the middle of a batch: what this batch sees must not change.
            changed = {0: '{"name": "two"}', 2: "no JSON", 3: '{"name": "three"}'}.get(number)
            if changed:
                dimension.write_text(changed)
            rows = batch.repartition(2).mapInArrow(named, "k BIGINT, name STRING")
            rows.write.parquet(str(out / str(number)))
            state = refreshing.state
            states.append((number, version.number, state.is_stale))

    stream = spark.readStream.schema("k BIGINT").option("maxFilesPerTrigger", 1).parquet(str(facts))
    query = stream.writeStream.foreachBatch(enrich).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert query.exception() is None
    names = [pq.read_table(out / str(number))["name"].unique().to_pylist() for number in range(5)]
    assert names == [["one"], ["two"], ["two"], ["two"], ["three"]]
    # The broken file was met before batch 3, the mended one before batch 4.
    assert states == [(0, 1, False), (1, 2, False), (2, 2, False), (3, 2, True), (4, 3, False)]
    assert (refreshing.state.loads, refreshing.state.failures) == (3, 1)
    gone = [not Path(held._path).exists() for held in ended]
    assert gone == [True, True, True, True, False]
    refreshing.close()
    assert not Path(ended[-1]._path).exists()
