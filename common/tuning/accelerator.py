"""Whether Comet speeds a run up here, and how much memory it may have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from common.core.units import format_bytes
from common.settings.accelerators import Accelerator
from common.tuning.decision import Decision
from common.tuning.facts import InputFacts
from common.tuning.machine import Machine

Accelerated = Literal["auto", "comet", "none"]

_MEBIBYTE = 1024**2
_GIBIBYTE = 1024**3

# The start of Comet costs 1 to 2 seconds; with 90 MB a ranking window gains more than that, a group by less.
WORTH_FROM_BYTES = 64 * _MEBIBYTE

# Of the memory that is there; the rest is the user's other work and the system's file cache.
MEMORY_SHARE = 0.6
MEMORY_FROM_BYTES = 3 * _GIBIBYTE
_PYTHON_WORKER_BYTES = 128 * _MEBIBYTE
_JVM_OWN_BYTES = 320 * _MEBIBYTE
_SMALLEST_HEAP_BYTES = 640 * _MEBIBYTE
_SMALLEST_OFF_HEAP_BYTES = 512 * _MEBIBYTE
_LARGEST_OFF_HEAP_BYTES_PER_CORE = 4 * _GIBIBYTE
# Comet takes more than it accounts for.
_UNTRACKED_SHARE = 0.15

_SAME_EVERYWHERE = frozenset({"UTC", "GMT", "Z", "Etc/UTC", "Etc/GMT", "UCT", "Zulu", "+00:00"})


@dataclass(frozen=True)
class RunFacts:
    """What decides about an accelerator.

    Attributes:
        engine: "local", "submit", "connect", "existing".
        spark_version: For example "4.1.3".
        machine: Where it would run.
        heap_bytes: The JVM's heap as the profile has it.
        heap_is_fixed: The user named the heap.
        time_zone: The session's.
        inputs: What is known of the inputs before a session exists.
        unsafe_inputs: Why files among them would be read otherwise than Spark reads them.
        jar_problem: Why the jar cannot be had; None when it can, or was not tried.
        started_with: True when a session that is not ours has the accelerator loaded.
    """

    engine: str
    spark_version: str
    machine: Machine
    heap_bytes: int = _GIBIBYTE
    heap_is_fixed: bool = False
    time_zone: str = "UTC"
    inputs: tuple[InputFacts, ...] = ()
    unsafe_inputs: tuple[str, ...] = ()
    jar_problem: str | None = None
    started_with: bool = False


@dataclass(frozen=True)
class Memory:
    """How the memory of one JVM is shared out."""

    heap_bytes: int
    off_heap_bytes: int


def plan_accelerator(asked: Accelerated, facts: RunFacts, *, comet: Accelerator) -> Decision:
    """Choose between Comet and plain Spark.

    What cannot run, or would answer otherwise, is not chosen even when it is asked for: the run goes on
    on plain Spark, with the same answer, and the decision says why.

    Args:
        asked: "auto", or the choice that the user forces; "comet" skips what is only about speed.
        facts: What is known.
        comet: What Comet needs.
    """
    forced = asked != "auto"
    evidence = _evidence(facts)
    if asked == "none":
        return Decision("none", "as asked", evidence=evidence, forced=True)
    why = next(filter(None, _obstacles(facts, comet, forced=forced)), None)
    if why is not None:
        return Decision("none", f"plain Spark: {why}", (("comet", why),), evidence, forced=forced)
    reason = (
        f"Comet {comet.jar.coordinates.rpartition(':')[2]} runs scans, aggregates, joins and windows natively"
    )
    if not forced:
        size = format_bytes(sum(item.size_bytes or 0 for item in facts.inputs))
        reason += f": {size} of Parquet is more than {format_bytes(WORTH_FROM_BYTES)}"
    return Decision("comet", reason, (("none", "slower on this much data"),), evidence, forced=forced)


def share_memory(facts: RunFacts) -> Memory | str:
    """Heap and off-heap memory that fit, with Python's, into 60 % of the memory; or why they do not.

    Nothing is kept for what the machine already runs beyond that, but what is not available is not given out.
    """
    machine = facts.machine
    if machine.memory_bytes < MEMORY_FROM_BYTES:
        return (
            f"{format_bytes(machine.memory_bytes)} of memory, and it needs {format_bytes(MEMORY_FROM_BYTES)}"
        )
    budget = int(min(machine.memory_bytes * MEMORY_SHARE, machine.available_bytes * 0.9))
    data = budget - _JVM_OWN_BYTES - machine.core_count * _PYTHON_WORKER_BYTES
    heap = facts.heap_bytes
    if not facts.heap_is_fixed:
        heap = min(heap, max(data // 3, _SMALLEST_HEAP_BYTES))
    off_heap = int((data - heap) / (1 + _UNTRACKED_SHARE))
    if off_heap < _SMALLEST_OFF_HEAP_BYTES:
        room = format_bytes(max(off_heap, 0))
        return (
            f"{room} would be left for it beside a heap of {format_bytes(heap)} "
            f"({format_bytes(machine.available_bytes)} of memory are free), "
            f"and it needs {format_bytes(_SMALLEST_OFF_HEAP_BYTES)}"
        )
    most = machine.core_count * _LARGEST_OFF_HEAP_BYTES_PER_CORE
    return Memory(_whole_mebibytes(heap), _whole_mebibytes(min(off_heap, most)))


def _whole_mebibytes(size_bytes: int) -> int:
    return size_bytes // _MEBIBYTE * _MEBIBYTE


def _evidence(facts: RunFacts) -> dict[str, Any]:
    return {
        "engine": facts.engine,
        "spark_version": facts.spark_version,
        "system": facts.machine.system,
        "memory_bytes": facts.machine.memory_bytes,
        "available_bytes": facts.machine.available_bytes,
        "size_bytes": sum(item.size_bytes or 0 for item in facts.inputs),
        "formats": sorted({item.format for item in facts.inputs}),
        "worth_from_bytes": WORTH_FROM_BYTES,
    }


def _obstacles(facts: RunFacts, comet: Accelerator, *, forced: bool) -> Iterator[str | None]:
    """What stands against Comet; the jar last, as it is fetched only when all else agrees."""
    yield _not_ours(facts, comet)
    yield _other_spark(facts, comet)
    yield _other_machine(facts, comet)
    yield _other_zone(facts)
    yield _other_answer(facts)
    yield _no_memory(facts)
    if not forced:
        yield _not_parquet(facts)
        yield _too_small(facts)
    yield _no_jar(facts)


def _not_ours(facts: RunFacts, comet: Accelerator) -> str | None:
    if facts.engine == "connect":
        return "the server of a remote session decides about its accelerator"
    if facts.engine != "local" and not facts.started_with:
        return (
            f"this session was started without it: add --packages {comet.jar.coordinates} "
            "and the settings of conf/comet.conf to spark-submit, or use saltpan submit"
        )
    return None


def _other_spark(facts: RunFacts, comet: Accelerator) -> str | None:
    if comet.suits_spark(facts.spark_version):
        return None
    return (
        f"Comet's jar is made for Spark {', '.join(comet.spark)}, this is {facts.spark_version or 'unknown'}"
    )


def _other_machine(facts: RunFacts, comet: Accelerator) -> str | None:
    machine = facts.machine
    if machine.system not in comet.systems:
        return f"Comet has no native library for {machine.system}, only for {', '.join(comet.systems)}"
    missing = comet.cpu_flags.get(machine.system, frozenset()) - machine.cpu_flags
    if missing and machine.cpu_flags:
        return f"this CPU lacks {', '.join(sorted(missing))}, which Comet's native library uses"
    return None


def _other_zone(facts: RunFacts) -> str | None:
    if facts.time_zone in _SAME_EVERYWHERE:
        return None
    zone = facts.time_zone
    return f"Comet's time zone data differ from Java's after 2100, and the session is in {zone}, not UTC"


def _other_answer(facts: RunFacts) -> str | None:
    return "; ".join(facts.unsafe_inputs) or None


def _no_memory(facts: RunFacts) -> str | None:
    if facts.engine != "local":
        return None
    shared = share_memory(facts)
    return shared if isinstance(shared, str) else None


def _no_jar(facts: RunFacts) -> str | None:
    return f"Comet's jar cannot be had: {facts.jar_problem}" if facts.jar_problem else None


def _not_parquet(facts: RunFacts) -> str | None:
    others = sorted({item.format for item in facts.inputs} - {"parquet", "table"})
    return f"Comet reads Parquet, and the input is {', '.join(others)}" if others else None


def _too_small(facts: RunFacts) -> str | None:
    sizes = [item.size_bytes for item in facts.inputs]
    if not sizes or None in sizes:
        return None
    total = sum(size for size in sizes if size is not None)
    if total >= WORTH_FROM_BYTES:
        return None
    worth = format_bytes(WORTH_FROM_BYTES)
    return f"{format_bytes(total)} of input is less than the {worth} from which Comet's start pays"
