"""Whether a session that is about to start has Comet: the facts are gathered here, the planner decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyspark

from common.core.units import parse_bytes
from common.engine.comet import prepare_comet
from common.engine.java import spark_home
from common.engine.listing import Listing
from common.engine.machine import read_machine
from common.settings.profiles import Profile, load_profile
from common.tuning.accelerator import RunFacts
from common.tuning.decision import Decision
from common.tuning.executor_memory import share_executor
from common.tuning.facts import InputFacts
from common.tuning.machine import Machine

_ASKED: Mapping[str, Literal["auto", "comet", "none"]] = {"auto": "auto", "comet": "comet"}


@dataclass(frozen=True)
class Cluster:
    """Where executors are that this machine does not run.

    Attributes:
        master: The cluster's address.
        machine: The one that tells what they are like.
    """

    master: str
    machine: Machine


@dataclass(frozen=True)
class Acceleration:
    """What was decided about Comet.

    Attributes:
        decision: The choice, and why.
        profile: The site with or without the accelerator's layer, as was chosen.
        settings: What only this machine knows: the jar's place, the memory.
    """

    decision: Decision
    profile: Profile
    settings: Mapping[str, str]

    @property
    def is_on(self) -> bool:
        """True when the session will have Comet."""
        return self.decision.choice == "comet"


def choose_accelerator(
    profile: Profile,
    listings: Sequence[Listing],
    *,
    inputs: Sequence[InputFacts],
    folder: Path,
    overrides: Mapping[str, str],
    environ: Mapping[str, str],
    cluster: Cluster | None = None,
) -> Acceleration:
    """Decide about Comet before there is a session, and fetch its jar when it is chosen.

    Args:
        profile: The site's; not of another accelerator.
        listings: The inputs that can be looked at from here.
        inputs: What is known of the inputs.
        folder: Of the profiles.
        overrides: What --conf sets.
        environ: SPARK_HOME is looked at.
        cluster: Where the executors are; None when all runs in one JVM of this machine.
    """
    asked = asked_for(profile)
    decision, settings = prepare_comet(
        asked,
        _facts(profile, inputs, overrides=overrides, cluster=cluster),
        spark_home=str(spark_home(environ)),
        jars=profile.value("spark.jars"),
        files=[file.path for listing in listings if is_local_parquet(listing) for file in listing.files],
        executors=share_executor(profile, master=cluster.master) if cluster else None,
        to_cluster=cluster is not None,
    )
    name = f"{profile.site}+comet" if decision.choice == "comet" else profile.site
    if name != profile.name:
        profile = load_profile(name, folder=folder, overrides=overrides)
    return Acceleration(decision, profile, settings)


def asked_for(profile: Profile) -> Literal["auto", "comet", "none"]:
    """What a profile's name asks for; a name without an accelerator leaves it to the planner."""
    return _ASKED.get(profile.accelerator, "none") if "+" in profile.name else "auto"


def _facts(
    profile: Profile,
    inputs: Sequence[InputFacts],
    *,
    overrides: Mapping[str, str],
    cluster: Cluster | None,
) -> RunFacts:
    return RunFacts(
        "submit" if cluster else "local",
        pyspark.__version__,
        cluster.machine if cluster else read_machine(),
        heap_bytes=parse_bytes(profile.value("spark.driver.memory", "1g"), default_unit="b"),
        heap_is_fixed="spark.driver.memory" in overrides,
        time_zone=profile.value("spark.sql.session.timeZone", "UTC"),
        inputs=tuple(inputs),
        started_with=cluster is not None,
    )


def is_local_parquet(listing: Listing) -> bool:
    """True for files whose footers Python can read."""
    return listing.format == "parquet" and listing.is_local


def sized(listing: Listing) -> InputFacts:
    """What is known of an input without opening its files."""
    request = listing.request
    size = listing.size_bytes if listing.is_listed else None
    return InputFacts(request.name, listing.format, request.paths, size_bytes=size)
