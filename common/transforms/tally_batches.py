"""A function over Arrow batches that counts: what runs in the worker, whichever way its tally goes home."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeVar

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from common.transforms.tallies import Origin, Tally

if TYPE_CHECKING:
    import pyarrow as pa

PARTITION: Final = "_saltpan_partition"
_EXECUTION = "spark.sql.execution.id"

T = TypeVar("T")
CountingFunction = Callable[[Iterator[T], Tally], Iterator[T]]


class PartitionNote:
    """Batches without the column that says which partition of their frame they are, and what it said."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.partition: int | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            names = batch.schema.names
            if self.partition is None and batch.num_rows:
                self.partition = batch.column(len(names) - 1)[0].as_py()
            yield batch.select(list(range(len(names) - 1)))


def with_partition(df: DataFrame) -> DataFrame:
    """The rows with the number of their partition in this frame, last.

    A task's own number would not do: in a union of a frame with itself two tasks have the same rows.

    Plan:
        Lazy. Four bytes more for each row that goes to Python.
    """
    return df.select("*", F.spark_partition_id().alias(PARTITION))


def origin(partition: int | None) -> Origin:
    """Whose tally this task makes; `partition` is the frame's, or None where only the task's is known."""
    context = TaskContext.get()
    if context is None:
        return Origin("driver", partition or 0, 0)
    execution = context.getLocalProperty(_EXECUTION)
    scope = f"execution {execution}" if execution else f"stage {context.stageId()}"
    # Negative: tasks that had no row to tell by must not be taken for partitions of the frame.
    own = partition if partition is not None or not execution else -1 - context.partitionId()
    return Origin(scope, context.partitionId() if own is None else own, context.taskAttemptId())
