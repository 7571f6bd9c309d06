"""Counters where the work is SQL: Spark's observation, checked, and put right where it is not.

What Spark 4.1.3 observes is not always what passed, as tried:

- A shuffle stage that runs again because its shuffle was lost adds its tasks once more (SPARK-58183).
- A sort looks at its input to find its ranges, then reads it again: rows behind a shuffle are there twice.
- Behind a join with nothing, or a filter that is false, the observed part is left out of the plan: nothing.
- A LIMIT reads part of the rows. Of an action that fails, the tasks that had ended are there, for good.

So an observation also notes each run of each partition of the counted frame. Where every partition ran once
the sums are right; where all ran equally often they are divided; else the rows are counted by an aggregate.
"""

from __future__ import annotations

import logging
from collections import Counter as Times
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from common.engine.observations import observed
from common.transforms.counters import (
    NOT_SEEN,
    OR_SETTLE,
    Counter,
    Readable,
    Reading,
    aggregates,
    checked,
    whole,
)

_ROW, _RUNS = "_saltpan_row", "_saltpan_runs"
_ROW_BITS = 33  # of monotonically_increasing_id: below them the row's place, above them its partition

_LOG = logging.getLogger("saltpan.engine")


class Counters(Readable):
    """Counters of the rows of one frame, for one run of it.

    Args:
        *declared: What to count; each has a name of its own, and says of what.

    Raises:
        ParameterError: none, or two of one name.
    """

    def __init__(self, *declared: Counter) -> None:
        self.declared = checked(declared)
        self._observation = Observation()
        self._frame: DataFrame | None = None
        self._distrust: str | None = None
        self._settled: Reading | None = None

    def attach(self, df: DataFrame) -> DataFrame:
        """The same rows, counted while they pass.

        Args:
            df: Rows to count. Not changed, not cached.

        Raises:
            ParameterError: attached already.  ColumnTypeError: a sum of what does not add up exactly.

        Plan:
            Lazy; no shuffle. Rows leave generated code for one operator, and get a number on the way. Filters
            above are not pushed below. Holds one number for each partition, in the driver.
        """
        if self._frame is not None:
            raise self._in_use()
        columns = aggregates(df, self.declared)
        self._frame = df
        numbered = df.select("*", F.monotonically_increasing_id().alias(_ROW))
        is_first = F.col(_ROW).bitwiseAND((1 << _ROW_BITS) - 1) == 0
        runs = F.collect_list(F.when(is_first, F.shiftright(_ROW, _ROW_BITS))).alias(_RUNS)
        return numbered.observe(self._observation, *columns, runs).drop(_ROW)

    def distrust(self, why: str) -> None:
        """Note that what was observed is not all: its action failed, or read part of the rows."""
        self._distrust, self._settled = why, None

    def read(self) -> Reading:
        """The numbers, from what was observed alone.

        Raises:
            NotRunError: no action has run, or what it observed cannot be put right without another.

        Plan:
            No action.
        """
        reading, why = self._read()
        if reading is None:
            raise self._not_run(why, hint=OR_SETTLE)
        return reading

    def settle(self) -> Reading:
        """The numbers, after the action: by an aggregate where what was observed is not right.

        Raises:
            NotRunError: attached to nothing.

        Plan:
            No action where each partition ran equally often, else one: the counted frame once more.
        """
        reading, why = self._read()
        if reading is None:
            if self._frame is None:
                return self.read()
            _LOG.info("counting once more: %s", why)
            row = self._frame.agg(*aggregates(self._frame, self.declared)).first()
            values = _values(row.asDict() if row else {})
            reading = Reading(values, self._naive() or dict.fromkeys(values), why)
        self._settled = reading
        return reading

    def _read(self) -> tuple[Reading | None, str]:
        """The reading, or why there is none."""
        if self._settled is not None:
            return self._settled, ""
        seen = None if self._frame is None else observed(self._frame, self._observation)
        if seen is None:
            return None, NOT_SEEN
        if self._distrust is not None:
            return None, self._distrust
        times = Times(seen[_RUNS])
        extra = sum(times.values()) - len(times)
        why = f"{len(times):,} partitions were read {sum(times.values()):,} times"
        naive = _values(seen)
        if not extra:
            return Reading(naive, naive), ""
        often = max(times.values())
        additive = [counter.name for counter in self.declared if counter.is_additive]
        shares = {name: _share(naive[name], often) for name in additive}
        if min(times.values()) < often or None in shares.values():
            return None, why
        return Reading({**naive, **shares}, naive, why), why

    def _naive(self) -> Mapping[str, Any] | None:
        seen = None if self._frame is None else observed(self._frame, self._observation)
        return None if seen is None else _values(seen)


def _values(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: whole(value) for name, value in row.items() if name != _RUNS}


def _share(total: int | Decimal, often: int) -> int | Decimal | None:
    """The total divided; None when it does not divide, so that it was no such sum."""
    sign, digits, exponent = Decimal(total).as_tuple()
    share, rest = divmod(int("".join(map(str, digits))), often)
    if rest or not isinstance(exponent, int):
        return None
    value = Decimal((sign, tuple(map(int, str(share))), exponent))
    return int(value) if isinstance(total, int) else value
