"""How a cluster's executor divides its memory when part of the work happens outside the heap."""

from __future__ import annotations

from dataclasses import dataclass

from common.core.units import format_bytes, parse_bytes, spell_bytes
from common.settings.profiles import Profile

OFF_HEAP_SIZE = "spark.memory.offHeap.size"

_MEBIBYTE = 1024**2
_HEAP, _OVERHEAD = "spark.executor.memory", "spark.executor.memoryOverhead"
# A third is for what stays in Java: broadcasts, results of tasks, queries that a guard keeps on plain Spark.
_HEAP_SHARE = 3
_SMALLEST_HEAP = 640
_SMALLEST_OFF_HEAP = 512
# Of 115 parts that native code takes, its own accounts show 100.
_TRACKED_PERCENT, _TAKEN_PERCENT = 100, 115


@dataclass(frozen=True)
class ExecutorMemory:
    """One executor's memory, divided; all of it together is what the profile asked for.

    Attributes:
        asked_bytes: The heap that the profile asked for.
        heap_bytes: The heap that is left.
        off_heap_bytes: What Spark gives out outside the heap; YARN and Kubernetes add it to the container.
        overhead_bytes: The container's rest, for Python workers and what nobody accounts for; None where the
            cluster does not count it.
    """

    asked_bytes: int
    heap_bytes: int
    off_heap_bytes: int
    overhead_bytes: int | None

    @property
    def settings(self) -> dict[str, str]:
        """The Spark settings that ask for it."""
        values = {_HEAP: self.heap_bytes, OFF_HEAP_SIZE: self.off_heap_bytes}
        if self.overhead_bytes is not None:
            values[_OVERHEAD] = self.overhead_bytes
        return {key: spell_bytes(value) for key, value in values.items()}

    def __str__(self) -> str:
        parts = [f"{format_bytes(self.heap_bytes)} heap", f"{format_bytes(self.off_heap_bytes)} outside it"]
        if self.overhead_bytes is not None:
            parts.append(f"{format_bytes(self.overhead_bytes)} overhead, the container as large as before")
        return f"of an executor's {format_bytes(self.asked_bytes)}: {', '.join(parts)}"


def share_executor(profile: Profile, *, master: str) -> ExecutorMemory | str | None:
    """Divide what a profile asks for, so that heap, off-heap memory and overhead are no more than before.

    YARN and Kubernetes give an executor heap + off-heap memory + overhead (read in Spark 4.1.3:
    ResourceProfile.getResourcesForClusterManager), and the overhead follows the heap unless it is named; so
    it is named. A standalone worker counts the heap only.

    Args:
        profile: Of a cluster.
        master: Where it goes; tells who counts the overhead.

    Returns:
        None when the user has set spark.memory.offHeap.size: then nothing is changed. Why not, when it is
        too little to divide.
    """
    if profile.value(OFF_HEAP_SIZE):
        return None
    asked = parse_bytes(profile.value(_HEAP, "1g"), default_unit="m") // _MEBIBYTE
    heap = max(asked // _HEAP_SHARE, _SMALLEST_HEAP)
    off_heap = (asked - heap) * _TRACKED_PERCENT // _TAKEN_PERCENT
    if off_heap < _SMALLEST_OFF_HEAP:
        needed = _SMALLEST_HEAP - (-_SMALLEST_OFF_HEAP * _TAKEN_PERCENT // _TRACKED_PERCENT)
        return (
            f"executors of {format_bytes(asked * _MEBIBYTE)} are too small to divide: "
            f"it needs --conf {_HEAP}={needed}m or more, or a {OFF_HEAP_SIZE} of your own"
        )
    overhead = None
    if not master.startswith(("spark://", "local")):
        overhead = (_overhead(profile, asked, master=master) + asked - heap - off_heap) * _MEBIBYTE
    return ExecutorMemory(asked * _MEBIBYTE, heap * _MEBIBYTE, off_heap * _MEBIBYTE, overhead)


def _overhead(profile: Profile, heap: int, *, master: str) -> int:
    """What Spark would add to a container with this heap, in MiB."""
    named = profile.value(_OVERHEAD)
    if named:
        return parse_bytes(named, default_unit="m") // _MEBIBYTE
    least = parse_bytes(profile.value("spark.executor.minMemoryOverhead", "384m"), default_unit="m")
    # Unset, Kubernetes takes the larger share for Python.
    usual = "0.4" if master.startswith("k8s://") else "0.1"
    share = float(profile.value("spark.executor.memoryOverheadFactor", usual))
    return max(int(heap * share), least // _MEBIBYTE)
