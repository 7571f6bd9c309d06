"""The evidence of levelness in a run's record: how the answer's work spread over tasks, stage by stage."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from common.engine.handle import Engine
from common.engine.stage_metrics import StageTasks, stage_mark, stages_since
from common.runs.record import RunRecord
from common.tuning.levelness import StageLevels, StageRun, replayed_seconds, stage_levels, waves

KEPT_STAGES = 50
REPLAYED_CORES = (2, 16, 100)

_LOG = logging.getLogger("saltpan.run")


@contextmanager
def stages_recorded(engine: Engine, record: RunRecord) -> Iterator[None]:
    """Record the stages that run within, and say when one task held one of them up.

    Of a block that fails nothing is recorded. It never fails itself: without evidence the record says why.
    """
    if engine.kind != "classic":
        record.stages_missing = f"not available on {engine.kind}"
        yield
        return
    mark = stage_mark(engine.spark)
    yield
    stages = stages_since(engine.spark, mark)
    if stages is None:
        record.stages_missing = "Spark did not tell; --debug says why"
        return
    _record(stages, record)


def _record(stages: Sequence[StageTasks], record: RunRecord) -> None:
    levels = [_levels(stage) for stage in stages]
    longest = sorted(levels, key=lambda it: it.seconds.total, reverse=True)
    kept = {(it.stage, it.attempt) for it in longest[:KEPT_STAGES]}
    record.stages = [it.record() for it in levels if (it.stage, it.attempt) in kept]
    tasks = waves(StageRun(it.submitted, it.completed, it.task_seconds) for it in stages)
    record.replayed_seconds = {
        str(cores): round(replayed_seconds(tasks, cores), 3) for cores in REPLAYED_CORES
    }
    _say(levels, record)


def _levels(stage: StageTasks) -> StageLevels:
    return stage_levels(
        stage.stage_id,
        stage.task_seconds,
        stage.shuffle_read_bytes,
        name=stage.name,
        attempt=stage.attempt,
        failed_tasks=stage.failed_tasks,
        input_bytes=stage.input_bytes,
        shuffle_write_bytes=stage.shuffle_write_bytes,
        spilled_bytes=stage.spilled_bytes,
    )


def _say(levels: Sequence[StageLevels], record: RunRecord) -> None:
    uneven = max((it for it in levels if it.is_uneven), key=lambda it: it.seconds.max, default=None)
    if uneven is not None:
        _LOG.info("%s: one key may hold too many rows [K3-K8]", uneven.line())
    longest = max(levels, key=lambda it: it.seconds.max, default=None)
    if longest is not None and longest is not uneven:
        _LOG.debug("%s", longest.line())
    replayed = ", ".join(f"{seconds:.1f} s on {cores}" for cores, seconds in record.replayed_seconds.items())
    _LOG.debug("%d stages; their tasks replayed: %s cores", len(levels), replayed)
