"""Real processes: `saltpan run` and `spark-submit` as a user calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
FLIGHTS = ROOT / "data" / "generated" / "flights"


@dataclass(frozen=True)
class Ended:
    """A process that has ended, and the record of its run."""

    code: int
    out: str
    err: str
    record: Mapping[str, Any] | None


@dataclass(frozen=True)
class Shell:
    """Starts commands in a folder of their own, with little of the caller's environment."""

    folder: Path
    runs: Path
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME", "LANG") if name in os.environ}
        path = os.defpath + ":/usr/local/bin"
        return {**kept, "PATH": path, "SALTPAN_RUNS_DIR": str(self.runs), **self.extra}

    def __call__(self, command: Sequence[object], *, timeout: int = 180, **environ: str) -> Ended:
        before = set(self.runs.glob("*.json"))
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.folder,
            env={**self.environ, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        new = sorted(set(self.runs.glob("*.json")) - before)
        record = json.loads(new[-1].read_text()) if new else None
        return Ended(done.returncode, done.stdout, done.stderr, record)


@pytest.fixture
def shell(tmp_path: Path, request: pytest.FixtureRequest) -> Shell:
    folder = tmp_path / "else where"
    folder.mkdir()
    with_comet = request.config.getoption("--engine") == "comet"
    return Shell(folder, tmp_path / "runs", {"SALTPAN_PROFILE": "local+comet"} if with_comet else {})


@pytest.fixture
def saltpan(shell: Shell) -> Callable[..., Ended]:
    """`saltpan run …`, without the environment being active."""
    return lambda *words, **environ: shell([BIN / "saltpan", "run", *words], **environ)


@pytest.fixture
def submit(shell: Shell) -> Callable[..., Ended]:
    """`spark-submit …`, without the environment being active."""
    return lambda *words, **environ: shell([BIN / "spark-submit", *words], **environ)


@pytest.fixture(scope="session", autouse=True)
def flights() -> Path:
    assert FLIGHTS.is_dir(), "make data makes the flights"
    return FLIGHTS
