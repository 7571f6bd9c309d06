"""What each stage and its tasks took, by Spark's own status store, which is there without its pages as well.

The store's records stay in the JVM. Functions that the JDK makes of their getters read a whole list into one
text, so that a stage of thousands of tasks costs as many calls as one of two.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from common.engine.handle import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REQUIRES = frozenset({"classic"})

# Events reach the store a little later than the answer reaches us.
WAIT_AT_MOST_SECONDS = 2.0
_RAN = frozenset({"COMPLETE", "FAILED"})
_STAGES, _TASKS = "org.apache.spark.status.StageDataWrapper", "org.apache.spark.status.TaskDataWrapper"
_GETTERS = (
    "executorRunTime",
    "shuffleLocalBytesRead",
    "shuffleRemoteBytesRead",
    "shuffleRecordsRead",
    "executorCpuTime",
    "jvmGcTime",
)

_LOG = logging.getLogger("saltpan.engine")


@dataclass(frozen=True)
class StageTasks:
    """One attempt of a stage that ran; its lists have one entry for each task that succeeded.

    Attributes:
        stage_id: Spark's number of it.
        attempt: 0, or how often it was tried before.
        name: What the run called its work, else Spark's own name.
        task_count: Tasks that it was planned with.
        failed_tasks: Of all attempts of its tasks.
        task_seconds: Time that a task worked (executor run time, in whole milliseconds), not what it waited.
        shuffle_read_bytes: Bytes that a task read from a shuffle.
        shuffle_read_rows: Records that a task read from a shuffle.
        task_cpu_seconds: Of `task_seconds` what its thread ran: without waits for a core, for the garbage
            collector and for files; without what native libraries use in threads of their own.
        task_gc_seconds: Collections of garbage in the executor while the task ran, whoever made it.
        shuffle_write_bytes: Of all tasks.
        input_bytes: Read from files, by all tasks.
        spilled_bytes: Written to disk for lack of memory, by all tasks.
        cpu_seconds: Of all tasks; without what native libraries use in threads of their own.
        submitted: When it was ready to run, in seconds since 1970; None where Spark does not tell.
        completed: When its last task ended, likewise.
    """

    stage_id: int
    attempt: int
    name: str
    task_count: int
    failed_tasks: int
    task_seconds: tuple[float, ...]
    shuffle_read_bytes: tuple[int, ...]
    shuffle_read_rows: tuple[int, ...]
    shuffle_write_bytes: int
    input_bytes: int
    spilled_bytes: int
    cpu_seconds: float
    submitted: float | None = None
    completed: float | None = None
    task_cpu_seconds: tuple[float, ...] = ()
    task_gc_seconds: tuple[float, ...] = ()


def stage_mark(spark: SparkSession) -> int | None:
    """A mark in time: `stages_since` gives what ran after it; None where Spark cannot tell, as on Connect."""
    if is_connect(spark):
        return None
    try:
        context: Any = spark.sparkContext._jsc
        return int(context.sc().dagScheduler().numTotalJobs())
    except Exception as problem:  # noqa: BLE001  py4j raises many kinds; evidence is no reason to fail
        _LOG.debug("no mark for stages: %s", _text(problem))
        return None


def stages_since(spark: SparkSession, mark: int | None) -> tuple[StageTasks, ...] | None:
    """The stages that ran since the mark, in the order of their numbers; None where Spark cannot tell.

    Never raises into the run. Stages that Spark skipped are left out, those that failed are not. In a session
    that others use at the same time, their stages are among them. Spark forgets the oldest tasks beyond
    `spark.ui.retainedTasks` (100,000 of a stage), stages and jobs beyond 1,000.

    Args:
        spark: A session; of Connect gives None.
        mark: Of `stage_mark`; None gives None.
    """
    if mark is None or is_connect(spark):
        return None
    try:
        return tuple(_Store(spark).stages(mark))
    except Exception as problem:  # noqa: BLE001  py4j raises many kinds; evidence is no reason to fail
        _LOG.debug("no evidence of stages: %s", _text(problem))
        return None


def task_seconds(spark: SparkSession, mark: int | None) -> dict[int, tuple[float, ...]]:
    """Per stage since the mark the seconds of each of its tasks, those of several attempts together."""
    found: dict[int, tuple[float, ...]] = {}
    for stage in stages_since(spark, mark) or ():
        found[stage.stage_id] = found.get(stage.stage_id, ()) + stage.task_seconds
    return found


def _text(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}".partition("\n")[0]


def _seconds(date: Any) -> float | None:
    """An optional date of Java."""
    return date.get().getTime() / 1000 if date.isDefined() else None


class _Store:
    """Spark's status store, once all events have reached it."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._gateway: Any = context._gateway
        self._jvm: Any = context._jvm
        scala_context = context._jsc.sc()
        scala_context.listenerBus().waitUntilEmpty(int(WAIT_AT_MOST_SECONDS * 1000))
        self._store = scala_context.statusStore()
        self._records = self._store.store()
        # Each name below the JVM is a question to it: asked once.
        self._class = self._jvm.java.lang.Class.forName
        self._stage_class, self._task_class = map(self._class, (_STAGES, _TASKS))
        self._stream = self._jvm.java.util.stream.StreamSupport.stream
        self._text = self._jvm.java.util.Arrays.toString

    def stages(self, mark: int) -> Iterator[StageTasks]:
        ids = self._stage_ids(mark)
        if not ids:
            return
        getters = self._getters()
        for number in ids:
            view = self._records.view(self._stage_class).index("stageId").first(number).last(number)
            found = view.closeableIterator()
            while found.hasNext():
                data = found.next().info()
                if data.status().toString() in _RAN:
                    yield self._stage(data, getters)
            found.close()

    def _stage_ids(self, mark: int) -> list[int]:
        """Stages of the jobs since the mark; the store has the newest job first."""
        jobs = self._store.jobsList(None)
        ids: set[int] = set()
        for place in range(jobs.size()):
            job = jobs.apply(place)
            if job.jobId() < mark:
                break
            ids.update(int(text) for text in job.stageIds().mkString(",").split(",") if text)
        return sorted(ids)

    def _stage(self, data: Any, getters: Mapping[str, Any]) -> StageTasks:
        key = self._gateway.new_array(self._jvm.int, 2)
        key[0], key[1] = data.stageId(), data.attemptId()
        tasks = self._records.view(self._task_class).parent(key)
        lists = [self._numbers(tasks, getters[name]) for name in _GETTERS]
        # Spark keeps the metrics of a task that has not succeeded as negative numbers.
        good = [numbers for numbers in zip(*lists, strict=True) if numbers[0] >= 0]
        description = data.description()
        return StageTasks(
            stage_id=data.stageId(),
            attempt=data.attemptId(),
            name=str(description.get() if description.isDefined() else data.name()),
            task_count=data.numTasks(),
            failed_tasks=data.numFailedTasks(),
            task_seconds=tuple(millis / 1000 for millis, *_ in good),
            shuffle_read_bytes=tuple(local + remote for _, local, remote, *_ in good),
            shuffle_read_rows=tuple(rows for *_, rows, _, _ in good),
            shuffle_write_bytes=data.shuffleWriteBytes(),
            input_bytes=data.inputBytes(),
            spilled_bytes=data.diskBytesSpilled(),
            cpu_seconds=data.executorCpuTime() / 1e9,
            submitted=_seconds(data.submissionTime()),
            completed=_seconds(data.completionTime()),
            task_cpu_seconds=tuple(nanos / 1e9 for *_, nanos, _ in good),
            task_gc_seconds=tuple(millis / 1000 for *_, millis in good),
        )

    def _getters(self) -> dict[str, Any]:
        """Getters of a task's record as functions of Java."""
        java = self._jvm.java.lang.invoke
        long = self._class("java.lang.Long").getField("TYPE").get(None)
        form = java.MethodType.methodType(long)
        lookup = java.MethodHandles.publicLookup()
        function = self._class("java.util.function.ToLongFunction")
        made = java.MethodHandleProxies.asInterfaceInstance
        return {name: made(function, lookup.findVirtual(self._task_class, name, form)) for name in _GETTERS}

    def _numbers(self, tasks: Any, getter: Any) -> list[int]:
        stream = self._stream(tasks.spliterator(), False)
        text = self._text(stream.mapToLong(getter).toArray())
        return [int(number) for number in text[1:-1].split(",") if number]
