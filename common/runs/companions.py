"""Folders beside an output that belong to it, such as OUTPUT.rejects: published with it, or not at all."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from types import TracebackType
from typing import Literal, Self

from common.core.errors import OutputExistsError
from common.engine.storage import Storage
from common.runs.overlap import refuse_overlap
from common.runs.recovery import (
    BAD_ROWS,
    REJECTS,
    RUN_FILE,
    discard,
    retire,
    run_of,
    take_back,
    writable,
)
from common.runs.staging import StagedOutput
from common.runs.targets import Target

_LOG = logging.getLogger("saltpan.run")

__all__ = ["BAD_ROWS", "REJECTS", "Companion", "publish_together"]


class Companion:
    """The folder OUTPUT.SUFFIX of one run: there only when the run has something to put in it.

    It is published just before its output, and taken back when that fails. The run's id is in a file of both,
    so that whoever reads in the very moment between can see that they are not of one run; what a killed run
    leaves is taken back or finished by the next one (see `recover`), under the output's lock.

    Args:
        output: The output it belongs to, entered before and left after.
        suffix: `REJECTS` or `BAD_ROWS`.
        run_id, mode, storage, inputs: As for the output.

    Attributes:
        path: The folder, as typed.
        staging_path: The folder for the engine's writer.
        rows: How many are staged; a folder without any is not published.

    Raises:
        OutputExistsError: it exists and mode is "error".
    """

    def __init__(
        self,
        output: StagedOutput,
        suffix: str,
        *,
        run_id: str,
        mode: Literal["error", "overwrite"],
        storage: Storage,
        inputs: Sequence[str] = (),
    ) -> None:
        self.path = f"{output.given.rstrip('/')}{suffix}"
        self._output, self._run_id, self._storage = output, run_id, storage
        self._target = Target.of(self.path)
        self._target.check(run_id)
        refuse_overlap(self.path, inputs)
        if mode == "error" and self.exists:
            raise OutputExistsError(
                "output", self.path, expected="a new folder", got="one that is there already",
                hint="add --mode overwrite to replace it with its output, or move it away",
            )  # fmt: skip
        self.staging_path = self._target.staging(run_id)
        self.rows = 0

    @property
    def is_staged(self) -> bool:
        """True when there is something to publish."""
        return self.rows > 0

    @property
    def exists(self) -> bool:
        """True when a folder of that name is there."""
        return self._storage.exists(self._target.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        discard(self.staging_path, storage=self._storage)
        if not self._output.published:
            take_back(self._target, self._run_id, storage=self._storage)
        elif self._storage.exists(self._target.old(self._run_id)):
            retire(self._target, self._run_id, storage=self._storage)

    def files(self) -> list[str]:
        """The data files that are staged."""
        entries = self._storage.children(self.staging_path)
        return [entry.path for entry in entries if entry.name.startswith("part-")]

    def restart(self) -> None:
        """Forget what was staged, for an engine that writes once more."""
        discard(self.staging_path, storage=self._storage)
        self.rows = 0

    def mark(self, content: bytes) -> None:
        """Name the run in what is staged."""
        self._storage.write(f"{self.staging_path}/{RUN_FILE}", content)

    def swap(self) -> None:
        """Put what was staged in the place of the former folder; of a run with nothing staged, take it away.

        Raises:
            OutputUnwritableError: A folder may not be renamed.
        """
        with writable(self._target):
            if self.exists:
                self._storage.rename(self._target.path, target=self._target.old(self._run_id))
            if self.is_staged:
                self._storage.rename(self.staging_path, target=self._target.path)


def made_by_a_run(output: StagedOutput, suffix: str, *, storage: Storage) -> bool:
    """True when a former run has left such a folder, which a new output makes stale."""
    return run_of(Target.of(f"{output.given.rstrip('/')}{suffix}").path, storage=storage) is not None


def publish_together(output: StagedOutput, companions: Sequence[Companion], *, run_id: str, job: str) -> None:
    """Publish an output and what belongs to it.

    Raises:
        SuiteError: as `StagedOutput.publish`; the companions are taken back when their contexts are left.
    """
    concerned = [companion for companion in companions if companion.is_staged or companion.exists]
    if concerned:
        mark = json.dumps({"run_id": run_id, "job": job}).encode()
        output.mark(mark)
        for companion in concerned:
            if companion.is_staged:
                companion.mark(mark)
        for companion in concerned:
            companion.swap()
    output.publish()
    for companion in concerned:
        if companion.is_staged:
            _LOG.info("rejected: %s rows in %s", f"{companion.rows:,}", companion.path)
