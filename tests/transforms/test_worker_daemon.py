"""Workers of this machine have the suite's daemon, where it cures something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from common.engine.worker_daemon import daemon_settings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def test_workers_read_archives_when_they_have_changed(spark: SparkSession) -> None:
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import zipimport

        import pyarrow as pa

        for _ in batches:
            name = zipimport.zipimporter.invalidate_caches.__qualname__
            yield pa.RecordBatch.from_pydict({"name": [name]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(look, "name STRING").collect()
    own = "read_when_changed.<locals>.invalidate_caches"
    assert row.name == (own if daemon_settings({}) else "zipimporter.invalidate_caches")
