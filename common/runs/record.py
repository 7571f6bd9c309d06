"""The run record: one JSON per run that says what was asked, decided and done, and how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import secrets
import socket
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from common import __version__
from common.core.errors import (
    DifferenceError,
    ExitCode,
    FileCorruptError,
    FileUnreadableError,
    Interrupted,
    PathAbsentError,
    SeveralErrors,
    SuiteError,
    UsageError,
)
from common.core.files import replace_file
from common.core.masking import mask_tree

SCHEMA_VERSION: Final = 1
RUNS_DIR_VARIABLE: Final = "SALTPAN_RUNS_DIR"
Status = Literal["running", "ok", "failed", "interrupted", "different"]


def default_runs_dir(environ: Mapping[str, str] | None = None) -> Path:
    """$SALTPAN_RUNS_DIR, or the user's state folder; `environ` stands in for os.environ."""
    named = (os.environ if environ is None else environ).get(RUNS_DIR_VARIABLE)
    if named:
        return Path(named).expanduser()
    import platformdirs

    return platformdirs.user_state_path("saltpan", appauthor=False) / "runs"


def new_run_id(moment: datetime | None = None) -> str:
    """A name for a run that sorts by its start: UTC to the second, and six random hex digits.

    >>> new_run_id(datetime(2026, 12, 1, 23, 27, tzinfo=UTC))[:-6]
    '20261201T232700Z-'
    """
    moment = (moment or datetime.now(UTC)).astimezone(UTC)
    return f"{moment:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def load_record(path: Path) -> dict[str, Any]:
    """Read a run record.

    Raises:
        PathAbsentError: there is no such file.  FileUnreadableError: it may not be read.
        FileCorruptError: it is not a run record of a version that this suite knows.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise PathAbsentError("run record", str(path), expected="a file", got="nothing there") from error
    except OSError as error:
        got = error.strerror or str(error)
        raise FileUnreadableError("run record", str(path), expected="a readable file", got=got) from error
    expected = f"a run record of schema version {SCHEMA_VERSION}"
    try:
        record = json.loads(content)
    except ValueError as error:
        raise FileCorruptError(
            "run record", str(path), expected=expected, got=f"no JSON ({error})"
        ) from error
    version = record.get("schema_version") if isinstance(record, dict) else None
    if version != SCHEMA_VERSION:
        got = "other JSON" if version is None else f"version {version}"
        raise FileCorruptError("run record", str(path), expected=expected, got=got)
    return dict(record)


@dataclass
class RunRecord:
    """What one run tells about itself; fields are filled while it runs, `finish` closes it.

    Secrets are masked when it is written, not before: `not_applied` and `configuration` by their keys.

    Attributes:
        run_id: See `new_run_id`.
        job: The job's name.
        runs_dir: Where the file is.
        arguments: argv or settings, as typed.
        configuration: What was in force, key by key.
        not_applied: Configuration that was asked for and is not in force, see `add_not_applied`.
        versions: engine, spark, java, plugin; None when there is none. The suite's and Python's are known.
        application_id: Spark's id of the application.
        ui_address: Its UI or history page.
        inputs: One mapping per input: paths, files, bytes, fingerprint.
        decisions: `Decision.record()` of each choice.
        counters: Named counts of the job, exact.
        miscounted: What a plain accumulator or observation says of them where that differs, and why.
        rows_in: Rows read over all inputs.
        rows_out: Rows of the answer.
        seconds: Wall time per phase, see `phase`.
        stages: How level the work of the answer was, stage by stage; the 50 with the most work.
        replayed_seconds: Wall time of all their tasks by number of cores, see `waves` and `replayed_seconds`.
        stages_missing: Why there are no stages; None when they were looked for.
        verification: What --verify compared, and its result.
        output: What was published where.
    """

    run_id: str
    job: str
    runs_dir: Path
    arguments: Sequence[str] | Mapping[str, Any] = ()
    configuration: Mapping[str, Any] = field(default_factory=dict)
    not_applied: list[dict[str, Any]] = field(default_factory=list)
    versions: Mapping[str, str | None] = field(default_factory=dict)
    application_id: str | None = None
    ui_address: str | None = None
    inputs: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[dict[str, Any]] = field(default_factory=list)
    counters: dict[str, int | float | str | None] = field(default_factory=dict)
    miscounted: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows_in: int | None = None
    rows_out: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    stages: list[dict[str, Any]] = field(default_factory=list)
    replayed_seconds: dict[str, float] = field(default_factory=dict)
    stages_missing: str | None = None
    verification: dict[str, Any] | None = None
    output: dict[str, Any] | None = None
    _started: datetime = field(default_factory=lambda: datetime.now(UTC))
    _clock_start: float = field(default_factory=time.monotonic)
    _failed_phase: str | None = None

    @classmethod
    def start(
        cls,
        job: str,
        *,
        runs_dir: Path | str | None = None,
        arguments: Sequence[str] | Mapping[str, Any] = (),
        configuration: Mapping[str, Any] | None = None,
        run_id: str | None = None,
    ) -> RunRecord:
        """Begin the record and write it with status running, this process and this host.

        Raises:
            UsageError: the folder cannot be written.
        """
        record = cls(
            run_id=run_id or new_run_id(),
            job=job,
            runs_dir=Path(runs_dir).expanduser() if runs_dir else default_runs_dir(),
            arguments=arguments,
            configuration=configuration or {},
        )
        record.save()
        return record

    @property
    def path(self) -> Path:
        """The record's file."""
        return self.runs_dir / f"{self.run_id}-{re.sub(r'[^A-Za-z0-9_.-]+', '_', self.job)}.json"

    def add_not_applied(self, key: str, *, asked: Any, effective: Any, why: str) -> None:
        """Note that a configuration key was asked for and does not hold."""
        self.not_applied.append({"key": key, "asked": asked, "effective": effective, "why": why})

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the wall time of the block to a phase; an error inside names the phase in the outcome."""
        begin = time.monotonic()
        try:
            yield
        except BaseException:
            self._failed_phase = self._failed_phase or name
            raise
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - begin

    def save(self) -> Path:
        """Write the record as it stands, status running, so that a killed run leaves what was known.

        Raises:
            UsageError: the folder cannot be written.
        """
        return self._write({"status": "running", "exit_code": None, "phase": None, "error": None})

    def finish(
        self,
        error: BaseException | Mapping[str, Any] | None = None,
        *,
        status: Status | None = None,
        exit_code: int | None = None,
    ) -> Path:
        """Replace the file by the finished record.

        Args:
            error: What ended the run early, or what to say of it; None when it ended well.
            status: Told from the error when not given.
            exit_code: The process's exit code; told from the error when not given.

        Raises:
            UsageError: the folder cannot be written any more.
        """
        told_status, told_code = outcome_of(error)
        outcome = {
            "status": status or told_status,
            "exit_code": int(told_code if exit_code is None else exit_code),
            "phase": None if error is None else self._failed_phase,
            "error": _error_record(error) if isinstance(error, BaseException) else error,
        }
        return self._write(outcome)

    def _write(self, outcome: dict[str, Any]) -> Path:
        running = outcome["status"] == "running"
        own = {"run_id", "job", "runs_dir", "versions", "seconds"}
        names = (item.name for item in fields(self) if item.name not in own and not item.name.startswith("_"))
        content = {
            "schema_version": SCHEMA_VERSION,
            "run_id": self.run_id,
            "job": self.job,
            "started_at": _utc_text(self._started),
            "finished_at": None if running else _utc_text(datetime.now(UTC)),
            "total_seconds": None if running else round(time.monotonic() - self._clock_start, 3),
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "versions": {
                **dict.fromkeys(("suite", "engine", "spark", "python", "java", "plugin")),
                "suite": __version__,
                "python": platform.python_version(),
                **self.versions,
            },
            **{name: getattr(self, name) for name in names},
            "seconds": {name: round(seconds, 3) for name, seconds in self.seconds.items()},
            "outcome": outcome,
        }
        text = json.dumps(mask_tree(content), indent=2, ensure_ascii=False, allow_nan=False)
        try:
            replace_file(self.path, text)
        except OSError as error:
            raise UsageError(
                "flag",
                "--runs-dir",
                expected="a folder that can be written",
                got=f"{self.runs_dir} ({error.strerror or error})",
                hint=f"name another one with --runs-dir or ${RUNS_DIR_VARIABLE}",
            ) from error
        return self.path


def outcome_of(error: BaseException | Mapping[str, Any] | None) -> tuple[Status, int]:
    """Status and exit code of a run that ended so; None when it ended well."""
    match error:
        case None:
            return "ok", ExitCode.OK
        case Interrupted():
            return "interrupted", error.exit_code
        case KeyboardInterrupt():
            return "interrupted", ExitCode.SIGINT
        case DifferenceError():
            return "different", error.exit_code
        case SuiteError():
            return "failed", error.exit_code
    return "failed", ExitCode.BUG


def _error_record(error: BaseException) -> dict[str, Any]:
    record: dict[str, Any] = {"type": type(error).__name__, "text": _text(error)}
    if isinstance(error, SuiteError):
        record |= error.attributes()
    elif isinstance(error, Exception):
        record["traceback"] = "".join(traceback.format_exception(error))
    if isinstance(error, SeveralErrors):
        record["problems"] = [_error_record(problem) for problem in error.problems]
    if error.__cause__ is not None:
        record["cause"] = _error_record(error.__cause__)
    return record


def _text(error: BaseException) -> str:
    """The error's text; one of Spark's asks the JVM for it, which may be gone."""
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001  an assertion, a network error: the record is written all the same
        return f"no text: {type(failure).__name__}"


def _utc_text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
