"""What stops a run besides its query: memory, disks, lost processes, servers; in the suite's errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from common.core.errors import (
    EngineError,
    InstallationError,
    JavaError,
    OutputUnwritableError,
    SuiteError,
)
from common.engine.clues import Clue, place

_MEMORY = "raise spark.driver.memory (spark.executor.memory on a cluster), or give more partitions"


class Known(NamedTuple):
    """One kind of trouble: how its text is recognised, and how the suite says it.

    The pattern's first group, where it has one, is the name that is shown.
    """

    pattern: str
    what: str
    name: str
    expected: str
    hint: str | None
    leaf: type[SuiteError] = EngineError


# In this order: a full disk is told by the I/O error inside a failed task inside a stopped context.
_KNOWN = (
    Known(
        r"No space left on device|Disk quota exceeded",
        "disk",
        "spark.local.dir",
        "free space for shuffles, spills and the output",
        "point spark.local.dir at a larger disk, or free this one",
    ),
    Known(
        r"bigger than (spark\.driver\.maxResultSize|local result size limit)",
        "result",
        "spark.driver.maxResultSize",
        "rows that fit the driver",
        "write them with --output instead of collecting them, or raise the key",
    ),
    Known(
        r"Not enough memory to build and broadcast|Cannot broadcast the table",
        "broadcast",
        "join",
        "a table that fits the memory of one process",
        "set spark.sql.autoBroadcastJoinThreshold=-1, or force a shuffled join",
    ),
    Known(
        r"Could not execute broadcast in \d+ secs",
        "broadcast",
        "join",
        "a broadcast within spark.sql.broadcastTimeout",
        "set spark.sql.autoBroadcastJoinThreshold=-1, or raise spark.sql.broadcastTimeout",
    ),
    Known(
        r"OutOfMemoryError|Java heap space|GC overhead limit|UNABLE_TO_ACQUIRE_MEMORY|_OUT_OF_MEMORY\b",
        "memory",
        "JVM heap",
        "enough of it",
        _MEMORY,
    ),
    Known(
        r"ExecutorLostFailure|[Cc]ontainer killed|exit code 137|Executor heartbeat timed out",
        "executor",
        "lost",
        "executors that live through their tasks",
        "raise spark.executor.memoryOverhead or spark.executor.memory, or give more partitions",
    ),
    Known(
        r"SPARK_JOB_CANCELLED|OPERATION_CANCELED|Job \d+ cancelled (?!because)",
        "Spark job",
        "cancelled",
        "a job that runs to its end",
        None,
    ),
    Known(
        r"SparkContext was shut down|stopped SparkContext|SparkSession\.sparkContext\(\)\" because|"
        r"SESSION_CLOSED|SESSION_CHANGED|SESSION_NOT_FOUND",
        "Spark session",
        "stopped",
        "a session that outlives the query",
        f"Spark's last log lines name the cause; if memory ran out, {_MEMORY}",
    ),
    Known(
        r"JAVA_GATEWAY_EXITED",
        "Spark JVM",
        "not started",
        "a JVM that starts",
        "Spark's log lines name the cause; `saltpan doctor start` checks Java, Spark and the machine",
    ),
    Known(
        r"getSubject is (?:not supported|supported only)|class file version",
        "Java",
        "version",
        "a Java that this Spark runs on",
        "use Java 17 or 21",
        JavaError,
    ),
    Known(
        r"Cannot run program \"([^\"]+)\"",
        "program",
        "python",
        "a program on every worker",
        "set PYSPARK_PYTHON to a Python that the workers have",
        InstallationError,
    ),
    Known(
        r"(?:Mkdirs failed to create|Parent path is not a directory:) (\S+?)(?:/_temporary\S*)?(?:\s|$)"
        r"|(?:mkdir|rename|create).*Permission denied",
        "output",
        "folder",
        "a folder that may be written",
        None,
        OutputUnwritableError,
    ),
    Known(
        r"Python worker exited unexpectedly",
        "Python worker",
        "ended",
        "workers that live through their tasks",
        "the system may have killed it for its memory: give more partitions or a larger memoryOverhead",
    ),
    Known(
        r"Kryo serialization failed|KRYO_BUFFER_OVERFLOW",
        "buffer",
        "spark.kryoserializer.buffer.max",
        "room for the largest record",
        "raise spark.kryoserializer.buffer.max",
    ),
    Known(
        r"FetchFailed|MetadataFetchFailed|has failed the maximum allowable number of times",
        "shuffle",
        "fetch",
        "shuffle files that can be fetched",
        "executors were lost: raise their memory or memoryOverhead",
    ),
    Known(
        r"UNAVAILABLE|failed to connect to all addresses|[Cc]onnection refused|UnknownHostException",
        "server",
        "connection",
        "a server that answers",
        "check its address and that it runs",
    ),
)
_GATEWAY = re.compile(r"Py4JNetworkError|Answer from Java side is empty|^Connection\w*Error|^EOFError")


def jvm_failure(clues: Sequence[Clue]) -> SuiteError | None:
    """The Java process is gone: the outermost error is the gateway's own."""
    if clues and _GATEWAY.search(clues[0].kind + " " + clues[0].text):
        hint = "its last log lines name the cause; killed for memory is the most frequent one"
        return EngineError(
            "process", "Spark JVM", expected="it to live through the run", got="it ended", hint=hint
        )
    return None


def machine_failure(clues: Sequence[Clue]) -> SuiteError | None:
    """The first kind of trouble that any clue tells, the kinds in their order."""
    for known in _KNOWN:
        for clue in reversed(clues):
            found = re.search(known.pattern, f"{clue.kind}: [{clue.condition}] {clue.text}")
            if found:
                name = place(found[1]) if found.re.groups and found[1] else known.name
                got = clue.phrase if clue.phrase != clue.kind else found[0]
                return known.leaf(known.what, name, expected=known.expected, got=got, hint=known.hint)
    return None
