"""The only sessions: opened here, or taken over from spark-submit and given back as they were."""

from __future__ import annotations

import logging
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import SparkSession

from common import __version__
from common.engine.chatter import Classifier, captured_stderr
from common.engine.installation import prepare_installation
from common.engine.package import worker_package
from common.settings.profiles import BASE, Profile, Setting

REQUIRES = frozenset({"classic"})

EngineName = Literal["local", "submit", "existing"]

# What classic Spark can do; strategies name what they need of it.
CAPABILITIES = frozenset({"classic", "rdd", "accumulator", "broadcast_variable", "observe", "adaptive"})

_LOG = logging.getLogger("saltpan.engine")
_SPARK_LOG = logging.getLogger("saltpan.spark")

# Date, time and level before what Spark logs: the suite's log has its own.
_STAMP = re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d [A-Z]+ ")


@dataclass(frozen=True)
class NotApplied:
    """A setting that was asked for and is not in force."""

    key: str
    asked: str
    effective: str | None
    why: str


@dataclass(frozen=True)
class Engine:
    """A session and what is known about it.

    Attributes:
        spark: The session.
        name: "local" (ours), "submit" (spark-submit's), "existing" (some caller's).
        not_applied: Settings that were asked for and could not be applied.
    """

    spark: SparkSession
    name: EngineName
    not_applied: tuple[NotApplied, ...]

    @property
    def configuration(self) -> dict[str, str]:
        """The settings in force, as Spark reports them."""
        return dict(sorted(self.spark.conf.getAll.items()))

    @property
    def core_count(self) -> int:
        """Task slots, as far as Spark knows them now."""
        return int(self.spark.sparkContext.defaultParallelism)

    @property
    def versions(self) -> dict[str, str]:
        """Versions of all that takes part in an answer."""
        jvm: Any = self.spark.sparkContext._jvm
        return {
            "suite": __version__,
            "engine": f"spark ({self.name})",
            "spark": self.spark.version,
            "python": platform.python_version(),
            "java": str(jvm.java.lang.System.getProperty("java.version")),
        }

    @property
    def application_id(self) -> str:
        """Spark's id of the application."""
        return str(self.spark.sparkContext.applicationId)

    @property
    def ui_address(self) -> str | None:
        """Address of Spark's own pages, if they are on."""
        return self.spark.sparkContext.uiWebUrl

    def describe(self, text: str) -> None:
        """Name the work that follows in Spark's own pages."""
        self.spark.sparkContext.setJobDescription(text)

    def cancel(self) -> None:
        """Ask Spark to stop all that runs; harmless when the JVM is gone."""
        try:
            self.spark.sparkContext.cancelAllJobs()
        except Exception as error:  # noqa: BLE001  py4j raises many kinds when the JVM is gone, which is the aim
            _LOG.debug("cancelling: %s", error)


def default_profile(environ: Mapping[str, str]) -> str:
    """The profile when none is named: "local"; under spark-submit the base, the rest is the session's."""
    return BASE if under_submit(environ) else "local"


def under_submit(environ: Mapping[str, str]) -> bool:
    """True when spark-submit started this process, and its session is waiting."""
    return "PYSPARK_GATEWAY_PORT" in environ


@contextmanager
def open_engine(app_name: str, profile: Profile, *, show_all: bool = False) -> Iterator[Engine]:
    """A session with the profile applied; stopped, or given back as it was, at the end.

    Args:
        app_name: The application's name in Spark's pages.
        profile: Settings to start with, or to apply as far as a session that exists allows.
        show_all: Let everything that Spark says through to the log.

    Raises:
        JavaError: Java is missing or too old.
        InstallationError: Spark or the workers' Python are not of one version.
    """
    with ExitStack() as stack:
        existing = SparkSession.getActiveSession()
        if existing is None and not under_submit(os.environ):
            spark = stack.enter_context(_own_session(app_name, profile, show_all=show_all))
            engine = Engine(spark, "local", _compare(spark, profile))
        else:
            name: EngineName = "existing" if existing is not None else "submit"
            spark = existing or _submitted_session(app_name, show_all=show_all)
            engine = Engine(spark, name, stack.enter_context(_applied(spark, profile)))
        _ship_package(spark, stack)
        yield engine


@contextmanager
def _own_session(app_name: str, profile: Profile, *, show_all: bool) -> Iterator[SparkSession]:
    prepare_installation(os.environ)
    builder = SparkSession.builder.appName(app_name)
    for setting in profile.settings.values():
        builder = builder.config(setting.key, setting.value)
    if "spark.pyspark.python" not in profile.settings and "PYSPARK_PYTHON" not in os.environ:
        builder = builder.config("spark.pyspark.python", sys.executable)
    builder = builder.config("spark.driver.extraJavaOptions", _java_options(profile))
    with captured_stderr(_Relay(show_all=show_all)):
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("INFO" if show_all else "WARN")
    try:
        yield spark
    finally:
        spark.stop()


def _submitted_session(app_name: str, *, show_all: bool) -> SparkSession:
    prepare_installation(os.environ)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.appName(app_name).getOrCreate()
    if not show_all:
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def _java_options(profile: Profile) -> str:
    """The profile's options, after the time zone in which all answers are given."""
    return f"-Duser.timezone=UTC {profile.value('spark.driver.extraJavaOptions')}".strip()


class _Relay:
    """Hands what Spark says to the suite's log: warnings and errors always, the rest when asked."""

    def __init__(self, *, show_all: bool) -> None:
        self._show_all = show_all
        self._classifier = Classifier()

    def __call__(self, line: str) -> None:
        kind = self._classifier.classify(line)
        level = {"error": logging.ERROR, "warning": logging.WARNING}.get(kind, logging.DEBUG)
        if kind != "noise" or self._show_all:
            _SPARK_LOG.log(level, "Spark: %s", _STAMP.sub("", line))


def _compare(spark: SparkSession, profile: Profile) -> tuple[NotApplied, ...]:
    """Settings of our own session that Spark reports otherwise than asked."""
    # Spark rewrites these itself: the master's `*`, the options that carry our own additions.
    ours = {"spark.driver.extraJavaOptions"}
    return tuple(
        _not_applied(setting, effective, "Spark reports another value")
        for setting in profile.settings.values()
        if setting.key not in ours
        and (effective := _effective(spark, setting.key)) is not None
        and effective != setting.value
    )


@contextmanager
def _applied(spark: SparkSession, profile: Profile) -> Iterator[tuple[NotApplied, ...]]:
    """Set what a running session takes; afterwards every value is back to what its owner had."""
    given = dict(spark.sparkContext.getConf().getAll())
    before: dict[str, str | None] = {}
    not_applied = []
    for setting in profile.settings.values():
        effective = _effective(spark, setting.key)
        if effective == setting.value:
            continue
        if setting.layer == BASE and setting.key in given:
            not_applied.append(_not_applied(setting, effective, "the session was started with its own value"))
        elif spark.conf.isModifiable(setting.key):
            before[setting.key] = effective
            spark.conf.set(setting.key, setting.value)
        else:
            not_applied.append(_not_applied(setting, effective, "only a new session can take it"))
    try:
        yield tuple(not_applied)
    finally:
        _restore(spark, before)


def _restore(spark: SparkSession, before: Mapping[str, str | None]) -> None:
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


def _effective(spark: SparkSession, key: str) -> str | None:
    return spark.conf.getAll.get(key)


def _not_applied(setting: Setting, effective: str | None, why: str) -> NotApplied:
    return NotApplied(setting.key, setting.value, effective, why)


def _ship_package(spark: SparkSession, stack: ExitStack) -> None:
    """Make `common` importable on the workers, wherever the job was started from."""
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="saltpan-"))
    spark.sparkContext.addPyFile(str(worker_package(folder)))
