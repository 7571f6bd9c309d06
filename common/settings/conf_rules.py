"""Rules about settings that go together: what Spark refuses to start with, and what the guide warns of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from common.core.errors import ParameterError
from common.core.units import format_bytes, format_seconds
from common.settings.findings import Finding, Severity, finding
from common.settings.profiles import Setting
from common.settings.registry import Registry

# Ten attempts 15 s apart: longer than that, a node is not slow but dead (H3, H4).
PATIENCE_SECONDS: Final = 150.0
MOST_CORES: Final = 5


@dataclass(frozen=True)
class View:
    """The settings of a profile with Spark's defaults behind them, as values.

    Attributes:
        settings: Key to setting.
        registry: What is known of keys.
        is_ours: Whether the suite starts Spark with them: it computes what an accelerator needs in memory.
    """

    settings: Mapping[str, Setting]
    registry: Registry
    is_ours: bool = True

    def has(self, key: str) -> bool:
        """Whether the profile says anything about `key`."""
        return key in self.settings

    def text(self, key: str) -> str:
        """The value in force, or nothing."""
        known = self.registry.find(key)
        return self.settings[key].value if key in self.settings else (known and known.default) or ""

    def on(self, key: str) -> bool:
        """Whether a switch is on."""
        return self.text(key).strip().lower() == "true"

    def amount(self, key: str) -> float | None:
        """The value in force in bytes, seconds or as a number; None when none can be read."""
        known, text = self.registry.find(key), self.text(key)
        if known is None or not text or "${" in text:
            return None
        try:
            value = known.read(text)
        except ParameterError:
            return None
        return None if isinstance(value, str) else float(value)

    @property
    def is_local(self) -> bool:
        """Whether everything runs in one process."""
        return self.text("spark.master").startswith("local")

    @property
    def has_gpu(self) -> bool:
        """Whether executors have a GPU, or are to use one."""
        gpu = self.amount("spark.executor.resource.gpu.amount") or 0
        return gpu > 0 or "com.nvidia.spark.SQLPlugin" in self.text("spark.plugins")

    def finding(
        self,
        key: str,
        severity: Severity,
        sentence: str,
        *,
        hint: str | None = None,
        guidelines: tuple[str, ...] = (),
    ) -> Finding:
        """A finding about a setting, where it is written; by the key's own rules unless others are named."""
        known, setting = self.registry.find(key), self.settings.get(key)
        return finding(
            key,
            setting.value if setting else "unset",
            setting.origin if setting else "nowhere",
            severity=severity,
            sentence=sentence,
            guidelines=guidelines or (known.guidelines if known else ()),
            hint=hint,
        )

    def first(self, *keys: str) -> str:
        """The first of `keys` that the profile says something about, else the last."""
        return next((key for key in keys if self.has(key)), keys[-1])


Rule = Callable[[View], Iterator[Finding]]


def off_heap(view: View) -> Iterator[Finding]:
    """Off-heap memory: a switch and a size."""
    switch, size = "spark.memory.offHeap.enabled", "spark.memory.offHeap.size"
    is_sized = (view.amount(size) or 0) > 0
    is_computed = view.is_ours and not view.has(size) and "CometPlugin" in view.text("spark.plugins")
    if view.on(switch) and not is_sized and not is_computed:
        yield view.finding(switch, "error", f"{size} above 0 with it: Spark does not start otherwise")
    elif view.has(size) and is_sized and not view.on(switch):
        yield view.finding(size, "warning", f"of no effect while {switch} is false")


def driver_memory(view: View) -> Iterator[Finding]:
    """What a collect may bring fits the driver."""
    result, heap = "spark.driver.maxResultSize", "spark.driver.memory"
    most, size = view.amount(result), view.amount(heap)
    if view.has(result) and most and size and most > size:
        yield view.finding(
            result,
            "warning",
            f"more than {heap} ({format_bytes(int(size))}): a collect ends the driver first",
        )


def broadcast_size(view: View) -> Iterator[Finding]:
    """A broadcast has a hard limit."""
    limit = view.amount("spark.sql.maxBroadcastTableSize")
    for key in ("spark.sql.autoBroadcastJoinThreshold", "spark.sql.adaptive.autoBroadcastJoinThreshold"):
        size = view.amount(key)
        if view.has(key) and size and limit and size > limit:
            shown = format_bytes(int(limit))
            yield view.finding(
                key, "error", f"at most {shown}: a larger broadcast fails whatever the threshold"
            )


def patience(view: View) -> Iterator[Finding]:
    """How long a dead node is waited for."""
    retries, wait = "spark.shuffle.io.maxRetries", "spark.shuffle.io.retryWait"
    times, seconds = view.amount(retries), view.amount(wait)
    if times is not None and seconds is not None and times * seconds > PATIENCE_SECONDS:
        shown = format_seconds(times * seconds)
        yield view.finding(
            view.first(retries, wait),
            "warning",
            f"{times:g} retries, {format_seconds(seconds)} apart, hide a dead node for {shown}",
            hint="6 to 10 retries, 10 to 15 s apart; decommissioning or the shuffle service keep its files",
            guidelines=("H3", "H4"),
        )


def executor_cores(view: View) -> Iterator[Finding]:
    """Tasks at once in an executor."""
    key = "spark.executor.cores"
    cores, most = view.amount(key), view.amount("spark.cores.max")
    if not view.has(key) or not cores or view.is_local:
        return
    if cores > MOST_CORES and not view.has_gpu:
        sentence = f"{cores:g} tasks share one heap, one garbage collector and one disk queue"
        yield view.finding(key, "warning", sentence, hint="3 to 5; more only with a GPU")
    if most and most % cores:
        idle = most % cores
        yield view.finding(
            "spark.cores.max", "warning", f"no multiple of {key} ({cores:g}): {idle:g} of its cores stay idle"
        )


def overheads(view: View) -> Iterator[Finding]:
    """A size of overhead makes its factor idle."""
    for side in ("driver", "executor"):
        size, factor = f"spark.{side}.memoryOverhead", f"spark.{side}.memoryOverheadFactor"
        if view.has(size) and view.has(factor):
            yield view.finding(factor, "info", f"of no effect beside {size}")


def default_parallelism(view: View) -> Iterator[Finding]:
    """The old key does nothing for DataFrames."""
    key = "spark.default.parallelism"
    if view.has(key) and not view.has("spark.sql.shuffle.partitions"):
        yield view.finding(key, "info", "RDDs only: DataFrames follow spark.sql.shuffle.partitions (200)")


def adaptive(view: View) -> Iterator[Finding]:
    """Settings of a thing that is off; thresholds in an order that works."""
    switch = "spark.sql.adaptive.enabled"
    if not view.on(switch):
        for key in view.settings:
            if key.startswith("spark.sql.adaptive.") and key != switch:
                yield view.finding(key, "info", f"of no effect while {switch} is false")
        return
    skewed, advised = (
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes",
    )
    threshold, size = view.amount(skewed), view.amount(advised)
    if threshold and size and threshold < size:
        yield view.finding(
            view.first(skewed, advised),
            "warning",
            f"{skewed} below {advised}: skewed partitions are found that are too small to split",
        )


RULES: Final[tuple[Rule, ...]] = (
    off_heap,
    driver_memory,
    broadcast_size,
    patience,
    executor_cores,
    overheads,
    default_parallelism,
    adaptive,
)
