"""A JVM that starts in half the time: an archive of classes, and for short jobs one compiler and collector.

fast_start        for a session of our own
submitted_start   for a driver that spark-submit starts
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from common.engine.class_archive import Archive, find_archive, keep_recording, launch_class_path
from common.engine.handle import Addition
from common.engine.java import check_java, spark_home
from common.tuning.decision import Decision

REQUIRES = frozenset({"classic"})

# The second compiler and a concurrent collector pay for themselves after minutes only.
_SHORT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_SHARING = re.compile(r"-XX:(?:SharedArchiveFile|ArchiveClassesAtExit|SharedClassListFile)=|-Xshare:")


def fast_start(decision: Decision, *, given: str = "") -> Addition:
    """What a session of our own is started with, as was decided ("fast" or "full").

    Args:
        decision: How the JVM starts.
        given: The options that the profile has for it.

    Raises:
        JavaError: Java is missing or too old.
    """
    java = check_java(os.environ)
    archive = None if _SHARING.search(given) else find_archive(java.home, str(spark_home(os.environ)))
    options = _short(decision, given=given)
    if archive is None:
        return Addition(java_options=options)
    return Addition(
        java_options=(*options, *archive.options()),
        opened=lambda spark: _keep(archive, spark, java=java.program),
    )


def _short(decision: Decision | None, *, given: str) -> tuple[str, ...]:
    """What a JVM of seconds is started with; a collector that the user has chosen stays the only one."""
    if decision is None or decision.choice != "fast":
        return ()
    return tuple(option for option in _SHORT if not (_COLLECTOR.match(option) and _COLLECTOR.search(given)))


@dataclass(frozen=True)
class SubmittedStart:
    """How spark-submit's JVM is started.

    Attributes:
        java_options: Its options.
        archive: The archive that it uses, or records at its end.
        java: The java that runs it.
        spark_home: Its Spark.
    """

    java_options: tuple[str, ...] = ()
    archive: Archive | None = None
    java: str = ""
    spark_home: str = ""

    def ended(self, exit_code: int, *, environ: Mapping[str, str]) -> None:
        """Have the archive kept that a JVM has recorded whose job went well; other ones lack classes.

        The driver's JVM is spark-submit's own process, which has written the archive before it ends.
        """
        if self.archive is None or self.archive.usable:
            return
        path = exit_code == 0 and launch_class_path(self.java, self.spark_home, environ=environ)
        if path:
            keep_recording(self.archive, jvm_pid=None, java=self.java, class_path=path)
        else:
            self.archive.recording.unlink(missing_ok=True)


def submitted_start(decision: Decision | None, *, given: str, archive_for: Path | None) -> SubmittedStart:
    """What a driver on this machine is started with.

    Args:
        decision: How the JVM starts; None for a driver whose work is on other machines.
        given: The options that the profile has for it.
        archive_for: Folder of the Spark whose classes it loads; None where no archive can be used or kept:
            something else comes first on the class path, or nobody waits for the JVM's end.

    Raises:
        JavaError: Java is missing or too old.
    """
    options = _short(decision, given=given)
    if archive_for is None or _SHARING.search(given):
        return SubmittedStart(options)
    java = check_java(os.environ)
    archive = find_archive(java.home, str(archive_for))
    if archive is None:
        return SubmittedStart(options)
    return SubmittedStart((*options, *archive.options()), archive, java.program, str(archive_for))


def _keep(archive: Archive, spark: SparkSession, *, java: str) -> None:
    """Have the archive kept that this session's JVM records when it ends."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return
    jvm: Any = spark.sparkContext._jvm
    class_path = str(jvm.java.lang.System.getProperty("java.class.path"))
    keep_recording(archive, jvm_pid=process.pid, java=java, class_path=class_path)
