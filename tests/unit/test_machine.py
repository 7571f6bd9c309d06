"""Memory and cores of a machine and of control groups, from folders made up here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from common.engine.machine import read_machine

GIB = 1024**3
MEMINFO = "MemTotal:       16777216 kB\nMemFree:  1 kB\nMemAvailable:   8388608 kB\n"


def put(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_machine_of_its_own(tmp_path: Path) -> None:
    put(tmp_path, **{"proc/meminfo": MEMINFO, "proc/cpuinfo": "processor : 0\nflags\t\t: fpu avx2 bmi1\n"})
    found = read_machine(tmp_path)
    assert (found.memory_bytes, found.available_bytes) == (16 * GIB, 8 * GIB)
    assert found.cpu_flags == {"fpu", "avx2", "bmi1"}
    assert found.core_count == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("files", "memory", "available"),
    [
        # version 2, in a container: its own folder is the root of the tree
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": str(2 * GIB)}, 2 * GIB, 2 * GIB),
        # an outer limit is the lower one
        (
            {
                "proc/self/cgroup": "0::/user/job\n",
                "sys/fs/cgroup/user/job/memory.max": "max\n",
                "sys/fs/cgroup/user/memory.max": f"{4 * GIB}\n",
                "sys/fs/cgroup/user/memory.current": f"{3 * GIB}\n",
                "sys/fs/cgroup/user/memory.stat": f"anon 1\ninactive_file {GIB}\n",
            },
            4 * GIB,
            2 * GIB,
        ),
        # version 1, with the number that stands for no limit
        (
            {
                "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n",
                "sys/fs/cgroup/memory/x/memory.limit_in_bytes": f"{3 * GIB}\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            3 * GIB,
            3 * GIB,
        ),
        # more than the machine has
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": str(99 * GIB)}, 16 * GIB, 8 * GIB),
        # all in use
        (
            {
                "proc/self/cgroup": "0::/\n",
                "sys/fs/cgroup/memory.max": str(GIB),
                "sys/fs/cgroup/memory.current": str(2 * GIB),
            },
            GIB,
            0,
        ),
        # a place that the host sees otherwise; junk
        ({"proc/self/cgroup": "0::/elsewhere/x\njunk\n", "sys/fs/cgroup/memory.max": "?"}, 16 * GIB, 8 * GIB),
    ],
)
def test_control_groups(tmp_path: Path, files: dict[str, str], memory: int, available: int) -> None:
    found = read_machine(put(tmp_path, **{"proc/meminfo": MEMINFO, **files}))
    assert (found.memory_bytes, found.available_bytes) == (memory, available)


@pytest.mark.parametrize(
    ("quota", "cores"), [("50000 100000", 1), ("100000 100000", 1), ("max 100000", None)]
)
def test_a_share_of_a_core_is_one(tmp_path: Path, quota: str, cores: int | None) -> None:
    files = {"proc/meminfo": MEMINFO, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": quota}
    assert read_machine(put(tmp_path, **files)).core_count == (cores or len(os.sched_getaffinity(0)))


def test_nothing_tells(tmp_path: Path) -> None:
    found = read_machine(tmp_path)
    assert found.memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found.cpu_flags == frozenset()


def test_this_machine() -> None:
    found = read_machine()
    assert 0 < found.available_bytes <= found.memory_bytes
    assert found.system.count("-") == 1
