"""Floor 5: the job protocol, run_job, the run record, staging and publishing.

What a job file imports: `from common.runs import Job, JobSettings, run_job`.
"""

from __future__ import annotations

import os
import sys

from common.core.errors import InstallationError
from common.engine.installation import find_packages

try:
    find_packages(os.environ)
except InstallationError as problem:  # before any import that would fail with a traceback
    sys.stderr.write(f"{problem}\n")
    raise SystemExit(int(problem.exit_code)) from None

from common.runs.execution import run_job
from common.runs.inputs import ReadInputs
from common.runs.job import Counted, Display, Examples, Inputs, Job, Rejects, Shared
from common.settings.job import Columns, Flag, JobSettings, Sql, Sqls
from common.tuning.decision import Decision
from common.tuning.facts import Facts

__all__ = [
    "Columns",
    "Counted",
    "Decision",
    "Display",
    "Examples",
    "Facts",
    "Flag",
    "Inputs",
    "Job",
    "JobSettings",
    "ReadInputs",
    "Rejects",
    "Shared",
    "Sql",
    "Sqls",
    "run_job",
]
