"""A job's file, found by the job's name or by path, and the job in it, without running it."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from common.core.errors import JobError, PathAbsentError, SuiteError, UnknownNameError, did_you_mean
from common.engine.shadowing import check_beside_job
from common.runs.job import Job
from common.settings.command_line import Command, parse_command

_LOADED_AS = "saltpan_submitted_job"


@dataclass(frozen=True)
class JobFile:
    """A job file and the jobs that it declares.

    Attributes:
        path: The file, absolute.
        jobs: What it declares, in its order.
    """

    path: Path
    jobs: tuple[Job[Any], ...]

    def understand(self, arguments: Sequence[str], *, environ: Mapping[str, str]) -> Command | None:
        """The job's command line; None when help was asked for, and printed.

        Which of several jobs runs is the file's own affair: the words have to suit one of them.

        Raises:
            UsageError: one thing is wrong.
            SeveralErrors: several things are wrong; each has its own sentence.
        """
        first: SuiteError | None = None
        for job in self.jobs:
            try:
                return parse_command(
                    job.settings,
                    job=job.name,
                    summary=job.summary,
                    inputs=job.inputs,
                    argv=arguments,
                    environ=environ,
                )
            except SuiteError as error:
                first = first or error
        raise first or _no_job(self.path)


def find_job(job: str) -> JobFile:
    """The file of a job of the suite, or of a path; it is imported, not run.

    Raises:
        UnknownNameError: no such job, or a file without one.
        PathAbsentError: no such file.
        JobError: the file cannot be imported, or runs when it is.
    """
    if job.endswith(".py") or "/" in job:
        path = Path(job)
        if not path.is_file():
            near = did_you_mean(path.name, [each.name for each in path.parent.glob("*.py")])
            raise PathAbsentError("job file", job, expected="a Python file", got="nothing there", hint=near)
    else:
        path = _of_suite(job)
    check_beside_job(path.resolve().parent)
    return JobFile(path.resolve(), _declared(path.resolve()))


def _of_suite(job: str) -> Path:
    spec = find_spec("jobs")
    folders = spec.submodule_search_locations if spec and spec.submodule_search_locations else []
    files = {path.stem: path for folder in folders for path in sorted(Path(folder).glob("[a-z]*.py"))}
    name = job.replace("-", "_")
    if name not in files:
        hint = did_you_mean(name, files) or "a job file of your own is given by its path, ./my_job.py"
        expected = f"one of {', '.join(sorted(files))}"
        raise UnknownNameError("job", job, expected=expected, got=repr(job), hint=hint)
    return files[name]


def _declared(path: Path) -> tuple[Job[Any], ...]:
    names = _imported(path)
    kinds = [kind for kind in names.values() if isinstance(kind, type) and issubclass(kind, Job)]
    own = [kind for kind in kinds if kind.__module__ == _LOADED_AS and hasattr(kind, "settings")]
    if not own:
        raise _no_job(path)
    return tuple(kind() for kind in dict.fromkeys(own))


def _imported(path: Path) -> dict[str, Any]:
    former, former_path = sys.argv, list(sys.path)
    sys.argv = [str(path), "--version"]  # a file that runs its job when imported does no work here
    sys.path.insert(0, str(path.parent))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return runpy.run_path(str(path), run_name=_LOADED_AS)
    except SystemExit as end:
        guard = 'run_job(…) below `if __name__ == "__main__":`'
        raise JobError("job file", str(path), expected=guard, got="a file that runs on import") from end
    except SuiteError:
        raise
    except Exception as error:  # whatever a user's file raises is told as that file's problem
        got = " ".join(f"{type(error).__name__}: {error}".split())
        raise JobError("job file", str(path), expected="Python that can be imported", got=got) from error
    finally:
        sys.argv = former
        sys.path[:] = former_path


def _no_job(path: Path) -> SuiteError:
    hint = "declare a class MyJob(Job[Settings]) and end with: raise SystemExit(run_job(MyJob()))"
    return UnknownNameError("job file", str(path), expected="a file with a job", got="none", hint=hint)
