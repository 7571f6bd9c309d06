"""This machine, or the part of it that its container leaves: memory, cores, the kind of CPU."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path

from common.tuning.machine import Machine

_MEBIBYTE = 1024**2


def read_machine(root: Path = Path("/")) -> Machine:
    """Look at this machine.

    Args:
        root: Where `proc` and `sys` are; another folder for tests.
    """
    total, free = _memory(root)
    groups = list(_groups(root))
    limits = [limit for folder in groups if (limit := _limit(folder)) is not None]
    rooms = [limit - _used(folder) for folder in groups if (limit := _limit(folder)) is not None]
    memory = min([total, *limits])
    return Machine(
        memory_bytes=memory,
        available_bytes=max(min([free, memory, *rooms]), 0),
        core_count=_cores(groups),
        system=f"{platform.system().lower()}-{platform.machine().lower()}",
        cpu_flags=_cpu_flags(root),
    )


def _memory(root: Path) -> tuple[int, int]:
    """Memory and what of it is free to take; without /proc, all of it."""
    sizes = {}
    for line in _lines(root / "proc" / "meminfo"):
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            sizes[name] = int(words[0]) * 1024
    if "MemTotal" in sizes:
        return sizes["MemTotal"], sizes.get("MemAvailable", sizes["MemTotal"])
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        total = 4096 * _MEBIBYTE  # nothing tells: a small laptop
    return total, total


def _groups(root: Path) -> Iterator[Path]:
    """Folders of the control groups this process is in, innermost first; limits of outer ones hold too."""
    base = root / "sys" / "fs" / "cgroup"
    for line in _lines(root / "proc" / "self" / "cgroup"):
        _, controllers, place = (*line.split(":", 2), "", "")[:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        home = base / "memory" if controllers else base
        inner = home / place.strip("/")
        # Inside a container the place may be named as the host sees it, and is not there.
        for folder in (inner, *inner.parents):
            if folder == home.parent:
                break
            if folder.is_dir():
                yield folder


def _limit(folder: Path) -> int | None:
    for name in ("memory.max", "memory.limit_in_bytes"):
        number = _number(folder / name)
        if number is not None and number < 2**60:  # version 1 writes a huge number for "no limit"
            return number
    return None


def _used(folder: Path) -> int:
    """Bytes in use, without files that the system would drop first."""
    used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes") or 0
    for line in _lines(folder / "memory.stat"):
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file") and value.isdigit():
            return max(used - int(value), 0)
    return used


def _cores(groups: Iterable[Path]) -> int:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = []
    for folder in groups:
        quota, _, period = next(iter(_lines(folder / "cpu.max")), "").partition(" ")
        if quota.isdigit() and period.isdigit() and int(period) > 0:
            quotas.append(-(-int(quota) // int(period)))
    return max(min([allowed, *quotas]), 1)


def _cpu_flags(root: Path) -> frozenset[str]:
    for line in _lines(root / "proc" / "cpuinfo"):
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def _number(path: Path) -> int | None:
    text = next(iter(_lines(path)), "").strip()
    return int(text) if text.isdigit() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
