"""Runs in a process of its own: a salted join in which a task fails and a shuffle is lost, each once.

fault_probe.py FOLDER
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pyspark.sql import SparkSession

from common.engine.stage_metrics import stage_mark, stages_since
from common.transforms.join_sides import JoinSpec, joined_sides
from common.transforms.skew_join import Treatment, skew_join

if TYPE_CHECKING:
    import pyarrow as pa


def main(folder: Path) -> None:
    """Write down what went wrong and the rows, to told.json."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2, 4]")
        .config("spark.ui.enabled", "false")
        .config("spark.local.dir", str(folder / "scratch"))
        .config("spark.sql.autoBroadcastJoinThreshold", "-1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    left, right = (spark.read.parquet(str(folder / f"{name}.parquet")) for name in ("left", "right"))
    spec = JoinSpec((("k", "k"),))
    side = joined_sides(left.where("k = 'A'").limit(1), right, spec).left
    (hot,) = side.rows.select(side.hash).first() or ()

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if once(folder / "failed once"):
                raise RuntimeError("a task that fails after its first rows")

    def lose_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if once(folder / "lost once"):
                for file in (folder / "scratch").rglob("shuffle_*"):
                    file.unlink()
                raise RuntimeError("a task whose shuffle is gone when it is tried again")

    mark = stage_mark(spark)
    failing = left.mapInArrow(fail_once, left.schema)
    answer = skew_join(failing, right, spec, Treatment(split_left={hot: 8}))
    rows = sorted((row["x"], row["y"]) for row in answer.mapInArrow(lose_once, answer.schema).collect())
    stages = stages_since(spark, mark) or ()
    told = {
        "faults": sorted(path.name for path in folder.glob("* once")),
        "stages": len({stage.stage_id for stage in stages}),
        "stage_attempts": len(stages),
        "rows": rows,
    }
    (folder / "told.json").write_text(json.dumps(told))
    spark.stop()


def once(marker: Path) -> bool:
    """True for the first who asks."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
