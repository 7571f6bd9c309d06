"""Classic sessions: started in this process, taken over from spark-submit, or lent by a caller."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from socketserver import BaseServer
from typing import Any, ClassVar

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from common.engine.applied import differing
from common.engine.chatter import Classifier, captured_stderr, classify
from common.engine.handle import Addition, Engine
from common.engine.installation import foreign_common, prepare_installation
from common.engine.package import worker_package
from common.engine.session_start import starting
from common.engine.worker_daemon import MODULE_KEY, daemon_settings
from common.settings.engines import EngineKind
from common.settings.profiles import Profile, Setting

REQUIRES = frozenset({"classic"})

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_JVM_ENDS_WITHIN_SECONDS = 10.0
_LOG = logging.getLogger("saltpan.engine")
_SPARK_LOG = logging.getLogger("saltpan.spark")

# Date, time and level before what Spark logs: the suite's log has its own.
_STAMP = re.compile(r"^(?:\d\d/\d\d/\d\d )?\d\d:\d\d:\d\d [A-Z]+ ")


@dataclass(frozen=True)
class ClassicEngine(Engine):
    """A session with its JVM at hand."""

    kind: ClassVar[EngineKind] = "classic"

    @property
    def core_count(self) -> int:
        """Task slots, as far as Spark knows them now."""
        return int(self.spark.sparkContext.defaultParallelism)

    @property
    def versions(self) -> dict[str, str | None]:
        """Versions of all that takes part in an answer."""
        jvm: Any = self.spark.sparkContext._jvm
        return {**super().versions, "java": str(jvm.java.lang.System.getProperty("java.version"))}

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


@contextmanager
def own_engine(
    app_name: str,
    profile: Profile,
    *,
    log_config: Path | None,
    show_all: bool,
    additions: Sequence[Addition] = (),
) -> Iterator[ClassicEngine]:
    """A session started here with all that is asked, and stopped at the end.

    Args:
        app_name: The application's name in Spark's pages.
        profile: Settings to start with.
        log_config: Log4j properties for its JVM.
        show_all: Let everything that Spark says through to the log.
        additions: A fast start, an accelerator.

    Raises:
        JavaError: Java is missing or too old.
        InstallationError: Spark or the workers' Python are not of one version.
    """
    settings = _with_additions(profile, additions)
    prepare_installation(os.environ, settings={key: setting.value for key, setting in settings.items()})
    builder = _builder(app_name, settings, log_config=log_config, additions=additions)
    with ExitStack() as stack:
        for addition in additions:
            stack.callback(addition.ended)
        with captured_stderr(_Relay(show_all=show_all)), starting():
            spark = builder.getOrCreate()
        context = SparkContext._active_spark_context
        _without_tracebacks(getattr(context, "_accumulatorServer", None))
        stack.push(
            lambda kind, *_: _end(spark, interrupted=kind is not None and issubclass(kind, KeyboardInterrupt))
        )
        if show_all:
            spark.sparkContext.setLogLevel("INFO")
        for addition in additions:
            addition.opened(spark)
        # Spark rewrites its JVM's options: they carry our own and its own additions.
        asked = [setting for setting in settings.values() if setting.key != JAVA_OPTIONS]
        yield ClassicEngine(spark, "local", differing(spark, asked))


def _without_tracebacks(server: BaseServer | None) -> None:
    """A connection breaks when the JVM dies; whoever waits for the JVM is told, and that is enough."""

    def broken(*_: object) -> None:
        _LOG.debug("accumulators: the connection broke", exc_info=True)

    if server is not None:
        server.handle_error = broken  # type: ignore[assignment, method-assign]


def _end(spark: SparkSession, *, interrupted: bool) -> None:
    """Stop the session; when interrupted end its JVM as well, whose tasks may still write files.

    Otherwise the JVM stays until this process ends: PySpark asks it for the text of its errors.
    """
    spark.stop()
    process = getattr(SparkContext._gateway, "proc", None)
    if not interrupted or process is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    process.stdin.close()  # the sign on which it ends
    try:
        process.wait(_JVM_ENDS_WITHIN_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _with_additions(profile: Profile, additions: Sequence[Addition]) -> dict[str, Setting]:
    settings = dict(profile.settings)
    for addition in additions:
        for key, value in addition.settings.items():
            # An addition's jars are those of the flag and its own.
            if key == "spark.jars" or key not in settings or settings[key].layer != "flag":
                settings[key] = Setting(key, value, "addition", "the start")
    return settings


def _daemon(settings: dict[str, Setting]) -> dict[str, str]:
    """The workers' daemon, where this machine runs them and nobody asks for another."""
    master = settings.get("spark.master")
    if MODULE_KEY in settings or (master is not None and not master.value.startswith("local")):
        return {}
    return daemon_settings(os.environ)


def _builder(
    app_name: str, settings: dict[str, Setting], *, log_config: Path | None, additions: Sequence[Addition]
) -> SparkSession.Builder:
    # The mode is named, because SPARK_API_MODE in the environment would make another kind of session.
    builder = SparkSession.builder.appName(app_name).config("spark.api.mode", "classic")
    for setting in settings.values():
        builder = builder.config(setting.key, setting.value)
    for key, value in _daemon(settings).items():
        builder = builder.config(key, value)
    # All answers are given in UTC; what the profile says comes later and wins.
    options = ["-Duser.timezone=UTC", *(text for addition in additions for text in addition.java_options)]
    if log_config is not None:
        options.insert(0, f"-Dlog4j2.configurationFile={log_config.resolve().as_uri()}")
    if JAVA_OPTIONS in settings:
        options.append(settings[JAVA_OPTIONS].value)
    return builder.config(JAVA_OPTIONS, " ".join(options))


@contextmanager
def worker_python(named: str) -> Iterator[None]:
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


def submitted_session(app_name: str, *, log_config: Path | None) -> SparkSession:
    """The session that spark-submit has prepared.

    Raises:
        InstallationError: Spark or the workers' Python are not of one version.
    """
    # Where the workers are elsewhere, the path of their Python means nothing on this machine.
    given = dict(SparkConf().getAll())
    workers_here = given.get("spark.master", "local").startswith("local")
    prepare_installation(os.environ, workers_here=workers_here, settings=given)
    if log_config is not None:
        _configure_jvm_logs(log_config)
    return SparkSession.builder.appName(app_name).getOrCreate()


def given_keys(spark: SparkSession) -> frozenset[str]:
    """The settings that the session's owner started it with."""
    return frozenset(key for key, _ in spark.sparkContext.getConf().getAll())


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


def ship_package(spark: SparkSession) -> None:
    """Make `common` importable on the workers, wherever the job was started from."""
    context = spark.sparkContext
    context.addPyFile(str(worker_package()))
    foreign = foreign_common(Path.cwd())
    if foreign is not None:
        _LOG.warning("%s is not the suite's package: workers leave out the current folder", foreign)
        context.environment["PYTHONSAFEPATH"] = "1"  # read by the workers' Python when it starts
