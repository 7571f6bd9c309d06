"""Rules about settings that go together on a cluster: who comes and goes, who listens, what is logged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from common.core.units import format_seconds
from common.settings.conf_rules import Rule, View
from common.settings.findings import Finding

_DYNAMIC = "spark.dynamicAllocation"


def dynamic_bounds(view: View) -> Iterator[Finding]:
    """Dynamic allocation: bounds in order, and an upper one."""
    if not view.on(f"{_DYNAMIC}.enabled"):
        return
    least, first, most = (f"{_DYNAMIC}.{end}Executors" for end in ("min", "initial", "max"))
    low, start, high = (view.amount(key) for key in (least, first, most))
    if not view.has(most):
        sentence = "no upper bound: one job can take the whole queue"
        yield view.finding(most, "warning", sentence, hint=f"set {most} to the job's share of it")
    if low is not None and high is not None and low > high:
        key = view.first(least, most)
        yield view.finding(key, "error", f"{least} at most {most} ({high:g}): Spark does not start otherwise")
    elif start is not None and high is not None and start > high:
        yield view.finding(first, "warning", f"more than {most} ({high:g})")
    if view.has("spark.executor.instances"):
        sentence = "only where dynamic allocation starts, not the number of executors"
        yield view.finding("spark.executor.instances", "info", sentence)


def dynamic_shuffles(view: View) -> Iterator[Finding]:
    """An executor that goes must not take its shuffle files along."""
    keeps = (
        view.on(f"{_DYNAMIC}.shuffleTracking.enabled")
        or view.on("spark.shuffle.service.enabled")
        or (
            view.on("spark.decommission.enabled")
            and view.on("spark.storage.decommission.shuffleBlocks.enabled")
        )
        or view.has("spark.shuffle.sort.io.plugin.class")
    )
    if view.on(f"{_DYNAMIC}.enabled") and not keeps:
        yield view.finding(
            view.first(f"{_DYNAMIC}.shuffleTracking.enabled", f"{_DYNAMIC}.enabled"),
            "error",
            "shuffle tracking, the shuffle service or decommissioning to keep shuffle files: "
            "Spark does not start otherwise",
        )


def heartbeat(view: View) -> Iterator[Finding]:
    """An executor must speak more often than it is given up."""
    beat, timeout = "spark.executor.heartbeatInterval", "spark.network.timeout"
    every, silence = view.amount(beat), view.amount(timeout)
    if every is not None and silence is not None and every >= silence:
        sentence = f"{beat} below {timeout} ({format_seconds(silence)}): Spark does not start otherwise"
        yield view.finding(view.first(beat, timeout), "error", sentence)


def encryption(view: View) -> Iterator[Finding]:
    """Encryption needs a shared secret."""
    for key in ("spark.network.crypto.enabled", "spark.authenticate.enableSaslEncryption"):
        if view.on(key) and not view.on("spark.authenticate"):
            sentence = "spark.authenticate true with it: Spark does not start otherwise"
            yield view.finding(key, "error", sentence)


def push_shuffle(view: View) -> Iterator[Finding]:
    """Push-based shuffle lives in YARN's shuffle service."""
    key, service = "spark.shuffle.push.enabled", "spark.shuffle.service.enabled"
    if view.on(key) and not (view.on(service) and view.text("spark.master") in ("", "yarn")):
        yield view.finding(key, "warning", f"of no effect: it needs YARN and {service}")


def speculation(view: View) -> Iterator[Finding]:
    """What the switch carries with it; the meaning of its numbers changed in Spark 4."""
    switch = "spark.speculation"
    knobs = [key for key in view.settings if key.startswith(f"{switch}.")]
    if knobs and not view.on(switch):
        yield view.finding(knobs[0], "info", f"of no effect while {switch} is false")
    if not view.on(switch):
        return
    for key, eager in ((f"{switch}.multiplier", 3.0), (f"{switch}.quantile", 0.9)):
        value = view.amount(key)
        if view.has(key) and value is not None and value < eager:
            sentence = f"below Spark 4's default of {eager:g}: more tasks run twice that are not stuck"
            yield view.finding(key, "info", sentence)


def event_log(view: View) -> Iterator[Finding]:
    """The event log's own default is a folder that nobody makes."""
    key = "spark.eventLog.enabled"
    if view.on(key) and not view.has("spark.eventLog.dir"):
        sentence = (
            "without spark.eventLog.dir it goes to /tmp/spark-events, and Spark fails when that is absent"
        )
        yield view.finding(key, "warning", sentence)


RULES: Final[tuple[Rule, ...]] = (
    dynamic_bounds,
    dynamic_shuffles,
    heartbeat,
    encryption,
    push_shuffle,
    speculation,
    event_log,
)
