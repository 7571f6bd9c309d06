"""The only sessions: opened here, or taken over from spark-submit and given back as they were."""

from __future__ import annotations

import logging
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from common import __version__
from common.engine.chatter import Classifier, captured_stderr, classify, silence_query_loggers
from common.engine.installation import foreign_common, prepare_installation
from common.engine.package import worker_package
from common.settings.profiles import BASE, Profile, Setting

REQUIRES = frozenset({"classic"})

EngineName = Literal["local", "submit", "existing"]

# What classic Spark can do; strategies name what they need of it.
CAPABILITIES = frozenset({"classic", "rdd", "accumulator", "broadcast_variable", "observe", "adaptive"})

_LOG = logging.getLogger("saltpan.engine")
_SPARK_LOG = logging.getLogger("saltpan.spark")

# Date, time and level before what Spark logs: the suite's log has its own.
_STAMP = re.compile(r"^(?:\d\d/\d\d/\d\d )?\d\d:\d\d:\d\d [A-Z]+ ")


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
def open_engine(
    app_name: str, profile: Profile, *, log_config: Path | None = None, show_all: bool = False
) -> Iterator[Engine]:
    """A session with the profile applied; stopped, or given back as it was, at the end.

    Args:
        app_name: The application's name in Spark's pages.
        profile: Settings to start with, or to apply as far as a session that exists allows.
        log_config: Log4j properties for a JVM that has none of its own.
        show_all: Let everything that Spark says through to the log.

    Raises:
        JavaError: Java is missing or too old.
        InstallationError: Spark or the workers' Python are not of one version.
    """
    with ExitStack() as stack:
        if not show_all:
            silence_query_loggers()  # the suite says it in one sentence
        stack.enter_context(_worker_python(profile.value("spark.pyspark.python")))
        existing = SparkSession.getActiveSession()
        if existing is None and not under_submit(os.environ):
            builder = _builder(app_name, profile, log_config=None if show_all else log_config)
            spark = stack.enter_context(_own_session(builder, show_all=show_all))
            engine = Engine(spark, "local", _compare(spark, profile))
        else:
            name: EngineName = "existing" if existing is not None else "submit"
            spark = existing or _submitted_session(app_name, log_config=None if show_all else log_config)
            engine = Engine(spark, name, stack.enter_context(_applied(spark, profile)))
        _ship_package(spark)
        yield engine


def _builder(app_name: str, profile: Profile, *, log_config: Path | None) -> SparkSession.Builder:
    builder = SparkSession.builder.appName(app_name)
    for setting in profile.settings.values():
        builder = builder.config(setting.key, setting.value)
    # All answers are given in UTC; what the profile says comes later and wins.
    options = ["-Duser.timezone=UTC", profile.value("spark.driver.extraJavaOptions")]
    if log_config is not None:
        options.insert(0, f"-Dlog4j2.configurationFile={log_config.resolve().as_uri()}")
    return builder.config("spark.driver.extraJavaOptions", " ".join(filter(None, options)))


@contextmanager
def _worker_python(named: str) -> Iterator[None]:
    """Workers run the driver's Python unless told otherwise; else it would be the first python3 on PATH.

    The variable is what PySpark looks at: it reads `spark.pyspark.python` under spark-submit only.
    """
    if "PYSPARK_PYTHON" in os.environ:
        yield
        return
    os.environ["PYSPARK_PYTHON"] = named or sys.executable
    try:
        yield
    finally:
        del os.environ["PYSPARK_PYTHON"]


@contextmanager
def _own_session(builder: SparkSession.Builder, *, show_all: bool) -> Iterator[SparkSession]:
    prepare_installation(os.environ)
    with captured_stderr(_Relay(show_all=show_all)):
        spark = builder.getOrCreate()
    if show_all:
        spark.sparkContext.setLogLevel("INFO")
    try:
        yield spark
    finally:
        spark.stop()


def _submitted_session(app_name: str, *, log_config: Path | None) -> SparkSession:
    prepare_installation(os.environ)
    if log_config is not None:
        _configure_jvm_logs(log_config)
    return SparkSession.builder.appName(app_name).getOrCreate()


def _configure_jvm_logs(log_config: Path) -> None:
    """Give the JVM of spark-submit our log settings before a context starts, unless it has its owner's.

    Spark loads its defaults anew when the context starts, as long as it remembers that it uses them: the
    flags of its `Logging` object are set to say that this is done.
    """
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    logging_object = getattr(getattr(jvm, "org.apache.spark.internal.Logging$"), "MODULE$")
    prefix = "org$apache$spark$internal$Logging$$"
    try:
        if getattr(logging_object, f"{prefix}defaultSparkLog4jConfig")():
            configurator = jvm.org.apache.logging.log4j.core.config.Configurator
            configurator.reconfigure(jvm.java.net.URI(log_config.resolve().as_uri()))
            getattr(logging_object, f"{prefix}initialized_$eq")(True)
    except Py4JError as error:  # a release with other insides only says more than it need
        _LOG.debug("Spark's own log settings stay: %s", error)


class _Relay:
    """Hands what Spark says to the suite's log: warnings and errors always, the rest when asked."""

    def __init__(self, *, show_all: bool) -> None:
        self._show_all = show_all
        self._classifier = Classifier()

    def __call__(self, line: str) -> None:
        kind = self._classifier.classify(line)
        level = {"error": logging.ERROR, "warning": logging.WARNING}.get(kind, logging.DEBUG)
        if classify(line) == "info":  # the stack below an entry: what it means is said by the error itself
            level = logging.DEBUG
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


def _ship_package(spark: SparkSession) -> None:
    """Make `common` importable on the workers, wherever the job was started from."""
    context = spark.sparkContext
    context.addPyFile(str(worker_package()))
    foreign = foreign_common(Path.cwd())
    if foreign is not None:
        _LOG.warning("%s is not the suite's package: workers leave out the current folder", foreign)
        context.environment["PYTHONSAFEPATH"] = "1"  # read by the workers' Python when it starts
