"""What Spark observed while rows passed, asked without waiting for what may never come.

`Observation.get` waits without end before its action (classic), or gives nothing (Connect); and where the
optimizer has left the observed part out of the plan, Spark 4.1 fails inside the JVM or never answers at all
(SPARK-54620).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, Observation

from common.engine.handle import is_connect

REQUIRES = frozenset({"classic"})

WAIT_AT_MOST_SECONDS = 2.0  # until Spark's listeners have heard of the end of an action


def observed(df: DataFrame, observation: Observation) -> Mapping[str, Any] | None:
    """What the first action over the observed frame saw; None when there was none, or it left that part out.

    Args:
        df: Any frame of the session in which it was observed.
        observation: Attached to a frame by `DataFrame.observe`, or not yet.

    Plan:
        No action.
    """
    if is_connect(df.sparkSession):
        # Before `observe` Connect's holds None, after it an empty dict, and says an error for the first.
        return getattr(observation, "_result", None) or None
    held: Any = observation._jo
    if held is None:
        return None
    scala_context: Any = df.sparkSession.sparkContext._jsc.sc()
    if not held.future().isCompleted():
        scala_context.listenerBus().waitUntilEmpty(int(WAIT_AT_MOST_SECONDS * 1000))
    if not held.future().isCompleted() or held.getRow().schema() is None:
        return None
    return observation.get
