"""Calls into a job's own methods: what goes wrong there is its author's to mend, by file and line."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame

from common.core.errors import JobError, SuiteError
from common.engine.failures import translate
from common.runs.job import Job
from common.settings.job import JobSettings


@contextmanager
def calling(job: Job[Any], method: str) -> Iterator[None]:
    """Turn an exception of a user's job into one sentence with its place; those of the suite's jobs pass.

    Raises:
        JobError: the method failed in Python, not in Spark.
    """
    try:
        yield
    except SuiteError:
        raise
    except Exception as error:
        if translate(error) is not None or type(job).__module__.startswith("jobs."):
            raise
        got = f"{type(error).__name__}: {error}"
        raise JobError(
            "job", job.name, expected=f"a method {method} that ends well", got=got, hint=_place(error)
        ) from error


def _place(error: Exception) -> str:
    """The innermost line that is not the suite's or a library's, else the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame
        for frame in frames
        if "site-packages" not in frame.filename and "/common/" not in frame.filename
    ]
    frame = (own or list(frames))[-1]
    return f"line {frame.lineno} of {frame.filename} is `{(frame.line or '').strip()}`"


def frame_of(job: Job[Any], method: str, value: object) -> DataFrame:
    """The DataFrame that a method returned.

    Raises:
        JobError: it returned something else.
    """
    if isinstance(value, DataFrame):
        return value
    got = "None" if value is None else f"a {type(value).__name__}"
    hint = "end it with `return`" if value is None else None
    raise JobError("job", job.name, expected=f"{method} to return a DataFrame", got=got, hint=hint)


def check_declaration(job: Job[Any]) -> None:
    """Make sure that the class says what it must.

    Raises:
        JobError: no settings, no plain method, or flags that all jobs share declared anew.
    """
    kind = type(job)
    settings = getattr(kind, "settings", None)
    if not (isinstance(settings, type) and issubclass(settings, JobSettings)):
        hint = "write `settings = JobSettings` if it has no flags of its own"
        raise JobError("job", job.name, expected="an attribute `settings`", got=repr(settings), hint=hint)
    if kind.plain is Job.plain:
        raise JobError("job", job.name, expected="a method plain(self, inputs, settings)", got="none")
    own = {
        name
        for base in settings.__mro__
        if base is not JobSettings
        for name in vars(base).get("__annotations__", {})
    }
    taken = sorted(own & ({*JobSettings.model_fields, *job.inputs}))
    if taken and settings is not JobSettings:
        hint = "every job has this flag; name yours otherwise"
        raise JobError(
            "setting", ", ".join(taken), expected="names of the job's own", got="shared ones", hint=hint
        )
