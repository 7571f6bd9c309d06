"""Other programs, asked a question: no input, their text back, never for longer than agreed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

TIMEOUT_SECONDS = 10.0


def ask(
    command: Sequence[str],
    *,
    timeout_seconds: float = TIMEOUT_SECONDS,
    environ: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, whatever its exit code, in this process's environment or another.

    Raises:
        OSError: it cannot be run.
        subprocess.TimeoutExpired: it took too long, and was killed.
    """
    return subprocess.run(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout_seconds,
        check=False,
    )


def said_by(command: Sequence[str], *, timeout_seconds: float = TIMEOUT_SECONDS) -> str:
    """What the command prints; empty when it cannot be run, fails or takes too long."""
    try:
        ran = ask(command, timeout_seconds=timeout_seconds)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if ran.returncode else ran.stdout + ran.stderr
