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
    run_of,
    take_back,
    writable,
)
from common.runs.staging import StagedOutput
from common.runs.targets import Target, resolve

_LOG = logging.getLogger("saltpan.run")

__all__ = ["BAD_ROWS", "REJECTS", "Companion", "publish_together"]


class Companion:
    """The folder OUTPUT.SUFFIX of one run: there only when the run has something to put in it.

    It is published just before its output, and taken back when that fails. The run's id is in a file of both,
    so that whoever reads in the very moment between can see that they are not of one run; what a killed run
    leaves is taken back or finished by the next one (see `recover`), under the output's lock. It lies beside
    the folder that a linked output leads to.

    Args:
        output: The output it belongs to, entered before and left after.
        suffix: `REJECTS` or `BAD_ROWS`.
        run_id, mode, storage, inputs: As for the output.

    Attributes:
        path: The folder, for messages.
        staging_path: The folder for the engine's writer.
        rows: How many are staged; a folder without any is not published.

    Raises:
        UsageError: it overlaps an input.
        OutputExistsError: it exists, and mode is "error" or no run has written it.
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
        self._output, self._run_id, self._storage = output, run_id, storage
        self._place = output.target.companion(suffix)
        self._former = output.target.companion_old(suffix, run_id)
        self._suffix = suffix
        self.path = _shown(output.target, suffix)
        self.staging_path = output.target.companion_staging(suffix, run_id)
        self.rows = 0
        refuse_overlap(self._place, inputs)
        self._refuse_existing(mode)

    def _refuse_existing(self, mode: Literal["error", "overwrite"]) -> None:
        if not self.exists:
            return
        if run_of(self._place, storage=self._storage) is None:
            got, hint = f"what no run has written (it has no {RUN_FILE})", "move it away"
        elif mode == "error":
            got, hint = "one that is there already", "add --mode overwrite to replace it with its output"
        else:
            return
        raise OutputExistsError("output", self.path, expected="a new folder", got=got, hint=hint)

    @property
    def is_staged(self) -> bool:
        """True when there is something to publish."""
        return self.rows > 0

    @property
    def exists(self) -> bool:
        """True when something of that name is there."""
        return self._storage.exists(self._place)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        discard(self.staging_path, storage=self._storage)
        if self._output.published:
            discard(self._former, storage=self._storage)
        else:
            take_back(self._output.target, self._suffix, self._run_id, storage=self._storage)

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
        with writable(self._output.target):
            if self.exists:
                self._storage.rename(self._place, target=self._former)
            if self.is_staged:
                self._storage.rename(self.staging_path, target=self._place)


def _shown(output: Target, suffix: str) -> str:
    """The companion as the user would type it, where that leads to it."""
    typed = f"{output.given.rstrip('/')}{suffix}"
    return typed if resolve(typed) == output.companion(suffix) else output.companion(suffix)


def made_by_a_run(output: StagedOutput, suffix: str, *, storage: Storage) -> bool:
    """True when a former run has left such a folder, which a new output makes stale."""
    return run_of(output.target.companion(suffix), storage=storage) is not None


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
