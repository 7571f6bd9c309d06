"""Counters of Python functions on engines without accumulators: the tally travels among the rows.

Each task ends with a row of its own that holds its tally; an observation collects these, and they are left
out again. The same tallies as an accumulator has, so that the same rule makes them right.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StructField, StructType

from common.core.errors import NotRunError
from common.engine.handle import is_connect
from common.engine.observations import observed
from common.engine.task_counters import TaskCounters
from common.transforms.counters import NOT_SEEN, OR_SETTLE, Counter, Readable, Reading, checked
from common.transforms.tallies import Tallies, Tally, gather, reading
from common.transforms.tally_batches import CountingFunction, PartitionNote, origin, with_partition

if TYPE_CHECKING:
    import pyarrow as pa

_TALLY, _TALLIES = "_saltpan_tally", "_saltpan_tallies"


def python_counters(spark: SparkSession, *declared: Counter) -> TaskCounters | RowCounters:
    """Counters for Python functions, by what the engine has.

    Raises:
        ParameterError: none, or two of one name.
    """
    return RowCounters(*declared) if is_connect(spark) else TaskCounters(spark, *declared)


class RowCounters(Readable):
    """Counters that Python functions add to in tasks, on any engine, for one run.

    Args:
        *declared: What to count; expressions are not looked at.

    Raises:
        ParameterError: none, or two of one name.
    """

    def __init__(self, *declared: Counter) -> None:
        self.declared = tuple(Counter(counter.name, counter.kind) for counter in checked(declared))
        self._observation = Observation()
        self._rows: DataFrame | None = None
        self._distrust: str | None = None

    def map_in_arrow(
        self, df: DataFrame, function: CountingFunction[pa.RecordBatch], schema: StructType
    ) -> DataFrame:
        """`df.mapInArrow`, with a tally beside the batches.

        Args:
            df: Rows for the function, by its columns.
            function: From batches and a tally to batches.
            schema: Of what it returns; its columns may be NULL afterwards.

        Raises:
            ParameterError: these counters are in use.

        Plan:
            Lazy. All columns go to Python, four bytes more for each row, one row more for each task; the
            driver holds a tally for each. Guideline D9.
        """
        if self._rows is not None:
            raise self._in_use()
        fields = [StructField(field.name, field.dataType) for field in schema.fields]
        wide = StructType([*fields, StructField(_TALLY, BinaryType())])
        self._rows = with_partition(df).mapInArrow(
            _WithTally(function, self.declared, to_arrow_schema(wide)), wide
        )
        seen = self._rows.observe(self._observation, F.collect_list(_TALLY).alias(_TALLIES))
        return seen.where(F.col(_TALLY).isNull()).drop(_TALLY)

    def distrust(self, why: str) -> None:
        """Note that what was observed is not all: its action failed, or read part of the rows."""
        self._distrust = why

    def read(self) -> Reading:
        """The numbers, and what a plain accumulator would say.

        Raises:
            NotRunError: no action has run, or not to its end.

        Plan:
            No action.
        """
        seen = None if self._rows is None else observed(self._rows, self._observation)
        found = None if seen is None or self._distrust else self._reading(seen[_TALLIES])
        if found is None:
            raise self._not_run(self._distrust or NOT_SEEN, hint=OR_SETTLE)
        return found

    def settle(self) -> Reading:
        """The numbers, after the action; where none were observed, by running the function once more.

        Raises:
            NotRunError: attached to nothing.

        Plan:
            No action where the first one was observed, else one.
        """
        try:
            return self.read()
        except NotRunError:
            if self._rows is None:
                raise
            rows = self._rows.select(_TALLY).where(F.col(_TALLY).isNotNull()).collect()
        return self._reading([row[0] for row in rows]) or Reading({}, {})

    def _reading(self, found: list[bytes]) -> Reading | None:
        kinds = {counter.name: counter.kind for counter in self.declared}
        tallies: Tallies = {}
        for payload in found:
            gather(kinds, tallies, pickle.loads(payload))
        return reading(kinds, tallies)


class _WithTally:
    """Runs in the worker: the function's batches, then one row that is only the tally."""

    def __init__(
        self, function: CountingFunction[pa.RecordBatch], declared: tuple[Counter, ...], schema: pa.Schema
    ) -> None:
        self._function, self._declared, self._schema = function, declared, schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        tally, noted = Tally(self._declared), PartitionNote(batches)
        for batch in self._function(iter(noted), tally):
            no_tally = pa.nulls(batch.num_rows, pa.binary())
            names = [*batch.schema.names, _TALLY]
            yield pa.RecordBatch.from_arrays([*batch.columns, no_tally], names=names)
        payload = pickle.dumps({origin(noted.partition): tally.states})
        last = [None] * (len(self._schema) - 1) + [payload]
        columns = [pa.array([value], field.type) for value, field in zip(last, self._schema, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, names=self._schema.names)
