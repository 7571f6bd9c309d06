"""Comet beside Spark: decided before the session, loaded with it, probed after it, left out per query.

prepare_comet   before the session: the Decision, and the settings to add to the profile
is_active       after it: a plan must show Comet's operators
reasons_against what a query holds that Comet would answer otherwise
plain_spark     runs such a query without it
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from common.core.units import spell_bytes
from common.engine.comet_guards import unsafe_footers, unsafe_for_comet
from common.engine.handle import Addition
from common.engine.jars import Fetched, fetch_jar
from common.engine.java import check_java
from common.engine.plans import read_plan
from common.settings.accelerators import accelerator
from common.tuning.accelerator import Accelerated, RunFacts, plan_accelerator, share_memory
from common.tuning.decision import Decision
from common.tuning.executor_memory import ExecutorMemory

__all__ = [
    "comet_addition",
    "comet_settings",
    "is_active",
    "is_loaded",
    "plain_decision",
    "plain_spark",
    "prepare_comet",
    "reasons_against",
    "unsafe_footers",
    "unsafe_for_comet",
    "warn_if_idle",
    "went_through",
]

ENABLED = "spark.comet.enabled"
PLUGIN = "org.apache.spark.CometPlugin"
# The library's own log, which knows nothing of Log4j.
COMET_ENVIRON: Mapping[str, str] = {"COMET_LOG_LEVEL": "WARN"}

_LOG = logging.getLogger("saltpan.engine")
_FRAMES = re.compile(r"\borg\.apache\.(?:spark\.sql\.)?comet\.")
# Plans are cut at this many fields unless told otherwise, and what is cut cannot be looked at.
_FIELDS = "spark.sql.debug.maxToStringFields"
_ALL_FIELDS = "100000"


def prepare_comet(
    asked: Accelerated,
    facts: RunFacts,
    *,
    java: str = "",
    spark_home: str,
    jars: str = "",
    files: Sequence[str] = (),
    executors: ExecutorMemory | str | None = None,
    to_cluster: bool = False,
    fetch: Callable[..., Fetched] | None = None,
) -> tuple[Decision, dict[str, str]]:
    """Decide about Comet, and fetch what it needs when it is chosen.

    Args:
        asked: "auto", "comet" or "none".
        facts: What is known before the session.
        java: The program that runs Ivy; when left out, Spark's own is looked for once there is a need.
        spark_home: Folder of the Spark that will run.
        jars: What `spark.jars` holds already.
        files: Local Parquet files among the inputs; their footers are read only when all else agrees.
        executors: What `share_executor` makes of a cluster's executors; looked at with `to_cluster` only.
        to_cluster: The session will be a cluster's, started from here with what this returns.
        fetch: How the jar is had; `fetch_jar` by default.

    Returns:
        The decision, and the settings that only this machine gives; with the choice "comet" they go on top
        of conf/comet.conf, with "none" there are none and conf/comet.conf must be left out.

    Raises:
        JavaError: the jar has to be fetched, and there is no Java.
    """
    comet = accelerator("comet")
    decision = plan_accelerator(asked, facts, comet=comet)
    if decision.choice == "comet" and files:
        facts = replace(facts, unsafe_inputs=(*facts.unsafe_inputs, *unsafe_footers(files)))
        decision = plan_accelerator(asked, facts, comet=comet)
    if decision.choice != "comet" or not (to_cluster or facts.engine == "local"):
        return decision, {}
    if isinstance(executors, str):
        return plain_decision(decision, executors), {}
    java = java or check_java().program
    fetched = (fetch or fetch_jar)(comet.jar, java=java, spark_home=spark_home)
    if fetched.path and "," in str(fetched.path.resolve()):  # Spark would take it for two
        fetched = Fetched(None, f"the folder of {fetched.path} has a comma in its name")
    if fetched.path is None:
        return plan_accelerator(asked, replace(facts, jar_problem=fetched.problem), comet=comet), {}
    if to_cluster:
        divided = replace(decision, reason=f"{decision.reason}; {executors}") if executors else decision
        memory = executors.settings if executors else {}
        return divided, {"spark.jars": _with_jar(jars, fetched.path), **memory}
    settings = comet_settings(facts, jar=fetched.path, jars=jars)
    if settings is None:
        return plain_decision(decision, "it does not fit into the memory"), {}
    return decision, settings


def plain_decision(decision: Decision, why: str) -> Decision:
    """The same decision the other way: plain Spark, because of something that stands against Comet."""
    return replace(decision, choice="none", reason=f"plain Spark: {why}", rejected=(("comet", why),))


def comet_settings(facts: RunFacts, *, jar: Path, jars: str = "") -> dict[str, str] | None:
    """What conf/comet.conf cannot know: where the jar is, and how much memory there is.

    Args:
        facts: The machine, and the heap that the profile asks for.
        jar: The jar that was fetched.
        jars: What `spark.jars` holds already.

    Returns:
        None when the memory does not suffice; `share_memory` says why.
    """
    shared = share_memory(facts)
    if isinstance(shared, str):
        return None
    return {
        "spark.jars": _with_jar(jars, jar),
        "spark.driver.memory": spell_bytes(shared.heap_bytes),
        "spark.memory.offHeap.size": spell_bytes(shared.off_heap_bytes),
    }


def _with_jar(jars: str, jar: Path) -> str:
    address = jar.resolve().as_uri()
    return f"{jars},{address}" if jars else address


def is_loaded(spark: SparkSession) -> bool:
    """True when the session was started with Comet's plugin, whatever has become of it."""
    return PLUGIN in (spark.conf.get("spark.plugins", None) or "")


def is_active(spark: SparkSession) -> bool:
    """True when a probe shows Comet's operators: without its shuffle manager, its memory or its native
    library Comet plans nothing, and hardly says so.

    Plan:
        No job; one query of one row is planned.
    """
    if not is_loaded(spark):
        return False
    prefix = accelerator("comet").plan_prefix
    return any(node.name.startswith(prefix) for node in read_plan(spark.sql("SELECT 1 AS probe")).nodes)


def comet_addition(settings: Mapping[str, str]) -> Addition:
    """What a session of our own gets: the settings of `prepare_comet`, and a look whether Comet works."""
    for name, value in COMET_ENVIRON.items():
        os.environ.setdefault(name, value)
    return Addition(settings=settings, opened=warn_if_idle)


def warn_if_idle(spark: SparkSession) -> None:
    """Say so when Comet was loaded and does nothing; the answers are those of plain Spark."""
    if not is_active(spark):
        _LOG.warning("Comet is loaded but plans nothing on this session: all runs on plain Spark")


def reasons_against(df: DataFrame, *, footers_are_known: bool = True) -> list[str]:
    """Why this frame's query would get another answer from Comet than from Spark; empty when it would not.

    Args:
        df: Any frame. Not run, and not planned itself: a frame keeps the plan it was first given.
        footers_are_known: `unsafe_footers` was asked about the files that it reads.

    Plan:
        No job; the query is planned once more, without Comet.
    """
    spark = df.sparkSession
    with _set(spark, {ENABLED: "false", _FIELDS: _ALL_FIELDS}):
        return unsafe_for_comet(read_plan(df.select("*")), footers_are_known=footers_are_known)


@contextmanager
def plain_spark(spark: SparkSession, reasons: Sequence[str]) -> Iterator[None]:
    """Without Comet while this lasts, when there are reasons.

    A frame that was planned before keeps its plan: run `df.select("*")`, which is planned anew. The setting
    also rules what adaptive execution plans while the query runs, so the action belongs inside.
    """
    with _set(spark, {ENABLED: "false"} if reasons else {}):
        yield


def went_through(error: BaseException) -> bool:
    """True when the JVM's part of this failure passed through Comet.

    Text that is not UTF-8 is such a failure; plain Spark reads it. And what fails on plain Spark as well
    fails there under its own error class.
    """
    return bool(_FRAMES.search(str(error)) or _FRAMES.search(getattr(error, "_stackTrace", None) or ""))


@contextmanager
def _set(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in values}
    try:
        for key, value in values.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, former in before.items():
            try:
                spark.conf.unset(key) if former is None else spark.conf.set(key, former)
            except PySparkException as error:
                _LOG.debug("%s stays as it is: %s", key, error)
