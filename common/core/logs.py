"""The suite's log: one stdlib logger, one handler on stderr, every word of it masked."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, Final, Literal, TextIO

from common.core.masking import mask_text, mask_tree
from common.core.progress import write_line

ROOT: Final = "saltpan"
LogFormat = Literal["text", "json"]

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def logger(name: str = "") -> logging.Logger:
    """The suite's logger, or a child of it for one module or job.

    >>> logger("runs").name
    'saltpan.runs'
    """
    return logging.getLogger(f"{ROOT}.{name}" if name else ROOT)


def configure_logs(
    *,
    format: LogFormat = "text",  # noqa: A002  the flag's own name
    verbosity: int = 0,
    stream: TextIO | None = None,
    run_id: str | None = None,
) -> None:
    """Send the suite's log to one stream; calling it again replaces what was set before.

    Args:
        format: "text" for people, "json" for one object a line.
        verbosity: Below 0 (-q) warnings only, 0 information, above 0 (-v) our debug messages too.
        stream: sys.stderr of the moment when not given.
        run_id: Goes into every JSON line; `bind_run` sets it later.
    """
    root = logging.getLogger(ROOT)
    for handler in list(root.handlers):
        if isinstance(handler, _ConsoleHandler):
            root.removeHandler(handler)
    root.addHandler(_ConsoleHandler(stream, _JsonFormatter(run_id) if format == "json" else _TextFormatter()))
    root.setLevel(logging.WARNING if verbosity < 0 else logging.DEBUG if verbosity else logging.INFO)
    root.propagate = False  # a platform's root handlers would print it again, unmasked
    # py4j logs a traceback for every call that a signal or the end of the JVM interrupts, some of them to the
    # root logger; it raises the same, and that is handled.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return PurePath(record.pathname).parent.name != "py4j"


def bind_run(run_id: str | None) -> None:
    """Name the run that later JSON lines belong to."""
    for handler in logging.getLogger(ROOT).handlers:
        if isinstance(handler.formatter, _JsonFormatter):
            handler.formatter.run_id = run_id


class _ConsoleHandler(logging.Handler):
    """Writes whole lines above the progress line."""

    def __init__(self, stream: TextIO | None, formatter: logging.Formatter) -> None:
        super().__init__()
        self._stream = stream
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        write_line(self.format(record), stream=self._stream or sys.stderr)


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno == logging.INFO else f"{record.levelname}: "
        trouble = _exception_text(record)
        return f"{level}{_message(record)}" + (f"\n{trouble}" if trouble else "")


class _JsonFormatter(logging.Formatter):
    def __init__(self, run_id: str | None) -> None:
        super().__init__()
        self.run_id = run_id

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
            "run_id": self.run_id,
        }
        extra = {key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS}
        for key, value in mask_tree(extra).items():
            line[f"{key}_" if key in line else key] = value
        trouble = _exception_text(record)
        if trouble:
            line["exception"] = trouble
        return json.dumps(line, allow_nan=False)


def _message(record: logging.LogRecord) -> str:
    try:
        message = record.getMessage()
    except (
        TypeError,
        ValueError,
        KeyError,
    ):  # arguments that do not fit: logging itself would print them unmasked
        message = f"{record.msg} {record.args}"
    return mask_text(message)


def _exception_text(record: logging.LogRecord) -> str:
    """The traceback, and the stack if asked for; not cached on the record, where other handlers look."""
    parts = []
    if record.exc_info and record.exc_info[1]:
        parts.append("".join(traceback.format_exception(record.exc_info[1])).rstrip("\n"))
    if record.stack_info:
        parts.append(record.stack_info)
    return mask_text("\n".join(parts))
