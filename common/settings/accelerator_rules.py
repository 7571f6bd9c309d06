"""Rules about accelerators: settings without which they switch themselves off, wait for ever, or fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from common.core.units import format_bytes
from common.settings.conf_rules import Rule, View
from common.settings.findings import Finding

COMET: Final = "org.apache.spark.CometPlugin"
COMET_SHUFFLE: Final = "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager"
RAPIDS: Final = "com.nvidia.spark.SQLPlugin"
_REGISTRATOR = "com.nvidia.spark.rapids.GpuKryoRegistrator"
_MARGIN_BYTES = 1 << 30


def _plugins(view: View) -> list[str]:
    return [name.strip() for name in view.text("spark.plugins").split(",")]


def one_accelerator(view: View) -> Iterator[Finding]:
    """Both rewrite the same plans."""
    if {COMET, RAPIDS} <= set(_plugins(view)):
        yield view.finding(
            "spark.plugins", "error", "one accelerator: Comet and RAPIDS rewrite the same plans"
        )


def comet(view: View) -> Iterator[Finding]:
    """Comet stays away without a word when one of these is missing."""
    if COMET not in _plugins(view):
        return
    if not view.on("spark.memory.offHeap.enabled"):
        yield view.finding(
            "spark.plugins",
            "warning",
            "Comet switches itself off without off-heap memory",
            hint="set spark.memory.offHeap.enabled true and spark.memory.offHeap.size",
        )
    if view.text("spark.shuffle.manager") != COMET_SHUFFLE and view.on("spark.comet.shuffle.enabled"):
        yield view.finding(
            view.first("spark.shuffle.manager", "spark.plugins"),
            "warning",
            "plans stay with Spark without Comet's shuffle manager, and nothing says so",
            hint=f"set spark.shuffle.manager {COMET_SHUFFLE}",
        )


def rapids(view: View) -> Iterator[Finding]:
    """What the RAPIDS Accelerator fails on, or steps aside for."""
    if RAPIDS not in _plugins(view):
        return
    kryo = view.text("spark.serializer").endswith(".KryoSerializer")
    if kryo and view.text("spark.kryo.registrator") != _REGISTRATOR:
        yield view.finding(
            view.first("spark.kryo.registrator", "spark.serializer"),
            "error",
            f"spark.kryo.registrator {_REGISTRATOR} with Kryo and RAPIDS: every broadcast fails otherwise",
        )
    for key in (
        "spark.sql.shuffle.orderIndependentChecksum.enabled",
        "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch",
    ):
        if view.on(key):
            yield view.finding(
                key, "warning", "RAPIDS falls back to Spark's own shuffle", hint="set it false"
            )
    if view.has("spark.sql.session.timeZone") and view.text("spark.sql.session.timeZone") not in (
        "UTC",
        "Etc/UTC",
    ):
        yield view.finding(
            "spark.sql.session.timeZone", "warning", "RAPIDS works on times in UTC only", hint="set it UTC"
        )


def pinned_memory(view: View) -> Iterator[Finding]:
    """Page-locked memory lies within the container's overhead."""
    pool, overhead = "spark.rapids.memory.pinnedPool.size", "spark.executor.memoryOverhead"
    pinned, room = view.amount(pool), view.amount(overhead)
    if pinned and room is not None and room < pinned + _MARGIN_BYTES:
        needed = format_bytes(int(pinned) + _MARGIN_BYTES)
        yield view.finding(
            overhead,
            "warning",
            f"less than {pool} and 1 GiB: the container is ended",
            hint=f"at least {needed}",
        )


def gpu_shares(view: View) -> Iterator[Finding]:
    """GPUs and the tasks that share them."""
    executor, task = "spark.executor.resource.gpu.amount", "spark.task.resource.gpu.amount"
    if view.is_local:
        for key in (executor, task):
            if view.has(key):
                sentence = "no GPU amounts with a local master: it schedules none, and the job waits for ever"
                yield view.finding(key, "error", sentence)
        return
    gpus, share, cores = view.amount(executor), view.amount(task), view.amount("spark.executor.cores")
    if RAPIDS in _plugins(view) and gpus is not None and gpus != 1:
        yield view.finding(executor, "error", "1: RAPIDS takes one GPU per executor")
    if view.has(task) and share and gpus and cores and cores * share > gpus:
        tasks = max(int(gpus / share + 1e-9), 1)
        yield view.finding(
            task,
            "warning",
            f"only {tasks} of {cores:g} tasks at once: the other cores of each executor stay idle",
            hint=f"at most {gpus / cores:g}",
        )
    script = "spark.executor.resource.gpu.discoveryScript"
    path = view.text(script)
    if path and not path.startswith("/") and view.text("spark.master") != "yarn":
        sentence = "a relative path, looked up in each executor's own folder"
        yield view.finding(script, "warning", sentence, hint="an absolute path; ./NAME on YARN with --files")


RULES: Final[tuple[Rule, ...]] = (one_accelerator, comet, rapids, pinned_memory, gpu_shares)
