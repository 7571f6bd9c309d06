"""How far the running Spark jobs are, told to a callback as one line of text."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

# The polling form; on Connect the server reports by itself.
REQUIRES = frozenset({"classic"})

POLL_SECONDS = 0.5

_LOG = logging.getLogger("saltpan.engine")
Update = Callable[[str], None]


class Stage(NamedTuple):
    """One stage of the running jobs, in tasks."""

    tasks: int
    done: int
    running: bool


@contextlib.contextmanager
def reporting(spark: SparkSession, update: Update) -> Iterator[None]:
    """Tell `update` how far Spark is, about twice a second, while the block runs.

    Nothing is told while nothing runs. Never raises into the block, also when the JVM is gone.

    Args:
        spark: A classic or a Connect session.
        update: Takes a line such as "stage 3 of 5 · 120 of 365 tasks (33 %) · 12 s"; called in another
            thread on classic Spark.
    """
    with _connect(spark, update) if _is_connect(spark) else _classic(spark, update):
        yield


def _is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def describe(stages: Iterable[Stage], *, seconds: float) -> str:
    """The line for these stages of the running jobs; empty when there are none.

    A stage that Spark has not planned yet counts with the tasks it is known to have; the percentage is that
    of tasks, and never 100 while something runs.

    >>> describe([Stage(365, 365, False), Stage(200, 35, True), Stage(1, 0, False)], seconds=12.4)
    'stage 2 of 3 · 400 of 566 tasks (70 %) · 12 s'
    """
    known = list(stages)
    tasks = sum(stage.tasks for stage in known)
    if not tasks:
        return ""
    done = sum(min(stage.done, stage.tasks) for stage in known)
    finished = sum(stage.done >= stage.tasks for stage in known)
    current = min(finished + 1, len(known))
    percent = min(99, 100 * done // tasks)
    return f"stage {current} of {len(known)} · {done} of {tasks} tasks ({percent} %) · {_duration(seconds)}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class _Poller:
    """Asks the status tracker in a thread of its own until it is told to stop."""

    def __init__(self, spark: SparkSession, update: Update) -> None:
        self._spark = spark
        self._update = update
        self._started: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spark-progress", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(2 * POLL_SECONDS)

    def _run(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            try:
                self._tell(_running_stages(self._spark.sparkContext.statusTracker()))
            except Exception as problem:  # noqa: BLE001  py4j raises many kinds when the JVM is gone; the job tells
                _LOG.debug("progress ends: %s", type(problem).__name__)
                return

    def _tell(self, stages: list[Stage]) -> None:
        if not stages:
            self._started = None
            return
        self._started = self._started or time.monotonic()
        text = describe(stages, seconds=time.monotonic() - self._started)
        if text and not self._ended.is_set():
            self._update(text)


def _running_stages(tracker: StatusTracker) -> list[Stage]:
    """All stages of the jobs that run now, those that wait as well, but not those that Spark skips."""
    active = set(tracker.getActiveStageIds())
    found: dict[int, Stage] = {}
    for job_id in tracker.getActiveJobsIds():
        job = tracker.getJobInfo(job_id)
        ids = sorted(job.stageIds) if job is not None else []
        first_active = min(active.intersection(ids), default=0)
        for stage_id in ids:
            info = tracker.getStageInfo(stage_id)
            if info is None:
                continue
            stage = Stage(info.numTasks, info.numCompletedTasks, stage_id in active)
            # Parents have lower numbers: what is neither done nor active before an active stage is skipped.
            if stage.running or stage.done >= stage.tasks or stage_id > first_active:
                found[stage_id] = stage
    return list(found.values())


@contextlib.contextmanager
def _classic(spark: SparkSession, update: Update) -> Iterator[None]:
    poller = _Poller(spark, update)
    poller.start()
    try:
        yield
    finally:
        poller.stop()


@contextlib.contextmanager
def _connect(spark: SparkSession, update: Update) -> Iterator[None]:
    started: dict[str, float] = {}

    def handler(
        stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        del inflight_tasks
        begun = started.setdefault(operation_id or "", time.monotonic())
        told = [Stage(stage.num_tasks, stage.num_completed_tasks, not stage.done) for stage in stages or ()]
        text = "" if done else describe(told, seconds=time.monotonic() - begun)
        if text:
            try:
                update(text)
            except Exception:  # noqa: BLE001  this runs inside the query's own call and must not stop it
                _LOG.debug("progress could not be shown", exc_info=True)

    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)
