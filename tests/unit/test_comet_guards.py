"""What in a plan or a footer keeps a query on plain Spark; plans as Spark 4.1.3 prints them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common.engine.comet import went_through
from common.engine.comet_guards import unsafe_footers, unsafe_for_comet
from common.engine.plans import Plan, parse_plan

SCHEMA = "struct<id:bigint,g:string,d:double,f:float,n:int,m:decimal(10,2),b:binary,day:date,a:array<int>>"
OUTPUT = "[id#0L, g#1, d#2, f#3, n#4, m#5, b#6, day#7, a#8]"


def plan(operator: str, argument: str, *, schema: str = SCHEMA, location: str = "file:/data/t") -> Plan:
    return parse_plan(
        f"""== Physical Plan ==
AdaptiveSparkPlan (3)
+- {operator} (2)
   +- Scan parquet  (1)


(1) Scan parquet{" "}
Output [9]: {OUTPUT}
Batched: true
Location: InMemoryFileIndex [{location}]
ReadSchema: {schema}

(2) {operator}
Input [9]: {OUTPUT}
Arguments: {argument}

(3) AdaptiveSparkPlan
Output [1]: [x#9]
Arguments: isFinalPlan=false
"""
    )


def window(*functions: tuple[str, str], operator: str = "Window") -> list[str]:
    expressions = ", ".join(
        f"{function} windowspecdefinition(g#1, id#0L ASC, specifiedwindowframe({frame})) AS x#{9 + i}"
        for i, (function, frame) in enumerate(functions)
    )
    return unsafe_for_comet(plan(operator, f"[{expressions}], [g#1], [id#0L ASC NULLS FIRST]"))


RUNNING = "RowFrame, unboundedpreceding$(), currentrow$()"
WHOLE = "RowFrame, unboundedpreceding$(), unboundedfollowing$()"
DEFAULT = "RangeFrame, unboundedpreceding$(), currentrow$()"
SLIDING = "RowFrame, -1, currentrow$()"
TO_THE_END = "RowFrame, currentrow$(), unboundedfollowing$()"


@pytest.mark.parametrize(
    ("function", "frame"),
    [
        ("row_number()", RUNNING),
        ("rank(d#2)", RUNNING),
        ("dense_rank(d#2)", RUNNING),
        ("sum(d#2)", RUNNING),
        ("sum(d#2)", WHOLE),
        ("avg(d#2)", DEFAULT),
        ("max(d#2)", SLIDING),
        ("count(1)", SLIDING),
        ("lag(d#2, -1, null)", "RowFrame, -1, -1"),
        ("first(d#2, false)", TO_THE_END),
    ],
)
def test_windows_that_agree(function: str, frame: str) -> None:
    assert window((function, frame)) == []


@pytest.mark.parametrize("function", ["sum(d#2)", "avg(n#4)", "mean(d#2)", "try_sum(id#0L)", "try_avg(d#2)"])
@pytest.mark.parametrize(
    "frame",
    [SLIDING, TO_THE_END, "RowFrame, -3, -1", "RangeFrame, currentrow$(), unboundedfollowing$()"],
)
@pytest.mark.parametrize("operator", ["Window", "CometWindowExec"])
def test_sums_over_sliding_frames(function: str, frame: str, operator: str) -> None:
    (reason,) = window((function, frame), operator=operator)
    assert "sliding frame" in reason


@pytest.mark.parametrize(
    "frame", ["RangeFrame, -5, currentrow$()", "RangeFrame, unboundedpreceding$(), 10", "RangeFrame, 1, 10"]
)
def test_range_frames_with_an_offset(frame: str) -> None:
    (reason,) = window(("count(1)", frame))
    assert "RANGE frame" in reason


def test_each_function_has_its_own_frame() -> None:
    assert window(("lag(d#2, -1, null)", "RowFrame, -1, -1"), ("sum(d#2)", RUNNING)) == []
    assert window(("sum(d#2)", RUNNING), ("lag(d#2, -1, null)", "RowFrame, -1, -1")) == []
    assert len(window(("lag(d#2, -1, null)", "RowFrame, -1, -1"), ("sum(d#2)", SLIDING))) == 1


@pytest.mark.parametrize(
    "cast",
    [
        "cast(id#0L as string)",
        "cast(n#4 as string)",
        "cast(m#5 as string)",
        "cast(day#7 as string)",
        "cast(g#1 as decimal(10,2))",
        "cast(m#5 as decimal(12,2))",
        "cast(count(1)#77L as decimal(20,0))",
        "cast(d#2 as bigint)",
        "cast(g#1 as double)",
        "concat(g#1, cast(n#4 as string))",
    ],
)
def test_casts_that_agree(cast: str) -> None:
    assert unsafe_for_comet(plan("Project", f"[{cast} AS x#9]")) == []


@pytest.mark.parametrize(
    "cast",
    [
        "cast(d#2 as string)",
        "cast(f#3 as string)",
        "cast(b#6 as string)",
        "cast(a#8 as string)",
        "cast((d#2 + 1.0) as string)",
        "cast(y#99 as string)",  # nobody knows what it is
        "try_cast(d#2 as decimal(10,2))",
        "cast((id#0L / n#4) as decimal(10,2))",
        "concat(g#1, cast(d#2 as string))",
        "cast(cast(n#4 as double) as string)",
        "cast(d#2 as varchar(10))",
        "cast(d#2 as string",  # cut
    ],
)
def test_casts_that_differ(cast: str) -> None:
    (reason,) = unsafe_for_comet(plan("Project", f"[{cast} AS x#9]"))
    assert "a cast to " in reason


@pytest.mark.parametrize(
    ("operator", "argument", "said"),
    [
        ("Sample", "0.0, 0.1, false, 7", "a sample"),
        ("Project", "[rand(7) AS x#9]", "rand()"),
        ("Project", "[monotonically_increasing_id() AS x#9L]", "monotonically_increasing_id()"),
        ("Project", "[id#0L, ... 16 more fields]", "too long"),
    ],
)
def test_what_depends_on_places_or_is_cut(operator: str, argument: str, said: str) -> None:
    (reason,) = unsafe_for_comet(plan(operator, argument))
    assert said in reason


@pytest.mark.parametrize(
    ("schema", "location", "known", "count"),
    [
        ("struct<id:bigint,day:date>", "file:/data/t", True, 0),
        ("struct<id:bigint,day:date>", "file:/data/t", False, 1),
        ("struct<id:bigint,day:date>", "hdfs://name/t", True, 1),
        ("struct<id:bigint,day:timestamp>", "s3a://bucket/t", True, 1),
        ("struct<id:bigint,day:string>", "hdfs://name/t", True, 0),
    ],
)
def test_dates_of_files_that_nobody_has_looked_at(
    schema: str, location: str, known: bool, count: int
) -> None:
    seen = plan("Filter", "isnotnull(id#0L)", schema=schema, location=location)
    assert len(unsafe_for_comet(seen, footers_are_known=known)) == count


def written(path: Path, kind: pa.DataType, metadata: dict[str, str]) -> str:
    schema = pa.schema([("x", kind)], metadata=metadata)
    pq.write_table(pa.table({"x": [dt.datetime(2020, 1, 1)]}, schema=schema), path)
    return str(path)


@pytest.mark.parametrize(
    ("kind", "metadata", "said"),
    [
        (pa.timestamp("us"), {}, None),
        (pa.timestamp("us"), {"org.apache.spark.version": "4.1.3"}, None),
        (pa.timestamp("us"), {"org.apache.spark.version": "2.4.8"}, "calendar of Spark 2"),
        (
            pa.timestamp("us"),
            {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""},
            "calendar of Spark 2",
        ),
        (pa.timestamp("us"), {"org.apache.spark.legacyINT96": ""}, "calendar of Spark 2"),
        (pa.timestamp("ms"), {}, "milliseconds"),
        (pa.date32(), {}, None),
    ],
)
def test_footers(tmp_path: Path, kind: pa.DataType, metadata: dict[str, str], said: str | None) -> None:
    fine = written(tmp_path / "fine.parquet", pa.timestamp("us"), {})
    reasons = unsafe_footers([fine, written(tmp_path / "x.parquet", kind, metadata), fine])
    assert len(reasons) == (0 if said is None else 1)
    assert said is None or said in reasons[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("org.apache.comet.CometNativeException: External error", True),
        ("X\n\tat org.apache.spark.sql.comet.CometExecIterator.next(CometExecIterator.scala:1)", True),
        ("[DIVIDE_BY_ZERO] Division by zero\n\tat org.apache.spark.sql.execution.X", False),
        ("no such file: /data/comet.parquet", False),
    ],
)
def test_failures_that_went_through_comet(text: str, expected: bool) -> None:
    assert went_through(RuntimeError(text)) is expected
