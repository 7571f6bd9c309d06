"""What is left to do once the rows are made: counters and what they forbid, and notes for the next run."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import Observation

from common.core.files import replace_file
from common.engine.observations import observed
from common.runs.job import Counted, Job
from common.runs.job_calls import calling
from common.runs.record import RunRecord
from common.settings.job import JobSettings
from common.transforms.counters import recordable
from common.tuning.decision import Decision

_LOG = logging.getLogger("saltpan.run")


def settle(
    job: Job[Any], counted: Counted, settings: JobSettings, record: RunRecord, *, apart: bool = False
) -> Mapping[str, Any]:
    """Put what was counted into the record, say it, and let the job refuse the answer.

    Args:
        job: The declaration.
        counted: Its answer.
        settings: The job's.
        record: Takes the counters.
        apart: Count by `Counted.counts`, since the answer has not run, or not as a whole.

    Returns:
        The counters; NULL (nothing to sum up) is 0 where Spark only observed.

    Raises:
        SuiteError: the job refuses the answer.

    Plan:
        No action, since the answer's own has observed it; with `apart`, or where that is not right, one.
    """
    if apart and counted.counts is not None:
        found = _without_null(counted.counts.collect()[0].asDict())
    elif isinstance(counted.observation, Observation):
        found = _observed(counted, counted.observation)
    else:
        reading = counted.observation.settle()
        found = dict(reading.values)
        record.miscounted.update(reading.differing)
        for name, told in reading.differing.items():
            _LOG.info("counted: %s: a plain accumulator says %s (%s)", name, told["naive"], told["why"])
    found |= counted.known
    record.counters.update({name: recordable(value) for name, value in found.items()})
    if found:
        shown = {name: f"{value:,}" if isinstance(value, int) else value for name, value in found.items()}
        _LOG.info("counted: %s", ", ".join(f"{name} {value}" for name, value in shown.items()))
    with calling(job, "judge"):
        job.judge(found, lambda: _examples(counted), settings)
    return found


def distrust(counted: Counted | None, why: str) -> None:
    """Have the numbers counted anew: what the answer's action saw is not all."""
    if counted is not None and not isinstance(counted.observation, Observation):
        counted.observation.distrust(why)


def _observed(counted: Counted, observation: Observation) -> dict[str, Any]:
    """What was observed; where Spark left that part out of the plan, counted apart or not at all."""
    seen = observed(counted.rows, observation)
    if seen is None and counted.counts is not None:
        seen = counted.counts.collect()[0].asDict()
    if seen is None:
        _LOG.warning("not counted: Spark has left what is counted out of its plan")
    return _without_null(seen or {})


def _without_null(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value or 0 for name, value in row.items()}


def _examples(counted: Counted) -> Sequence[Mapping[str, Any]]:
    return [row.asDict() for row in counted.examples.collect()] if counted.examples is not None else []


def keep_notes(job: Job[Any], settings: JobSettings, decision: Decision) -> None:
    """Write the files that the job wants to find again; one that cannot be written is a warning."""
    with calling(job, "remember"):
        notes = job.remember(settings, decision)
    for path, text in notes.items():
        try:
            replace_file(Path(path), text)
        except OSError as error:
            _LOG.warning("not kept for the next run: %s (%s)", path, error.strerror or error)
        else:
            _LOG.info("kept for the next run: %s", path)
