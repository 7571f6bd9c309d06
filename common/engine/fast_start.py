"""A session of our own that starts in half the time: an archive of classes, one compiler, one collector."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from common.engine.class_archive import Archive, find_archive, keep_recording
from common.engine.handle import Addition
from common.engine.java import check_java
from common.tuning.decision import Decision

REQUIRES = frozenset({"classic"})

# The second compiler and a concurrent collector pay for themselves after minutes only.
_SHORT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def fast_start(decision: Decision) -> Addition:
    """What a session of our own is started with, as was decided ("fast" or "full").

    Raises:
        JavaError: Java is missing or too old.
    """
    java_home = check_java(os.environ).home
    archive = find_archive(java_home, os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent))
    options = _SHORT if decision.choice == "fast" else ()
    if archive is None:
        return Addition(java_options=options)
    return Addition(
        java_options=(*options, *archive.options()),
        opened=lambda spark: _keep(archive, spark, java=str(Path(java_home) / "bin" / "java")),
    )


def _keep(archive: Archive, spark: SparkSession, *, java: str) -> None:
    """Have the archive kept that this session's JVM records when it ends."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return
    jvm: Any = spark.sparkContext._jvm
    class_path = str(jvm.java.lang.System.getProperty("java.class.path"))
    keep_recording(archive, jvm_pid=process.pid, java=java, class_path=class_path)
