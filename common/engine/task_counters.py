"""Counters where the work is Python: an accumulator of tallies, one of which counts for each partition.

A plain accumulator adds up every task that ended well: also those that ran again for a lost shuffle, whose
speculative copy won too, or whose rows another action had computed before (SPARK-732, SPARK-12469).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from common.transforms.counters import Counter, Readable, Reading, checked
from common.transforms.tallies import Tallies, Tally, gather, reading
from common.transforms.tally_batches import CountingFunction, PartitionNote, origin, with_partition

if TYPE_CHECKING:
    import pyarrow as pa

REQUIRES = frozenset({"classic", "accumulator"})


class TallyParam(AccumulatorParam[Tallies]):
    """How tallies come together; `zero` is a new dict each time, whatever the driver holds (case e3)."""

    def __init__(self, declared: tuple[Counter, ...]) -> None:
        self._kinds = {counter.name: counter.kind for counter in declared}

    def zero(self, value: Tallies) -> Tallies:
        """No tallies. PySpark passes the driver's value and sends what this returns to every task."""
        del value
        return {}

    def addInPlace(self, value1: Tallies, value2: Tallies) -> Tallies:  # noqa: N802  Spark's name
        """All tallies of both, in the first."""
        return gather(self._kinds, value1, value2)


class TaskCounters(Readable):
    """Counters that Python functions add to in tasks, for one run; the numbers are those of its last action.

    Args:
        spark: A classic session.
        *declared: What to count; expressions are not looked at.

    Raises:
        ParameterError: none, or two of one name.
    """

    def __init__(self, spark: SparkSession, *declared: Counter) -> None:
        self.declared = tuple(Counter(counter.name, counter.kind) for counter in checked(declared))
        self._held: Accumulator[Tallies] = spark.sparkContext.accumulator({}, TallyParam(self.declared))

    def map_in_arrow(
        self, df: DataFrame, function: CountingFunction[pa.RecordBatch], schema: StructType | str
    ) -> DataFrame:
        """`df.mapInArrow`, with a tally beside the batches.

        Args:
            df: Rows for the function, by its columns.
            function: From batches and a tally to batches.
            schema: Of what it returns.

        Plan:
            Lazy. All columns go to Python, and four bytes more for each row. Guideline D9.
        """
        return with_partition(df).mapInArrow(_InArrow(function, self._held, self.declared), schema)

    def map_rows(self, function: CountingFunction[Any]) -> Callable[[Iterable[Any]], Iterator[Any]]:
        """For `RDD.mapPartitions` and `foreachPartition`: the function, with a tally beside the rows.

        The numbers are those of one stage: take all rows of an RDD, by an action that runs one.
        """
        return _InRows(function, self._held, self.declared)

    def distrust(self, why: str) -> None:
        """Nothing to do: an action that failed is another action than the one that counts."""

    def read(self) -> Reading:
        """The numbers of the last action, and what a plain accumulator would say.

        Raises:
            NotRunError: no action has run the counted code.

        Plan:
            No action. Under a LIMIT, only tasks that were read to their end are counted.
        """
        kinds = {counter.name: counter.kind for counter in self.declared}
        found = reading(kinds, self._held.value)
        if found is None:
            raise self._not_run("not run", hint="run the action first")
        return found

    def settle(self) -> Reading:
        """The same as `read`: what tasks handed in is right as it stands."""
        return self.read()


class _InArrow:
    """Runs in the worker; the tally is handed in at the end, so that a task that fails has none."""

    def __init__(
        self,
        function: CountingFunction[pa.RecordBatch],
        held: Accumulator[Tallies],
        declared: tuple[Counter, ...],
    ) -> None:
        self._function, self._held, self._declared = function, held, declared

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tally, noted = Tally(self._declared), PartitionNote(batches)
        yield from self._function(iter(noted), tally)
        self._held.add({origin(noted.partition): tally.states})


class _InRows:
    """The same for rows of an RDD, whose partitions have the numbers of their tasks."""

    def __init__(
        self, function: CountingFunction[Any], held: Accumulator[Tallies], declared: tuple[Counter, ...]
    ) -> None:
        self._function, self._held, self._declared = function, held, declared

    def __call__(self, rows: Iterable[Any]) -> Iterator[Any]:
        tally = Tally(self._declared)
        yield from self._function(iter(rows), tally)
        self._held.add({origin(None): tally.states})
