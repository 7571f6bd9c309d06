"""Frames that all workers get whole: collected and broadcast once, destroyed when the run ends."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from common.engine.handle import Engine
from common.runs.inputs import ReadInputs
from common.runs.job import Job
from common.runs.job_calls import calling, frame_of
from common.settings.job import JobSettings
from common.tuning.decision import Decision
from common.tuning.facts import Facts


def share(
    job: Job[Any],
    settings: JobSettings,
    decision: Decision,
    frames: ReadInputs,
    *,
    facts: Facts,
    engine: Engine,
    stack: ExitStack,
) -> None:
    """Broadcast what the job wants all workers to have, into `frames.shared`.

    Args:
        job: The declaration.
        settings: The job's; with `explain` the tables are empty, since nothing runs.
        decision: What was decided.
        frames: The inputs.
        facts: What is known of the engine.
        engine: The session's.
        stack: Destroys them, however the run ends.

    Raises:
        StrategyError: a table takes more memory than it may.

    Plan:
        An action for each table.
    """
    with calling(job, "share"):
        wanted = job.share(frames, settings, decision)
    if not wanted:
        return
    from common.engine.broadcast_tables import broadcast_table

    engine.describe(f"{job.name}: broadcast")
    for name, table in wanted.items():
        rows = frame_of(job, "share", table.rows)
        frames.shared[name] = stack.enter_context(
            broadcast_table(
                rows.limit(0) if settings.explain else rows,
                workers=facts.python_workers,
                max_bytes=table.max_bytes,
            )
        )
