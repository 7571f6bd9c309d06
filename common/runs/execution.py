"""From argv to an exit code, whatever happens between."""

from __future__ import annotations

import logging
import os
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

from common.core import console
from common.core.errors import ExitCode, SuiteError, UsageError
from common.core.logs import bind_run, configure_logs
from common.core.units import format_seconds
from common.engine.failures import translate
from common.engine.stderr import separate_stderr
from common.runs.explanation import counted
from common.runs.job import Job
from common.runs.job_calls import check_declaration
from common.runs.phases import Run, go
from common.runs.record import RunRecord, outcome_of
from common.runs.signals import terminating_signals
from common.settings.command_line import Command, parse_command
from common.settings.job import JobSettings

_LOG = logging.getLogger("saltpan.run")


def run_job(job: Job[Any], argv: Sequence[str] | None = None) -> int:
    """Run a job by its command line.

    Args:
        job: The declaration.
        argv: The words after the command; None for the process's own.

    Returns:
        The exit code: 0 ok; 1 a bug; 2 what was typed; 3 what the data holds; 4 the engine; 5 locked;
        6 --verify found a difference; 130 and 143 for signals.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    separate_stderr(os.environ)
    with terminating_signals():
        try:
            command = _understand(job, arguments)
            if command is None:
                return int(ExitCode.OK)
            configure_job_logs(command.settings)
            record = RunRecord.start(job.name, runs_dir=command.settings.runs_dir, arguments=arguments)
        except SuiteError as error:
            console.say(f"ERROR: {error}")
            return int(error.exit_code)
        bind_run(record.run_id)
        return _recorded(Run(job, command, record))


def _understand(job: Job[Any], arguments: Sequence[str]) -> Command | None:
    check_declaration(job)
    return parse_command(
        job.settings,
        job=job.name,
        summary=job.summary,
        inputs=job.inputs,
        argv=arguments,
        environ=os.environ,
    )


def configure_job_logs(settings: JobSettings) -> None:
    """The log as the job's flags have it."""
    verbosity = 1 if settings.verbose or settings.debug else -1 if settings.quiet else 0
    configure_logs(format=settings.log_format, verbosity=verbosity)


def _recorded(run: Run) -> int:
    """Run, and write down how it ended, whatever way that is."""
    started = time.monotonic()
    ended: BaseException | None = None
    try:
        go(run)
    except KeyboardInterrupt as interrupt:
        ended = interrupt
    except Exception as problem:  # noqa: BLE001  the one place where every failure becomes a sentence and a code
        ended = problem if isinstance(problem, SuiteError) else translate(problem) or problem
        if run.settings.debug:
            _LOG.error("%s", "".join(traceback.format_exception(problem)))
    try:
        run.record.finish(ended)
    except UsageError as unwritten:  # the disk filled up, or the folder went: the job's own news comes first
        _LOG.error("%s", unwritten)
        ended = ended or unwritten
    _say_how_it_ended(run, ended, took=format_seconds(time.monotonic() - started))
    return int(outcome_of(ended)[1])


def _say_how_it_ended(run: Run, ended: BaseException | None, *, took: str) -> None:
    record = run.record
    if isinstance(ended, SuiteError):
        _LOG.error("%s", ended)
    elif isinstance(ended, KeyboardInterrupt):
        published = (
            f"{record.output['path']} was published before" if record.output else "nothing was published"
        )
        _LOG.warning("interrupted after %s: %s", took, published)
    elif ended is not None:
        what = " ".join(f"{type(ended).__name__}: {ended}".split())[:500]
        hint = f"run again with --debug and report it; the record is {record.path}"
        _LOG.error("[INTERNAL] this should not have happened: %s. Hint: %s.", what, hint)
    elif record.output:
        rows = counted(record.rows_out or 0, "row")
        _LOG.info("published %s to %s in %s", rows, record.output["path"], took)
    elif record.rows_out is not None:
        _LOG.info("%s in %s", counted(record.rows_out, "row"), took)
    _LOG.debug("record: %s", record.path)
