"""What is settled before a session opens: its configuration, and how its JVM is started."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from common.engine.facts import static_facts
from common.engine.handle import Addition
from common.engine.listing import Listing
from common.engine.rapids_preflight import cpu_sentence, prepare_rapids
from common.engine.session import Site
from common.runs.acceleration import accelerated
from common.runs.record import RunRecord
from common.settings.conf_audit import check_profile
from common.settings.findings import raise_errors
from common.settings.job import JobSettings, pairs
from common.settings.profiles import Profile, load_profile
from common.tuning.start import plan_start

_LOG = logging.getLogger("saltpan.run")


def checked_profile(settings: JobSettings, site: Site, *, folder: Path) -> Profile:
    """The composed configuration, checked key by key against the registry.

    Raises:
        ConfigurationError: a key or a value that stops Spark, or a typing error; SeveralErrors for more.
    """
    overrides = pairs(settings.conf)
    profile = load_profile(site.profile, folder=folder, overrides=overrides)
    if profile.accelerator == "rapids" and site.name == "local":
        profile = _with_rapids(profile, folder=folder, overrides=overrides)
    check_keys(profile)
    return profile


def check_keys(profile: Profile) -> None:
    """Check the settings one by one and together against the registry; say what is only doubtful.

    Raises:
        ConfigurationError: a key or a value that stops Spark, or a typing error; SeveralErrors for more.
    """
    findings = check_profile(profile, late=False)
    raise_errors(findings)
    for finding in findings:
        level = logging.WARNING if finding.severity == "warning" else logging.DEBUG
        _LOG.log(level, "%s", finding.line())


def _with_rapids(profile: Profile, *, folder: Path, overrides: Mapping[str, str]) -> Profile:
    """The GPU overlay completed, or, with what is missing named, the site without it: the same answer."""
    ready = prepare_rapids(profile, folder=folder, environ=os.environ)
    for text in ready.warnings:
        _LOG.warning("%s", text)
    if not ready.missing:
        return ready.profile
    _LOG.warning("%s", cpu_sentence(ready.missing))
    return load_profile(profile.site, folder=folder, overrides=overrides)


def prepared(
    profile: Profile,
    settings: JobSettings,
    site: Site,
    listings: Sequence[Listing],
    *,
    folder: Path,
    record: RunRecord,
) -> tuple[Profile, tuple[Addition, ...]]:
    """What a session of our own is opened with; each choice is a decision in the record."""
    if site.name != "local":
        return profile, ()
    from common.engine.fast_start import fast_start

    listed = [listing for listing in listings if listing.is_listed]
    profile, accelerator = accelerated(
        profile, listed, folder=folder, overrides=pairs(settings.conf), record=record
    )
    decision = plan_start(settings.start, inputs=[static_facts(listing) for listing in listings])
    record.decisions.append({"about": "start", **decision.record()})
    _LOG.debug("start: %s", decision.line())
    given = profile.value("spark.driver.extraJavaOptions")
    return profile, (fast_start(decision, given=given), *accelerator)
