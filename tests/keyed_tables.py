"""Tables for property tests of joins: keys of many types that meet often, with all that is hard in them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

KINDS: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "bigint": (pa.int64(), [0, 1, -1, 7, 2**63 - 1]),
    "string": (pa.string(), ["", "a", "A", "ä", "a|b"]),
    "double": (pa.float64(), [0.0, -0.0, 1.5, math.inf, math.nan]),
    "decimal": (pa.decimal128(20, 2), [Decimal("0.00"), Decimal("1.10"), Decimal("-1.10")]),
    "date": (pa.date32(), [dt.date(1970, 1, 1), dt.date(2024, 2, 29)]),
}


@st.composite
def keyed_tables(draw: st.DrawFn) -> tuple[pa.Table, pa.Table]:
    """Two tables of a key of two columns and a number; their keys are few, so that they meet often."""
    kind, values = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    value = st.one_of(st.none(), st.sampled_from(list(values)))
    keys = st.lists(st.tuples(value, st.sampled_from([1, 2, None])), max_size=25)

    def table(rows: list[tuple[Any, Any]], name: str) -> pa.Table:
        columns = [
            pa.array([a for a, _ in rows], kind),
            pa.array([b for _, b in rows], pa.int32()),
            pa.array(range(len(rows)), pa.int32()),
        ]
        return pa.table(columns, names=["a", "b", name])

    return table(draw(keys), "x"), table(draw(keys), "y")
