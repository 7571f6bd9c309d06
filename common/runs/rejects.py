"""Rows that could not be used: beside the output, in its format, and published with it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack

from pyspark.sql import DataFrame

from common.engine.storage import Storage
from common.engine.writer import write_rows
from common.runs.staging import StagedOutput
from common.settings.job import JobSettings

_LOG = logging.getLogger("saltpan.run")


def rejects_path(output: str) -> str:
    """Where the rejects of an output are.

    >>> rejects_path("hdfs:///out/flights/")
    'hdfs:///out/flights.rejects'
    """
    return f"{output.rstrip('/')}.rejects"


class StagedRejects:
    """The folder OUTPUT.rejects of one run: there only when there is something in it.

    Attributes:
        path: The folder, once it was written.
    """

    def __init__(
        self,
        settings: JobSettings,
        *,
        run_id: str,
        storage: Storage,
        inputs: Sequence[str],
        stack: ExitStack,
    ) -> None:
        """Take the lock and make the place ready; `stack` gives both back.

        Raises:
            SuiteError: see `StagedOutput`.
        """
        self._settings, self._storage = settings, storage
        self._target = rejects_path(settings.output or "")
        self._staged = stack.enter_context(
            StagedOutput(self._target, run_id=run_id, mode=settings.mode, storage=storage, inputs=inputs)
        )
        self.path: str | None = None

    def write(self, rows: DataFrame, *, count: int) -> None:
        """Stage the rows; none are written only where former ones would stay otherwise.

        Plan:
            An action, unless there is nothing to write.
        """
        if not count and not self._storage.exists(self._storage.resolve(self._target)):
            return
        self._staged.restart()
        write_rows(rows, self._staged.staging_path, file_format=self._settings.output_format)
        self.path = self._target

    def publish(self, *, count: int) -> None:
        """Put what was staged in its place."""
        if self.path is None:
            return
        self._staged.publish()
        _LOG.info("rejected: %s rows in %s", f"{count:,}", self.path)
