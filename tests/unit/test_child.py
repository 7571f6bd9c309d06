"""Another program's process: its exit code, and signals on their way to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from common.runs.child import run_child


def test_the_exit_code_is_passed_on() -> None:
    assert run_child([sys.executable, "-c", "raise SystemExit(6)"], environ=os.environ) == 6
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert run_child([sys.executable, "-c", killed], environ=os.environ) == 137


# A child like spark-submit: it starts another, and ends at once at a signal; the other needs a moment.
WITH_A_DRIVER = """
import signal, subprocess, sys, time
driver = subprocess.Popen([sys.executable, "-c", '''
import pathlib, signal, sys, time
def end(number, frame):
    time.sleep(0.1)
    pathlib.Path(sys.argv[1]).write_text(str(number))
    sys.exit()
for each in (signal.SIGINT, signal.SIGTERM): signal.signal(each, end)
pathlib.Path(sys.argv[1]).write_text("ready")
time.sleep(60)
''', sys.argv[1]])
for each in (signal.SIGINT, signal.SIGTERM): signal.signal(each, signal.SIG_DFL)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_child_and_what_it_started(tmp_path: Path, number: signal.Signals) -> None:
    note = tmp_path / "note"
    command: Sequence[str] = [sys.executable, "-c", WITH_A_DRIVER, str(note)]
    call = f"sys.exit(run_child({command!r}, environ=os.environ))"
    code = f"import os, sys; from common.runs.child import run_child; {call}"
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        deadline = time.monotonic() + 30
        while not (note.exists() and note.read_text() == "ready") and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(timeout=30) == 128 + number
        assert note.read_text() == str(int(number))
    finally:
        process.kill()
