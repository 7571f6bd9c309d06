"""How level the work of a stage is over its tasks, and how long it would take on other numbers of cores."""

from __future__ import annotations

import heapq
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from common.core.errors import ParameterError
from common.core.units import format_seconds

# A stage of fewer tasks, or whose longest takes less, is not worth a word.
NOTED_TASKS, NOTED_RATIO, NOTED_SECONDS = 8, 5.0, 5.0
# Spark tells run times in whole milliseconds: what took less took one.
_LEAST_SECONDS = 0.001


@dataclass(frozen=True)
class Spread:
    """A measure over the tasks of a stage; all 0 when there are none."""

    min: float
    median: float
    p95: float
    max: float
    total: float


@dataclass(frozen=True)
class StageLevels:
    """How time and shuffled bytes spread over the tasks of one stage.

    Attributes:
        stage: Spark's number of it.
        attempt: 0, or how often it was tried before.
        name: What it does.
        tasks: Tasks that ended well.
        failed_tasks: Tasks that did not.
        seconds: Run time of a task; `total` is the work of all.
        shuffle_bytes: What a task read from a shuffle.
        max_to_median_ratio: Of the seconds; 1 is level.
        input_bytes: Read from files, by all tasks.
        shuffle_write_bytes: Of all tasks.
        spilled_bytes: Of all tasks.
    """

    stage: int
    attempt: int
    name: str
    tasks: int
    failed_tasks: int
    seconds: Spread
    shuffle_bytes: Spread
    max_to_median_ratio: float
    input_bytes: int = 0
    shuffle_write_bytes: int = 0
    spilled_bytes: int = 0

    @property
    def is_uneven(self) -> bool:
        """True when one task of many held the stage up for seconds."""
        return (
            self.tasks >= NOTED_TASKS
            and self.max_to_median_ratio >= NOTED_RATIO
            and self.seconds.max >= NOTED_SECONDS
        )

    def line(self) -> str:
        """The stage in one line.

        >>> levels = stage_levels(4, [2.0] * 9 + [31.0], name="skew-join: shuffle")
        >>> levels.line()
        'stage 4 (skew-join: shuffle, 10 tasks): the longest task took 31.0 s, the median 2.0 s'
        """
        counted = f"{self.tasks:,} task{'' if self.tasks == 1 else 's'}"
        longest, median = format_seconds(self.seconds.max), format_seconds(self.seconds.median)
        took = f"the longest task took {longest}, the median {median}"
        return f"stage {self.stage} ({self.name}, {counted}): {took}"

    def record(self) -> dict[str, Any]:
        """What a run record holds of it: whole bytes, milliseconds."""
        shuffled = {name: round(value) for name, value in asdict(self.shuffle_bytes).items()}
        return {
            **asdict(self),
            "seconds": {name: round(value, 4) for name, value in asdict(self.seconds).items()},
            "shuffle_bytes": shuffled,
            "max_to_median_ratio": round(self.max_to_median_ratio, 2),
        }


def stage_levels(
    stage: int,
    task_seconds: Sequence[float],
    shuffle_bytes: Sequence[int] = (),
    *,
    name: str = "",
    attempt: int = 0,
    failed_tasks: int = 0,
    input_bytes: int = 0,
    shuffle_write_bytes: int = 0,
    spilled_bytes: int = 0,
) -> StageLevels:
    """The levels of a stage from the lists of its tasks.

    >>> levels = stage_levels(3, [1.0, 2.0, 3.0, 10.0], [5, 5, 5, 85])
    >>> levels.seconds
    Spread(min=1.0, median=2.5, p95=10.0, max=10.0, total=16.0)
    >>> levels.max_to_median_ratio
    4.0
    """
    seconds = spread(task_seconds)
    ratio = max(seconds.max, _LEAST_SECONDS) / max(seconds.median, _LEAST_SECONDS)
    return StageLevels(
        stage,
        attempt,
        name,
        len(task_seconds),
        failed_tasks,
        seconds,
        spread(shuffle_bytes),
        ratio,
        input_bytes,
        shuffle_write_bytes,
        spilled_bytes,
    )


def spread(values: Iterable[float]) -> Spread:
    """Minimum, median, 95th percentile (the nearest rank), maximum and sum.

    >>> spread(range(1, 101))
    Spread(min=1, median=50.5, p95=95, max=100, total=5050)
    >>> spread([])
    Spread(min=0, median=0, p95=0, max=0, total=0)
    """
    ordered = sorted(values)
    if not ordered:
        return Spread(0, 0, 0, 0, 0)
    p95 = ordered[math.ceil(0.95 * len(ordered)) - 1]
    return Spread(ordered[0], statistics.median(ordered), p95, ordered[-1], sum(ordered))


@dataclass(frozen=True)
class StageRun:
    """When a stage ran, and what its tasks took.

    Attributes:
        submitted: When it was ready to run, in seconds of any clock; None where nobody tells.
        completed: When its last task ended, on the same clock; None where nobody tells.
        task_seconds: Run time of each task.
    """

    submitted: float | None
    completed: float | None
    task_seconds: Sequence[float]


def waves(stages: Iterable[StageRun]) -> list[list[float]]:
    """The tasks of stages that did not wait for each other, together.

    A stage that was submitted before another had ended does not need that one's result, as the two sides of
    a join. One that was submitted later may, and counts as if it did.

    Returns:
        The seconds of each wave's tasks, by the time that it began.

    >>> left, right = StageRun(0.0, 9.0, [4.0, 5.0]), StageRun(0.1, 2.0, [1.0])
    >>> waves([left, right, StageRun(9.1, 12.0, [3.0])])
    [[4.0, 5.0, 1.0], [3.0]]
    >>> waves([StageRun(None, None, [1.0]), StageRun(None, None, [2.0])])
    [[1.0], [2.0]]
    """
    timed, untimed = [], []
    for stage in stages:
        if stage.submitted is None or stage.completed is None:
            untimed.append(list(stage.task_seconds))
        else:
            timed.append((stage.submitted, stage.completed, stage.task_seconds))
    found: list[list[float]] = []
    first_end = -math.inf
    for submitted, completed, seconds in sorted(timed, key=lambda it: it[:2]):
        if submitted < first_end:
            found[-1] += seconds
            first_end = min(first_end, completed)
        else:
            found.append(list(seconds))
            first_end = completed
    return found + untimed


def replayed_seconds(waves: Iterable[Sequence[float]], cores: int) -> float:
    """Wall time of these tasks on so many cores: the longest first, the waves one after the other.

    What it leaves out: the time a task waits or is started, the network, and that tasks get slower when they
    share a machine. It compares ways to divide the same work, and is no forecast. Longest-first is at most
    4/3 - 1/(3 cores) of the best order (Graham, 1969).

    Args:
        waves: For each wave of stages the seconds of its tasks.
        cores: Tasks that run at the same time.

    Raises:
        ParameterError: `cores` is below 1.

    >>> replayed_seconds([[3.0, 1.0, 1.0, 1.0], [2.0]], cores=2)
    5.0
    >>> replayed_seconds([[3.0, 1.0, 1.0, 1.0], [2.0]], cores=100)
    5.0
    >>> replayed_seconds([[3.0, 1.0, 1.0, 1.0], [2.0]], cores=1)
    8.0
    """
    if cores < 1:
        raise ParameterError("parameter", "cores", expected="at least 1", got=str(cores))
    return sum(_longest_first(tasks, cores) for tasks in waves)


def _longest_first(tasks: Sequence[float], cores: int) -> float:
    free_at = [0.0] * min(cores, len(tasks))
    for seconds in sorted(tasks, reverse=True):
        heapq.heapreplace(free_at, free_at[0] + seconds)
    return max(free_at, default=0.0)
