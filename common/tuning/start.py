"""How a JVM of our own is started: for a job of seconds, or for one of minutes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from common.core.units import format_bytes
from common.tuning.decision import Decision
from common.tuning.facts import InputFacts

Start = Literal["auto", "fast", "full"]

# Below this much input a run ends before the second compiler has paid for itself.
FAST_UP_TO_BYTES = 64 * 1024**2


def plan_start(start: Start, *, inputs: Iterable[InputFacts]) -> Decision:
    """Choose between a JVM that starts fast and one that runs fast.

    Args:
        start: "auto", or the choice that the user forces.
        inputs: What is known of the inputs before a session exists.
    """
    sizes = [item.size_bytes for item in inputs]
    known = [size for size in sizes if size is not None]
    total, unknown = sum(known), len(sizes) - len(known)
    evidence = {"size_bytes": total, "inputs_of_unknown_size": unknown, "limit_bytes": FAST_UP_TO_BYTES}
    if start != "auto":
        return Decision(start, "as asked", evidence=evidence, forced=True)
    if unknown:
        return Decision("full", "the size of the input is not known before Spark runs", evidence=evidence)
    limit = format_bytes(FAST_UP_TO_BYTES)
    if total > FAST_UP_TO_BYTES:
        reason = f"{format_bytes(total)} of input is more than {limit}: the second compiler pays for itself"
        return Decision("full", reason, evidence=evidence)
    reason = f"{format_bytes(total)} of input: one compiler, one collector, classes from an archive"
    return Decision("fast", reason, (("full", f"pays for itself above {limit}"),), evidence)
