"""A process of another program: its exit code is ours, and signals that we get reach it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_GRACE_SECONDS = 15.0


def run_child(command: Sequence[str], *, environ: Mapping[str, str]) -> int:
    """Run the command in a process group of its own; SIGINT and SIGTERM go on to the whole group.

    Returns:
        Its exit code; 128 and the signal's number when a signal ended it.
    """
    with _passed_on() as group:
        process = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, process_group=0)
        group.append(process.pid)
        code = process.wait()
        if len(group) > 1:  # a signal came: the driver below the JVM still has to put things in order
            _wait_for_group(process.pid)
    return 128 - code if code < 0 else code


@contextmanager
def _passed_on() -> Iterator[list[int]]:
    """Within: signals go on to the group that the list names, and are added to it."""
    group: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if group:
            group.append(number)
            with suppress(ProcessLookupError):
                os.killpg(group[0], number)

    former = {number: signal.signal(number, pass_on) for number in _SIGNALS}
    try:
        yield group
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _wait_for_group(group: int) -> None:
    deadline = time.monotonic() + _GRACE_SECONDS
    while _is_alive(group) and time.monotonic() < deadline:
        time.sleep(0.05)


def _is_alive(group: int) -> bool:
    """Whether a process of the group still runs; one that has ended and that nobody asked about does not."""
    if not Path("/proc/self/stat").exists():
        with suppress(ProcessLookupError):
            os.killpg(group, 0)
            return True
        return False
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # pid (name) state parent group …, and the name may hold anything
            state, _, its_group = path.read_text(errors="replace").rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                return True
    return False
