"""What planners may know of a machine; `engine.machine` looks at the one that is there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """What a process on it may use.

    Attributes:
        memory_bytes: Memory of the machine, or the limit of its control group when that is lower.
        available_bytes: What of it is not in use now.
        core_count: CPUs that this process may run on, its control group's quota included; at least 1.
        system: Operating system and CPU: "linux-x86_64", "linux-aarch64", "darwin-arm64".
        cpu_flags: What the CPU can do, as Linux names it; empty where nothing tells.
    """

    memory_bytes: int
    available_bytes: int
    core_count: int
    system: str
    cpu_flags: frozenset[str] = frozenset()
