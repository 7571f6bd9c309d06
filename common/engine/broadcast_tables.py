"""Broadcast variables that hold a table: collected once, guarded by size, gone as soon as they may be."""

from __future__ import annotations

import contextlib
import logging
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from common.core.errors import EngineError
from common.transforms.lookup_table import payload
from common.tuning.lookup import refuse_decoded

if TYPE_CHECKING:
    import pyarrow as pa

REQUIRES = frozenset({"classic", "broadcast_variable"})

_LOG = logging.getLogger("saltpan.run")


class BroadcastTable:
    """A table in a broadcast variable, as a context manager: leaving it destroys the variable.

    Leaving twice, after an error, or when the session is gone already, is harmless: Spark itself would delete
    the driver's file a second time and fail.

    Args:
        spark: The session.
        rows: A table whose first column is the hash that it is searched by.
        workers: Python workers of one executor, each of which may decode it.
        max_bytes: What the decoded copies of one executor may take.

    Raises:
        StrategyError: they would take more; nothing was pickled.
    """

    def __init__(self, spark: SparkSession, rows: pa.Table, *, workers: int, max_bytes: int) -> None:
        refuse_decoded(rows.nbytes, workers=workers, max_bytes=max_bytes)
        self.row_count, self.decoded_bytes = rows.num_rows, rows.nbytes
        self._variable: Any = spark.sparkContext.broadcast(payload(rows))

    @property
    def variable(self) -> Any:
        """The variable, for a function that goes to workers.

        Raises:
            EngineError: it was destroyed.
        """
        if self._variable is None:
            expected, hint = "one that still exists", "run the action before its table is closed"
            raise EngineError(
                "broadcast", "variable", expected=expected, got="one that was destroyed", hint=hint
            )
        return self._variable

    def close(self) -> None:
        """Destroy the variable on the driver and on all executors."""
        variable, self._variable = self._variable, None
        if variable is None:
            return
        # The file is gone, or the JVM: then so is the variable.
        with contextlib.suppress(OSError, Py4JError):
            variable.destroy()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def broadcast_table(rows: DataFrame, *, workers: int, max_bytes: int) -> BroadcastTable:
    """Collect a frame and broadcast it.

    Args:
        rows: Its first column is the hash that it is searched by: bigint without NULL.
        workers: Python workers of one executor.
        max_bytes: What their decoded copies may take.

    Raises:
        StrategyError: they would take more.

    Plan:
        One action. All rows in the driver's memory, about three times for a moment.
    """
    table = rows.toArrow()
    made = BroadcastTable(rows.sparkSession, table, workers=workers, max_bytes=max_bytes)
    _LOG.debug("broadcast: %s rows, %s bytes decoded", made.row_count, made.decoded_bytes)
    return made


def workers_per_executor(spark: SparkSession, *, core_count: int) -> int:
    """How many Python workers one executor runs at a time, at most.

    Args:
        spark: The session.
        core_count: All task slots: those of the one process in local mode.
    """
    conf = spark.sparkContext.getConf()
    cores = conf.get("spark.executor.cores")
    if (spark.sparkContext.master or "").startswith("local") or cores is None:
        return max(1, core_count)
    return max(1, int(cores) // int(conf.get("spark.task.cpus", "1") or "1"))
