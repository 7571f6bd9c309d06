"""What Spark's JVM says on stderr: caught line by line, classified, its tail kept for the day it dies."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

Level = Literal["noise", "info", "warning", "error"]

TAIL_LINES = 200


class _Known(NamedTuple):
    pattern: re.Pattern[str]
    level: Level
    reason: str


def _known(level: Level, pattern: str, reason: str) -> _Known:
    return _Known(re.compile(pattern), level, reason)


_KNOWN = (
    _known("noise", r"^WARNING: Using incubator modules", "Spark asks for the vector module itself"),
    _known("noise", r"\bUsing Spark's default log4j profile", "a choice, not an event"),
    _known("noise", r"^Setting default log level to|^To adjust logging level use", "how to use a shell"),
    _known("noise", r" NativeCodeLoader: Unable to load native-hadoop", "the Java code does the same"),
    _known("noise", r" Utils: Your hostname, .* resolves to a loopback", "right for a local session"),
    _known("noise", r" Utils: Set SPARK_LOCAL_IP if you need", "the second half of the loopback line"),
    _known("noise", r"^\s*\[Stage \d+:", "Spark's own progress bar; the suite has one"),
    _known("noise", r"^SLF4J: ", "which logger is bound"),
    _known("noise", r" (?:SparkStringUtils|package): Truncated the string representation", "debug text only"),
    _known("noise", r" HiveConf: HiveConf of name .* does not exist", "keys that Hive no longer reads"),
    _known("noise", r" ObjectStore: (?:Version information not found|Failed to get database)", "first start"),
    _known("noise", r" GarbageCollectionMetrics: To enable non-built-in", "which metrics exist"),
    _known(
        "noise", r" ProcfsMetricsGetter: Exception when trying to compute pagesize", "which metrics exist"
    ),
    _known("noise", r" Executor: Exception in task [\d.]+ in stage", "the driver raises the same error"),
    _known(
        "noise", r" TaskSetManager: Task \d+ in stage [\d.]+ failed .*; aborting job", "the driver raises it"
    ),
    _known("noise", r" (?:Utils: Aborting task|FileFormatWriter: (?:Aborting job|Job .* aborted))", "same"),
    _known("noise", r" TaskSetManager: Lost task .*TaskKilled", "killed because another task failed"),
    _known("noise", r"Sharing is only supported for boot loader classes", "of the start-up archive"),
    _known(
        "info", r" WindowExec: No Partition Defined for Window", "the decision says when one task ranks all"
    ),
    _known("info", r" TaskSetManager: Lost task .* executor driver\):", "one machine does not try again"),
    _known("info", r"^\[[\d.]+s\]\[warning\]\[cds", "a start-up archive that is not used only costs time"),
    _known("info", r"^Picked up (?:_JAVA|JAVA_TOOL|JDK_JAVA)_OPTIONS", "where options came from"),
    _known("info", r"^:: |^\tconfs: |^Ivy Default Cache|^The jars for the packages", "package resolution"),
    _known("info", r" Utils: Service '\w+' could not bind on port", "the next port is taken"),
    _known("info", r" SparkSession: Using an existing Spark session", "the suite lists what is not applied"),
    _known("info", r" CacheManager: Asked to cache already cached data", "nothing happens twice"),
    _known("info", r" MemoryManager: Total allocation exceeds", "Parquet shrinks its buffers itself"),
    _known("info", r" DAGScheduler: Broadcasting large task binary", "slower, never wrong"),
    _known("error", r"^JAVA_HOME is not set|^Error: |^Exception in thread ", "the launcher gives up"),
    _known("error", r"^Error occurred during initialization of VM|^# A fatal error", "the JVM gives up"),
    _known("error", r"^java\.lang\.OutOfMemoryError", "of which the JVM may die before it tells the driver"),
    _known("error", r"^Traceback \(most recent call last\):", "a Python worker's own stderr"),
    _known("error", r"^\S*spark-class: line \d+: |^\S*java: .*not found", "the launcher's shell"),
    _known("warning", r"^(?:OpenJDK|Java HotSpot).* warning: |^WARNING: ", "the JVM's own"),
)
_LOGGED = re.compile(
    r"^(?:\d\d(?:\d\d)?[/-]\d\d[/-]\d\d )?\d\d:\d\d:\d\d\S* (?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "
)
_LEVELS: dict[str, Level] = {"WARN": "warning", "ERROR": "error", "FATAL": "error"}
_CONTINUES = re.compile(r"^\s|^$|^Caused by: |^Suppressed: |^== SQL|^\^+$|^[\w.$]+(?:Exception|Error)(?::|$)")


def classify(line: str) -> Level:
    """What a line of the JVM's stderr is worth; lines of a stack trace alone are "info".

    >>> classify("26/12/01 10:00:00 WARN TaskSetManager: Lost task 1.0 in stage 1.0 (TID 2)")
    'warning'
    >>> classify("WARNING: Using incubator modules: jdk.incubator.vector")
    'noise'
    """
    return _first_line(line) or "info"


class Classifier:
    """Classifies lines in their order: what continues an entry (a stack trace) is worth what its start is."""

    def __init__(self) -> None:
        self._level: Level = "info"
        self._inside = False

    def classify(self, line: str) -> Level:
        """The level of the next line."""
        level = _first_line(line)
        if level is not None:
            self._level, self._inside = level, False
        elif _CONTINUES.match(line):
            self._inside = True
        elif not self._inside and self._level == "noise":
            self._level = "info"  # an unknown line after a one-line entry is no part of it
        return self._level


def _first_line(line: str) -> Level | None:
    """The level of a line that starts an entry; None when it may continue one or is unknown."""
    for known in _KNOWN:
        if known.pattern.search(line):
            return known.level
    logged = _LOGGED.match(line)
    return _LEVELS.get(logged["level"], "info") if logged else None


class Capture:
    """The lines of one JVM: the last ones are kept, all are handed on once the launch is over."""

    def __init__(self, handler: Callable[[str], None]) -> None:
        self._handler = handler
        self._last: deque[str] = deque(maxlen=TAIL_LINES)
        self._waiting: list[str] | None = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def tail(self, *, wait_seconds: float = 1.0) -> tuple[str, ...]:
        """The last lines, oldest first; waits a little for those that are still on their way."""
        if self._thread is not None:
            self._thread.join(wait_seconds)
        with self._lock:
            return tuple(self._last)

    def _read(self, descriptor: int) -> None:
        # Universal newlines: Spark's progress bar ends its lines with carriage returns.
        with open(descriptor, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                self._take(line.rstrip("\r\n"))

    def _take(self, line: str) -> None:
        with self._lock:
            self._last.append(line)
            if self._waiting is not None:
                self._waiting.append(line)
                return
        self._hand_on(line)

    def _hand_on(self, line: str) -> None:
        try:
            self._handler(line)
        except Exception:  # the JVM must never block on a pipe that nobody reads
            logging.getLogger("saltpan.spark").debug("could not handle: %s", line, exc_info=True)

    def _start(self, descriptor: int) -> None:
        self._thread = threading.Thread(
            target=self._read, args=(descriptor,), name="spark-stderr", daemon=True
        )
        self._thread.start()

    def _release(self) -> None:
        """Hand on what came during the launch, in order, and let later lines through as they come."""
        while True:
            with self._lock:
                lines, self._waiting = self._waiting or [], []
                if not lines:
                    self._waiting = None
                    return
            for line in lines:
                self._hand_on(line)


@contextlib.contextmanager
def captured_stderr(handler: Callable[[str], None]) -> Iterator[Capture]:
    """Give processes started inside the block a stderr that comes back line by line.

    For as long as the block runs, the descriptors of stderr and stdout are a pipe, which a JVM launched
    meanwhile keeps for its life: a JVM that cannot start says so on stdout, where only data belongs.
    Python's own streams go on to the real ones. Lines wait for the end of the block (a handler that logs
    would otherwise read its own lines); afterwards a daemon thread hands them on as they come.

    Args:
        handler: Called with each line, without its end; in another thread, except at the end of the block.

    Yields:
        The capture, whose `tail` shows what the JVM said last when the block fails.
    """
    capture = Capture(handler)
    try:
        os.fstat(1), os.fstat(2)
    except OSError:  # one is closed, and a pipe would take its number: nothing is caught
        yield capture
        return
    reading, writing = os.pipe()
    capture._start(reading)
    try:
        with _diverted("stdout", writing), _diverted("stderr", writing):
            os.close(writing)  # the pipe ends with the last process that has it
            yield capture
    finally:
        capture._release()


@contextlib.contextmanager
def _diverted(name: Literal["stdout", "stderr"], target: int) -> Iterator[None]:
    """Point the descriptor of a standard stream elsewhere; Python's own stream stays where it was."""
    number = {"stdout": 1, "stderr": 2}[name]
    before = os.dup(number)
    ours = getattr(sys, name)
    with contextlib.suppress(OSError, ValueError, AttributeError):  # it may be no file, or closed
        ours.flush()
        if ours.fileno() == number:
            setattr(sys, name, open(before, "w", buffering=1, errors=ours.errors, closefd=False))  # noqa: SIM115
    os.dup2(target, number)
    try:
        yield
    finally:
        os.dup2(before, number)
        if getattr(sys, name) is not ours:
            getattr(sys, name).flush()
            setattr(sys, name, ours)
        os.close(before)


def silence_query_loggers() -> None:
    """Keep PySpark from printing every query error as a JSON line of some kilobytes besides raising it."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
