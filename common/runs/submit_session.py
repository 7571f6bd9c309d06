"""The session behind `saltpan submit`: with Comet or without, and how its driver's JVM starts.

spark-submit starts the JVM before the job's first line runs, so that both are settled here, and handed to the
job's record as a setting.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from common.core.errors import SuiteError
from common.engine.comet import COMET_ENVIRON
from common.engine.fast_start import SubmittedStart, submitted_start
from common.engine.java import spark_home
from common.engine.listing import Listing, list_input
from common.engine.machine import read_machine
from common.runs.accelerator_choice import Acceleration, Cluster, asked_for, choose_accelerator, sized
from common.runs.submit_decisions import handed_over
from common.settings.accelerators import accelerator
from common.settings.command_line import Command
from common.settings.profiles import Profile, Setting
from common.settings.submission import DeployMode
from common.tuning.decision import Decision
from common.tuning.machine import Machine
from common.tuning.start import plan_start

_LOG = logging.getLogger("saltpan.run")

JAVA_OPTIONS, CLASS_PATH = "spark.driver.extraJavaOptions", "spark.driver.extraClassPath"


@dataclass(frozen=True)
class SubmittedSession:
    """What spark-submit is to start.

    Attributes:
        profile: The settings, with all that was decided.
        start: The options of the driver's JVM.
        environ: Variables for it.
    """

    profile: Profile
    start: SubmittedStart = field(default_factory=SubmittedStart)
    environ: Mapping[str, str] = field(default_factory=dict)


def submitted_session(
    profile: Profile,
    command: Command,
    *,
    master: str,
    deploy_mode: DeployMode,
    folder: Path,
    overrides: Mapping[str, str],
    environ: Mapping[str, str],
    dry_run: bool = False,
) -> SubmittedSession:
    """Decide about Comet and the start, and say so.

    Args:
        profile: The site's, with an accelerator if one was named.
        command: The job's own words.
        master: Where it goes.
        deploy_mode: Where the driver runs.
        folder: Of the profiles.
        overrides: What --conf sets.
        environ: The environment that spark-submit will have.
        dry_run: Nothing will be started: what holds for this moment only, an archive and the facts behind a
            decision, is left out.

    Raises:
        JavaError: Java is missing or too old.
    """
    here = _is_here(master)
    listings = _listings(command) if deploy_mode == "client" else []
    decisions: dict[str, Decision] = {}
    chosen = None
    if profile.accelerator != "rapids":
        cluster = None if here else Cluster(master, _machine(deploy_mode))
        chosen = _accelerator(
            profile, listings, folder=folder, overrides=overrides, environ=environ, cluster=cluster
        )
        decisions["accelerator"] = chosen.decision
        _LOG.info("accelerator: %s: %s", chosen.decision.choice, chosen.decision.reason)
    if here:
        decisions["start"] = plan_start(
            command.settings.start, inputs=[sized(listing) for listing in listings or ()]
        )
        _LOG.debug("start: %s", decisions["start"].line())
    profile = _completed(profile, chosen, {} if dry_run else decisions, overrides=overrides)
    start = SubmittedStart()
    if deploy_mode == "client":
        start = submitted_start(
            decisions.get("start"),
            given=profile.value(JAVA_OPTIONS),
            archive_for=None if dry_run or profile.value(CLASS_PATH) else spark_home(environ),
        )
    return SubmittedSession(profile, start, COMET_ENVIRON if chosen and chosen.is_on else {})


def _is_here(master: str) -> bool:
    """True where the driver is the only executor; local-cluster[…] starts others."""
    return master.startswith("local") and not master.startswith("local-cluster")


def _machine(deploy_mode: DeployMode) -> Machine:
    """The driver's, where Comet must run too; in cluster mode it is not known, and taken to be suitable."""
    machine = read_machine()
    if deploy_mode == "client":
        return machine
    return replace(machine, system=accelerator("comet").systems[0], cpu_flags=frozenset())


def _listings(command: Command) -> list[Listing] | None:
    """The inputs as far as they can be looked at from here; None when something is wrong with one."""
    try:
        return [list_input(request) for request in command.inputs]
    except (SuiteError, OSError) as problem:
        _LOG.debug("the job will say what is wrong with its inputs: %s", problem)
        return None


def _accelerator(
    profile: Profile,
    listings: Sequence[Listing] | None,
    *,
    folder: Path,
    overrides: Mapping[str, str],
    environ: Mapping[str, str],
    cluster: Cluster | None,
) -> Acceleration:
    """As `saltpan run` decides, but that a cluster has Comet only when it is asked for."""
    if asked_for(profile) == "auto" and (cluster or listings is None):
        why = "an input could not be looked at"
        if cluster:
            asks = f"--profile {profile.site}+comet asks for it"
            why = f"whether the executors of a cluster can run it is not known here ({asks})"
        return Acceleration(Decision("none", f"plain Spark: {why}", (("comet", why),)), profile, {})
    listed = [listing for listing in listings or () if listing.is_listed]
    return choose_accelerator(
        profile,
        listed,
        inputs=[sized(listing) for listing in listed],
        folder=folder,
        overrides=overrides,
        environ=environ,
        cluster=cluster,
    )


def _completed(
    profile: Profile,
    chosen: Acceleration | None,
    decisions: Mapping[str, Decision],
    *,
    overrides: Mapping[str, str],
) -> Profile:
    """The profile with what was decided; sizes of this JVM's memory that --conf names stay."""
    settings = [handed_over(decisions)] if decisions else []
    if chosen is None:
        return profile.with_settings(settings)
    named = {"spark.driver.memory", "spark.memory.offHeap.size"} & set(overrides)
    settings += [
        Setting(key, value, "submit", "saltpan submit")
        for key, value in chosen.settings.items()
        if key not in named
    ]
    return chosen.profile.with_settings(settings)
