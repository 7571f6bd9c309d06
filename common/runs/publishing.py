"""The end of a run: its rows printed, or published with what belongs to them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from common.core.errors import JobError
from common.engine.storage import Storage
from common.engine.writer import write_rows
from common.runs.aftermath import distrust, settle
from common.runs.companions import BAD_ROWS, REJECTS, Companion, made_by_a_run, publish_together
from common.runs.job import Counted, Job, Rejects
from common.runs.presentation import ALL_UP_TO_ROWS, displayed, present
from common.runs.record import RunRecord
from common.runs.staging import StagedOutput
from common.settings.command_line import Command
from common.settings.job import JobSettings


@dataclass
class Writing:
    """An output that is being made, with the folders that belong to it.

    Attributes:
        bad_rows: What `set_aside` says of those of the inputs.
    """

    job: Job[Any]
    settings: JobSettings
    record: RunRecord
    output: StagedOutput
    companions: dict[str, Companion] = field(default_factory=dict)
    bad_rows: list[dict[str, Any]] = field(default_factory=list)


def open_writing(
    job: Job[Any],
    command: Command,
    record: RunRecord,
    *,
    output: StagedOutput,
    storage: Storage,
    stack: ExitStack,
) -> Writing:
    """Make the places ready for what the run may have to put beside its output, and for what it makes stale.

    Raises:
        OutputExistsError: one is there, and nothing may be overwritten.
    """
    settings = command.settings
    wanted = {REJECTS: job.has_rejects(settings), BAD_ROWS: settings.bad_rows == "reject"}
    paths = [path for request in command.inputs for path in request.paths]
    writing = Writing(job, settings, record, output)
    for suffix, is_wanted in wanted.items():
        if is_wanted or made_by_a_run(output, suffix, storage=storage):
            companion = Companion(
                output,
                suffix,
                run_id=record.run_id,
                mode=settings.mode,
                storage=storage,
                inputs=paths,
            )
            writing.companions[suffix] = stack.enter_context(companion)
    return writing


def publish(answer: DataFrame, writing: Writing, counted: Counted | None) -> int:
    """Write the rows and what was rejected, and publish both; return how many rows there are.

    Plan:
        An action; one more where rows were rejected.
    """
    job, settings, record = writing.job, writing.settings, writing.record
    display = displayed(job, settings, answer)
    rows = write_rows(
        answer,
        writing.output.staging_path,
        file_format=settings.output_format,
        file_count=settings.output_files,
        order=display.order,
        descending=display.descending,
    )
    found = settle(job, counted, settings, record) if counted else {}
    if counted and counted.rejects and job.has_rejects(settings):
        _stage_rejects(counted.rejects, writing, count=found[counted.rejects.counter])
    publish_together(writing.output, list(writing.companions.values()), run_id=record.run_id, job=job.name)
    record.output = {"path": settings.output, "format": settings.output_format, "mode": settings.mode}
    for key, suffix in (("rejects", REJECTS), ("bad_rows", BAD_ROWS)):
        if suffix in writing.companions and writing.companions[suffix].is_staged:
            record.output[key] = writing.companions[suffix].path
    if writing.bad_rows:
        record.output["bad_rows_by_reason"] = writing.bad_rows
    return rows


def _stage_rejects(rejects: Rejects, writing: Writing, *, count: int) -> None:
    if not count:
        return
    place = writing.companions[REJECTS]
    written = write_rows(rejects.rows, place.staging_path, file_format=writing.settings.output_format)
    if written != count:
        raise JobError(
            "rejects",
            writing.job.name,
            expected=f"the {count:,} rows that were counted",
            got=f"{written:,} rows",
            hint="an input may have changed while the run read it; run it again",
        )
    place.rows = count


def restart(writing: Writing | None, counted: Counted | None) -> None:
    """Take back what an attempt that failed has left."""
    distrust(counted, "an attempt failed")
    if writing is not None:
        writing.output.restart()
        if REJECTS in writing.companions:
            writing.companions[REJECTS].restart()


def print_rows(
    answer: DataFrame, job: Job[Any], settings: JobSettings, record: RunRecord, *, counted: Counted | None
) -> int:
    """Print the rows and return how many there are.

    Plan:
        An action; one more where what is counted needs all rows, and not all are printed.
    """
    apart = counted is not None and counted.counts is not None
    if counted and apart:
        settle(job, counted, settings, record, apart=True)
    display = displayed(job, settings, answer)
    rows = present(answer, style=settings.format, display=display)
    if rows > ALL_UP_TO_ROWS and not display.order:
        distrust(counted, "the rows to print were read first, which were not all")
    if counted and not apart:
        settle(job, counted, settings, record)
    return rows
