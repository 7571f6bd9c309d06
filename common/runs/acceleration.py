"""Comet around a run: chosen before the session, left out of queries that it would answer otherwise."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pyspark
from pyspark.sql import DataFrame

from common.core.units import parse_bytes
from common.engine.comet import (
    comet_addition,
    is_active,
    plain_spark,
    prepare_comet,
    reasons_against,
    went_through,
)
from common.engine.facts import static_facts
from common.engine.handle import Addition, Engine
from common.engine.java import check_java
from common.engine.listing import Listing
from common.engine.machine import read_machine
from common.runs.record import RunRecord
from common.settings.profiles import Profile, load_profile
from common.tuning.accelerator import RunFacts

_LOG = logging.getLogger("saltpan.run")
_ASKED: Mapping[str, Literal["auto", "comet", "none"]] = {"auto": "auto", "comet": "comet"}


def accelerated(
    profile: Profile,
    listings: Sequence[Listing],
    *,
    folder: Path,
    overrides: Mapping[str, str],
    record: RunRecord,
) -> tuple[Profile, tuple[Addition, ...]]:
    """The profile with or without Comet, as was decided, and what the session gets besides.

    Args:
        profile: Of a session of our own.
        listings: The inputs that can be looked at before it.
        folder: Of the profiles.
        overrides: What --conf sets.
        record: Takes the decision.
    """
    if profile.accelerator == "rapids":
        return profile, ()
    java = check_java(os.environ)
    decision, settings = prepare_comet(
        _ASKED.get(profile.accelerator, "none") if "+" in profile.name else "auto",
        _facts(profile, listings, overrides=overrides),
        java=str(Path(java.home) / "bin" / "java"),
        spark_home=os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent),
        jars=profile.value("spark.jars"),
        files=[file.path for listing in listings if _is_local_parquet(listing) for file in listing.files],
    )
    record.decisions.append({"about": "accelerator", **decision.record()})
    wanted = decision.choice == "comet" or profile.accelerator == "comet"
    _LOG.log(logging.INFO if wanted else logging.DEBUG, "accelerator: %s", decision.line())
    name = f"{profile.site}+comet" if decision.choice == "comet" else profile.site
    if name != profile.name:
        profile = load_profile(name, folder=folder, overrides=overrides)
    return profile, (comet_addition(settings),) if decision.choice == "comet" else ()


def _facts(profile: Profile, listings: Sequence[Listing], *, overrides: Mapping[str, str]) -> RunFacts:
    return RunFacts(
        "local",
        pyspark.__version__,
        read_machine(),
        heap_bytes=parse_bytes(profile.value("spark.driver.memory", "1g"), default_unit="b"),
        heap_is_fixed="spark.driver.memory" in overrides,
        time_zone=profile.value("spark.sql.session.timeZone", "UTC"),
        inputs=tuple(static_facts(listing) for listing in listings),
    )


def _is_local_parquet(listing: Listing) -> bool:
    return listing.format == "parquet" and listing.is_local


@contextmanager
def guarded(
    answer: DataFrame, engine: Engine, listings: Collection[Listing], *, record: RunRecord
) -> Iterator[DataFrame]:
    """The answer to run: on plain Spark where Comet would give another one, which is said."""
    if not _has_comet(engine):
        yield answer
        return
    known = engine.name == "local" and all(_is_local_parquet(listing) for listing in listings)
    reasons = reasons_against(answer, footers_are_known=known)
    if reasons:
        note: dict[str, Any] = {"about": "accelerator", "choice": "none", "reason": "; ".join(reasons)}
        record.decisions.append(note)
        _LOG.info("accelerator: none for this query: %s", note["reason"])
    with plain_spark(engine.spark, reasons):
        yield answer.select("*") if reasons else answer


@contextmanager
def without_comet(engine: Engine) -> Iterator[None]:
    """Plain Spark while this lasts: for the side of a proof that must not share Comet's faults."""
    with plain_spark(engine.spark, ["the plain side of a proof"] if _has_comet(engine) else []):
        yield


def failed_in_comet(error: Exception, engine: Engine) -> bool:
    """True when plain Spark may do what failed: text that is not UTF-8, say; or fail by its own error."""
    return _has_comet(engine) and went_through(error)


def _has_comet(engine: Engine) -> bool:
    return engine.kind == "classic" and is_active(engine.spark)
