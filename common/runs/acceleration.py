"""Comet around a run: chosen before the session, left out of queries that it would answer otherwise."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from common.engine.comet import (
    comet_addition,
    is_active,
    is_loaded,
    plain_spark,
    reasons_against,
    unsafe_footers,
    warn_if_idle,
    went_through,
)
from common.engine.facts import static_facts
from common.engine.handle import Addition, Engine
from common.engine.listing import Listing
from common.engine.machine import read_machine
from common.runs.accelerator_choice import choose_accelerator, is_local_parquet, sized
from common.runs.record import RunRecord
from common.runs.submit_decisions import received
from common.settings.accelerators import accelerator
from common.settings.profiles import Profile
from common.tuning.accelerator import RunFacts, plan_accelerator

_LOG = logging.getLogger("saltpan.run")


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
    inputs = [static_facts(listing) for listing in listings]
    chosen = choose_accelerator(
        profile, listings, inputs=inputs, folder=folder, overrides=overrides, environ=os.environ
    )
    record.decisions.append({"about": "accelerator", **chosen.decision.record()})
    wanted = chosen.is_on or profile.accelerator == "comet"
    _LOG.log(logging.INFO if wanted else logging.DEBUG, "accelerator: %s", chosen.decision.line())
    return chosen.profile, (comet_addition(chosen.settings),) if chosen.is_on else ()


@contextmanager
def guarded(
    answer: DataFrame, engine: Engine, listings: Collection[Listing], *, record: RunRecord
) -> Iterator[DataFrame]:
    """The answer to run: on plain Spark where Comet would give another one, which is said."""
    if engine.name == "submit":
        note_submitted(engine, listings, record=record)
    if not has_comet(engine):
        yield answer
        return
    reasons = _reasons(answer, engine, listings)
    if reasons:
        note: dict[str, Any] = {"about": "accelerator", "choice": "none", "reason": "; ".join(reasons)}
        record.decisions.append(note)
        _LOG.info("accelerator: none for this query: %s", note["reason"])
    with plain_spark(engine.spark, reasons):
        yield answer.select("*") if reasons else answer


def _reasons(answer: DataFrame, engine: Engine, listings: Collection[Listing]) -> list[str]:
    """Why this query stays on plain Spark; footers were looked at before a session of our own only."""
    local = all(is_local_parquet(listing) for listing in listings)
    unseen = [file.path for listing in listings for file in listing.files] if engine.name != "local" else []
    return [*(unsafe_footers(unseen) if local else []), *reasons_against(answer, footers_are_known=local)]


def note_submitted(engine: Engine, listings: Collection[Listing], *, record: RunRecord) -> None:
    """Record what was decided before spark-submit started this session, and whether Comet works in it."""
    spark = engine.spark
    notes = [*received(spark)]
    loaded = is_loaded(spark)
    plugins = spark.conf.get("spark.plugins", None)  # another accelerator's matter, if there are others
    if (loaded or not plugins) and not any(note["about"] == "accelerator" for note in notes):
        facts = RunFacts(
            "submit",
            spark.version,
            read_machine(),
            time_zone=spark.conf.get("spark.sql.session.timeZone", None) or "UTC",
            inputs=tuple(sized(listing) for listing in listings),
            started_with=loaded,
        )
        decision = plan_accelerator("comet" if loaded else "auto", facts, comet=accelerator("comet"))
        _LOG.debug("accelerator: %s", decision.line())
        notes.append({"about": "accelerator", **decision.record()})
    for note in notes:
        if (note["about"], note["choice"]) == ("accelerator", "comet"):
            warn_if_idle(spark)
            note["active"] = is_active(spark)
    record.decisions.extend(notes)


@contextmanager
def without_comet(engine: Engine) -> Iterator[None]:
    """Plain Spark while this lasts: for the side of a proof that must not share Comet's faults."""
    with plain_spark(engine.spark, ["the plain side of a proof"] if has_comet(engine) else []):
        yield


def retried(
    act: Callable[[DataFrame], int], answer: DataFrame, engine: Engine, *, restart: Callable[[], None]
) -> int:
    """What `act` returns for the answer; when it failed inside Comet, once more on plain Spark.

    Text that is not UTF-8 is such a failure, and plain Spark reads it; other faults fail there by their own
    error.

    Args:
        act: Prints or writes rows, and counts them.
        answer: The rows.
        engine: Whose session may have Comet.
        restart: Takes back what the failed attempt has left.
    """
    try:
        return act(answer)
    except Exception as error:
        if not (has_comet(engine) and went_through(error)):
            raise
    _LOG.warning("accelerator: Comet failed; once more on plain Spark")
    restart()
    with without_comet(engine):
        return act(answer.select("*"))


def has_comet(engine: Engine) -> bool:
    """True when this session runs plans natively by Comet."""
    return engine.kind == "classic" and is_active(engine.spark)
