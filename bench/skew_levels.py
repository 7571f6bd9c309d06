"""What measured task times of a join tell: how level its tasks are, and what many cores would wait for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from common.tuning.levelness import StageRun, replayed_seconds, spread, waves

if TYPE_CHECKING:
    from common.engine.stage_metrics import StageTasks

CLUSTER_CORES = 100
CORES = (2, 16, CLUSTER_CORES)
# A cluster is laid out for many tasks; here the same layout shows what each of them would do there.
MANY_TASKS = {
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.files.maxPartitionBytes": "2m",
    "spark.sql.files.openCostInBytes": "64k",
    # Else each task opens a file per partition, and the time of small tasks is that of the file system.
    "spark.shuffle.sort.bypassMergeThreshold": "1",
}
_MEASURES = ("seconds", "cpu_seconds", "shuffle_bytes")


def plain_stages(stages: Iterable[StageTasks]) -> list[dict[str, Any]]:
    """What stages took, as JSON has it."""
    return [
        {
            "seconds": stage.task_seconds,
            "cpu_seconds": stage.task_cpu_seconds,
            "gc_seconds": stage.task_gc_seconds,
            "shuffle_bytes": stage.shuffle_read_bytes,
            "shuffle_read_bytes": sum(stage.shuffle_read_bytes),
            "shuffle_write_bytes": stage.shuffle_write_bytes,
            "input_bytes": stage.input_bytes,
            "submitted": stage.submitted,
            "completed": stage.completed,
        }
        for stage in stages
    ]


def levels(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The levels of one way to join, from its rounds."""
    join = join_tasks(lines)
    return {
        "replayed_seconds": replayed(best_stages(lines)),
        "join_stage_seconds": replayed_seconds([join["seconds"]], CLUSTER_CORES),
        "join_tasks": len(join["seconds"]),
        "max_to_median": max_to_median(join["seconds"]),
        "cpu_max_to_median": max_to_median(join["cpu_seconds"]),
        # Of the tasks that read a shuffle: those of isolated keys read files.
        "bytes_max_to_median": max_to_median(size for size in join["shuffle_bytes"] if size),
    }


def replayed(stages: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Wall time of these stages by number of cores."""
    together = waves(StageRun(it["submitted"], it["completed"], it["seconds"]) for it in stages)
    return {str(cores): replayed_seconds(together, cores) for cores in CORES}


def join_tasks(lines: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The tasks of the join's stage: the one that reads most from shuffles."""
    return max(best_stages(lines), key=lambda stage: stage["shuffle_read_bytes"])


def best_stages(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The stages of the last round, with each task at the best of its rounds.

    A task reads the same rows in every round. So what else the machine did at the time (compiling, collecting
    garbage, other processes) is left out, and what the way of dividing the work makes of a task stays. Rounds
    whose stages have other numbers of tasks are left out as well.

    >>> first = {"seconds": [4.0, 2.0], "cpu_seconds": [], "shuffle_bytes": []}
    >>> first |= {"shuffle_write_bytes": 7, "shuffle_read_bytes": 0, "input_bytes": 9}
    >>> rounds = [{"stages": [first]}, {"stages": [{**first, "seconds": [3.0, 3.0]}]}]
    >>> best_stages(rounds)[0]["seconds"]
    [3.0, 2.0]
    """
    rounds = [_in_order(line["stages"]) for line in lines]
    last = rounds[-1]
    sizes = [len(stage["seconds"]) for stage in last]
    alike = [stages for stages in rounds if [len(stage["seconds"]) for stage in stages] == sizes]

    def best(at: int, name: str) -> list[float]:
        return [min(values) for values in zip(*(stages[at][name] for stages in alike), strict=True)]

    return [{**stage, **{name: best(at, name) for name in _MEASURES}} for at, stage in enumerate(last)]


def _in_order(stages: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Stages by what they read and write: two that start together have their numbers by chance."""
    return sorted(
        stages,
        key=lambda it: (
            len(it["seconds"]),
            it["shuffle_write_bytes"],
            it["shuffle_read_bytes"],
            it["input_bytes"],
        ),
    )


def max_to_median(values: Iterable[float]) -> float:
    """How many times the median the largest is; 1 for none.

    >>> max_to_median([3.0, 1.0, 2.0])
    1.5
    """
    found = spread(values)
    return found.max / found.median if found.median else 1.0
