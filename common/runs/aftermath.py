"""What is left to do once the answer is out: counters, and notes for the next run."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from common.core.files import replace_file
from common.runs.job import Counted, Job
from common.runs.job_calls import calling
from common.runs.record import RunRecord
from common.settings.job import JobSettings
from common.tuning.decision import Decision

_LOG = logging.getLogger("saltpan.run")


def count(counted: Counted, record: RunRecord) -> None:
    """Put what was observed into the record, and say it; NULL (nothing to sum up) is 0.

    Plan:
        No action: the answer's own has observed it.
    """
    found = {name: value or 0 for name, value in counted.observation.get.items()}
    record.counters.update(found)
    if found:
        _LOG.info("counted: %s", ", ".join(f"{name} {value:,}" for name, value in found.items()))


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
