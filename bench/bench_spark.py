"""What the benchmarks share: a session of each side, processes of their own, answers, CPU time, memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
SPARK_SIDES = ("spark", "comet")


@contextmanager
def spark_session(
    side: str, *, name: str, heap_gib: int = 4, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session of the profile `local`, or `local+comet`, with the same heap for both; Comet must work."""
    from pyspark.sql import SparkSession

    from common.engine.comet import is_active

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(name)
    for key, value in (_profile(side, heap_gib) | dict(settings or {})).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        if is_active(spark) != (side == "comet"):
            raise SystemExit(f"{side}: Comet is {'not ' if side == 'comet' else ''}active")
        yield spark
    finally:
        spark.stop()


def _profile(side: str, heap_gib: int) -> dict[str, str]:
    from common.settings.profiles import load_profile

    profile = load_profile("local" if side == "spark" else "local+comet", folder=ROOT / "conf")
    settings = {key: setting.value for key, setting in profile.settings.items()}
    settings["spark.driver.memory"] = f"{heap_gib}g"
    return settings if side == "spark" else settings | _comet(heap_gib)


def _comet(heap_gib: int) -> dict[str, str]:
    import pyspark

    from common.engine.comet import prepare_comet
    from common.engine.java import check_java
    from common.engine.machine import read_machine
    from common.tuning.accelerator import RunFacts

    decision, added = prepare_comet(
        "comet",
        RunFacts("local", pyspark.__version__, read_machine(), heap_bytes=heap_gib * 1024**3),
        java=check_java().program,
        spark_home=str(Path(pyspark.__file__).parent),
    )
    if decision.choice != "comet":
        raise SystemExit(decision.line())
    return added


def from_process(script: str, *words: str) -> Generator[dict[str, Any], None, None]:
    """The JSON objects that a process of its own prints, one a line, as they come.

    Raises:
        SystemExit: it failed; with the end of what it said.
    """
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log,
        subprocess.Popen(
            [sys.executable, script, *words], stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith("{"):  # a JVM may warn on stdout
                    yield json.loads(line)
        except BaseException:  # nobody reads on
            process.terminate()
            raise
        if process.wait():
            log.seek(0)
            raise SystemExit(f"{' '.join(words)}: exit code {process.returncode}\n{log.read()[-4000:]}")


def compare_answers(runs: Mapping[tuple[str, str, str], Iterable[Mapping[str, Any]]]) -> int:
    """End if two ways gave other rows to one question; how many answers were compared.

    Args:
        runs: (question, side, way) to the lines of its runs, of which some have an "answer".

    Raises:
        SystemExit: naming both.
    """
    first: dict[str, tuple[str, Any]] = {}
    count = 0
    for (question, side, way), lines in runs.items():
        for line in lines:
            if "answer" not in line:
                continue
            name, answer = first.setdefault(question, (f"{side} {way}", line["answer"]))
            count += 1
            if answer != line["answer"]:
                raise SystemExit(f"{question}: the rows of {side} {way} differ from those of {name}")
    return count


def jvm_pid(spark: SparkSession) -> int:
    """The process of the session's JVM."""
    return int(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]


def jvm_cpu_seconds(spark: SparkSession) -> float:
    """What the JVM has used of all cores, native threads included; Linux tells, elsewhere it is 0."""
    stat = Path(f"/proc/{jvm_pid(spark)}/stat")
    if not stat.exists():
        return 0.0
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def peak_bytes(pid: int | str) -> int:
    """The largest resident set a process ("self": this one) has had; 0 where Linux does not tell."""
    return _status_bytes(pid, "VmHWM")


def forget_peak(pid: int | str) -> bool:
    """Let a process's peak begin anew with what it has now; False where the system cannot."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def own_bytes(pid: int | str) -> int:
    """What a process has for itself, without pages of files that it shares; 0 where Linux does not tell."""
    return _status_bytes(pid, "RssAnon")


def _status_bytes(pid: int | str, name: str) -> int:
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)
