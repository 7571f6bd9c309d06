"""Lookups: the same rows by a join and by a broadcast variable, whatever the keys are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from common.core.errors import ColumnMissingError, ColumnTypeError, ParameterError, StrategyError
from common.core.key_errors import KeyMissingError
from common.engine.broadcast_tables import broadcast_table
from common.runs.aftermath import distrust, settle
from common.runs.record import RunRecord
from common.settings.job import with_inputs
from common.transforms.counters import aggregates
from common.transforms.lookup import answer, counters, missing_keys, plain_lookup, rejected, unfit_defaults
from common.transforms.lookup_dimension import dimension_summary, prepared_dimension, validity_summary
from common.transforms.lookup_hits import Hits, found_hits, joined_hits, variable_rows
from common.transforms.lookup_sides import lookup_sides
from common.transforms.lookup_spec import LookupSpec, Validity
from common.tuning.decision import Decision
from jobs.lookup import Lookup, Settings
from tests.frames import frame, no_actions, rows_of, shown

NAN = float("nan")
Way = Callable[[DataFrame, DataFrame, LookupSpec], Hits]


@pytest.fixture(params=["broadcast", "shuffle", "variable"])
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    """Finds by a broadcast join, by whatever join Spark takes, or by a broadcast variable."""
    with ExitStack() as stack:

        def find(facts: DataFrame, dimension: DataFrame, spec: LookupSpec) -> Hits:
            with no_actions():
                sides = lookup_sides(facts, dimension, spec)
                rows = prepared_dimension(sides, spec)
                if request.param != "variable":
                    return joined_hits(sides, rows, broadcast=request.param == "broadcast")
                wanted = variable_rows(sides, rows)
            table = stack.enter_context(broadcast_table(wanted, workers=2, max_bytes=1 << 20))
            with no_actions():
                return found_hits(sides, rows, table.variable)

        yield find


def sorted_rows(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(shown, row)) for row in rows_of(df)), key=repr)


def test_d7_keys_of_every_type_in_one_query(spark: SparkSession, way: Way) -> None:
    schema = "id INT, i INT, d DOUBLE, m DECIMAL(10,2), t STRING, a INT, b STRING"
    rows = [
        (1, 1, 1.0, Decimal("1.00"), "1", 1, "x"),
        (2, 1, -0.0, Decimal("2.50"), "01", 1, None),
        (3, None, NAN, None, None, None, "x"),
        (4, 9, 0.0, Decimal("9.00"), "9", 2, "y"),
        (5, 2, None, Decimal("1.01"), "1", 2, "x"),
    ]
    facts = frame(spark, rows, schema, partitions=2)
    dimensions = {
        "i": ("STRING", [("1", "one"), (" 2 ", "two"), (None, "never")]),
        "d": ("DOUBLE", [(1.0, "one"), (0.0, "zero"), (NAN, "nan"), (None, "never")]),
        "m": ("INT", [(1, "one"), (9, "nine")]),
        "t": ("BIGINT", [(1, "one"), (7, "seven")]),
    }
    answers = facts
    for key, (kind, values) in dimensions.items():
        dimension = frame(spark, values, f"key {kind}, v STRING")
        spec = LookupSpec(((key, "key"),), (("v", f"{key}_v"),))
        answers = answer(way(answers, dimension, spec), spec)
    pairs = frame(spark, [(1, "x", "p"), (2, "y", "q"), (1, None, "never")], "a INT, b STRING, v STRING")
    spec = LookupSpec((("a", "a"), ("B", "b")), (("V", ""),))
    answers = answer(way(answers, pairs, spec), spec)
    assert answers.columns == ["id", "i", "d", "m", "t", "a", "b", "i_v", "d_v", "m_v", "t_v", "v"]
    assert {row[0]: row[7:] for row in sorted_rows(answers)} == {
        1: ("one", "one", "one", "one", "p"),
        2: ("one", "zero", None, "one", None),
        3: (None, "nan", None, None, None),
        4: (None, "zero", "nine", None, "q"),
        5: ("two", None, None, "one", None),
    }


D7_FACTS = [(1,), (2,), (None,), (9,)]
D7_DIMENSION = [(1, "a", 10), (1, "b", 20), (2, "c", None)]


@pytest.mark.parametrize(
    ("duplicates", "of_one"), [("first", ["a"]), ("last", ["b"]), ("expand", ["a", "b"])]
)
def test_d7_duplicates_and_what_is_counted(
    spark: SparkSession, way: Way, duplicates: Any, of_one: list[str]
) -> None:
    facts = frame(spark, D7_FACTS, "k INT", partitions=2)
    dimension = frame(spark, D7_DIMENSION, "k BIGINT, v STRING, t INT", partitions=2)
    spec = LookupSpec((("k", "k"),), (("v", ""),), duplicates=duplicates, order=("t",))
    hits = way(facts, dimension, spec)
    expected = [*((1, v) for v in of_one), (2, "c"), (9, None), (None, None)]
    assert sorted_rows(answer(hits, spec)) == sorted(expected, key=repr)
    counted = hits.rows.agg(*aggregates(hits.rows, counters(hits))).collect()[0].asDict()
    counted["duplicates"] = dimension_summary(hits.sides, spec).collect()[0]["duplicates"]
    assert counted == {"facts": 4, "matched": 2, "missing": 2, "null_keys": 1, "duplicates": 1}


def test_after_an_attempt_that_failed_the_run_counts_all_facts(spark: SparkSession, tmp_path: Path) -> None:
    """What the first attempt has seen (here one fact, which has a match) must not let the answer pass."""
    inputs = {
        "facts": frame(spark, sorted(D7_FACTS, key=repr), "k INT"),
        "dimension": frame(spark, D7_DIMENSION, "k BIGINT, v STRING, t INT"),
    }
    model = with_inputs(Settings, Lookup.inputs)
    settings = model(
        on=("k",), take=("v",), missing="fail", duplicates="first:t", facts=("f",), dimension=("d",)
    )
    job, record = Lookup(), RunRecord.start("lookup", runs_dir=tmp_path)
    decision = Decision("join", "as asked", evidence={"broadcast": True, "duplicates": 1})
    counted = job.build(inputs, settings, decision)
    counted.rows.limit(1).collect()
    distrust(counted, "an attempt failed")
    with pytest.raises(KeyMissingError, match="2 rows without one"):
        settle(job, counted, settings, record)
    assert record.counters == {"facts": 4, "matched": 2, "missing": 2, "null_keys": 1, "duplicates": 1}


def test_what_becomes_of_facts_without_a_match(spark: SparkSession, way: Way) -> None:
    facts = frame(spark, [*D7_FACTS, (9,)], "k INT")
    dimension = frame(spark, [(1, None, 7), (2, "c", 8)], "k INT, v STRING, n INT")
    spec = LookupSpec((("k", "k"),), (("v", ""), ("n", "m")), missing="default", default="0")
    hits = way(facts, dimension, spec)
    # A NULL that was found stays; only what was not found has the default, in the column's own type.
    kept = answer(hits, spec)
    assert kept.schema["m"].dataType.simpleString() == "int"
    assert sorted_rows(kept) == [(1, None, 7), (2, "c", 8), (9, "0", 0), (9, "0", 0), (None, "0", 0)]
    quarantine = LookupSpec(spec.on, spec.take, missing="quarantine")
    both = answer(hits, quarantine).select("k").union(rejected(hits).select("k"))
    assert sorted_rows(both) == [(1,), (2,), (9,), (9,), (None,)]
    assert sorted_rows(rejected(hits)) == [("NO_MATCH", 9), ("NO_MATCH", 9), ("NULL_KEY", None)]
    assert rows_of(missing_keys(hits)) == [("9", 2), ("NULL", 1)]


TYPES = {
    "BOOLEAN": True,
    "TINYINT": 1,
    "FLOAT": 1.5,
    "DATE": dt.date(2024, 2, 29),
    "DECIMAL(38,18)": Decimal("1.100000000000000000"),
    "TIMESTAMP_NTZ": dt.datetime(1600, 1, 1),
    "BINARY": bytearray(b"\0\xff"),
    "ARRAY<INT>": [1, None],
    "MAP<STRING,ARRAY<INT>>": {"a": [1]},
    "STRUCT<u:INT,w:STRING>": (1, "z"),
    "STRING": "ä",
}


def test_taken_columns_of_every_type(spark: SparkSession, way: Way) -> None:
    """One match, and one fact without: the value of each type, and NULL."""
    dimension = spark.createDataFrame(
        [(1, *TYPES.values(), dt.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=dt.UTC))],
        "k INT, " + ", ".join(f"c{at} {kind}" for at, kind in enumerate(TYPES)) + ", t TIMESTAMP",
    )
    names = tuple((name, f"my {name}") for name in dimension.columns)
    spec = LookupSpec((("id", "k"),), names)
    found = answer(way(spark.range(1, 3), dimension, spec), spec)
    assert [field.dataType for field in found.schema.fields[1:]] == [
        field.dataType for field in dimension.schema.fields
    ]
    one, two = sorted(rows_of(found.withColumn("my t", F.col("my t").cast("string"))))
    assert one == (1, 1, *TYPES.values(), "2024-02-29 01:02:03.000004")
    assert two == (2, *[None] * (len(TYPES) + 2))


def test_the_first_row_is_the_same_for_any_partitioning(spark: SparkSession) -> None:
    rows = [
        (1, None, 9, {"a": 1}),
        (1, 5, 3, {"a": 2}),
        (1, 5, 3, {"a": 1}),
        (1, 5, 4, {"a": 0}),
        (2, None, 1, None),
    ]
    facts = frame(spark, [(1,), (2,)], "k INT")
    for duplicates, expected in (("first", [(1, 3, 1), (2, 1, None)]), ("last", [(1, 4, 0), (2, 1, None)])):
        spec = LookupSpec((("k", "k"),), (("x", ""), ("m", "")), duplicates=duplicates, order=("T",))  # type: ignore[arg-type]
        for partitions, flip in ((1, False), (3, True)):
            dimension = frame(
                spark, rows, "k INT, t INT, x INT, m MAP<STRING,INT>", partitions=partitions, flip=flip
            )
            found = plain_lookup(facts, dimension, spec).selectExpr("k", "x", "m['a']")
            assert sorted(rows_of(found)) == expected


def test_the_dimension_is_summed_up(spark: SparkSession) -> None:
    rows = [(1, "ab"), (1, "c"), (2, None), (3, "d"), (3, "e"), (3, "f"), (None, "g"), (None, "h")]
    dimension = frame(spark, rows, "k INT, v STRING", partitions=2)
    spec = LookupSpec((("k", "k"),), (("v", ""),))
    ((*found,),) = rows_of(dimension_summary(lookup_sides(dimension.select("k"), dimension, spec), spec))
    # A row is a word of hash, one of key, and one and the bytes of text: six rows, six bytes.
    assert found == [6, 3, 3, 2, 6 * 24 + 6, (3, "3"), ("1", 2), ("3", 3)]
    empty = dimension.limit(0)
    ((*found,),) = rows_of(dimension_summary(lookup_sides(empty.select("k"), empty, spec), spec))
    assert found == [0, 0, 0, 0, 0, None, None, None]


def day(text: str | None) -> dt.date | None:
    return dt.date.fromisoformat(text) if text else None


VERSIONS = [
    ("a", None, "2013-01-01", 1),
    ("a", "2013-01-01", "2013-06-01", 2),
    ("a", "2013-06-01", None, 3),
    ("b", "2013-01-01", "2013-02-01", 4),
    ("b", "2013-07-01", None, 5),
]


@pytest.mark.parametrize(
    ("as_of", "expected"),
    [
        ("2012-12-31", {"a": 1, "b": None}),
        ("2013-01-01", {"a": 2, "b": 4}),
        ("2013-05-31", {"a": 2, "b": None}),
        ("2013-06-01", {"a": 3, "b": None}),
        ("2013-07-01", {"a": 3, "b": 5}),
    ],
)
def test_versions_are_valid_from_their_first_day_to_the_last_but_one(
    spark: SparkSession, as_of: str, expected: dict[str, int | None]
) -> None:
    rows = [(key, day(start), day(end), number) for key, start, end, number in VERSIONS]
    dimension = frame(spark, rows, "k STRING, f DATE, t DATE, v INT")
    spec = LookupSpec((("k", "k"),), (("v", ""),), validity=Validity(dt.date.fromisoformat(as_of), "F", "t"))
    facts = frame(spark, [("a",), ("b",)], "k STRING")
    assert dict(rows_of(plain_lookup(facts, dimension, spec))) == expected


def test_empty_and_overlapping_versions_and_gaps_are_found(spark: SparkSession) -> None:
    rows = [
        # The long one is over the third, though not the neighbour of it.
        ("over", "2013-01-01", "2013-12-31"), ("over", "2013-02-01", "2013-03-01"),
        ("over", "2013-04-01", "2013-05-01"),
        ("open", "2013-01-01", None), ("open", "2013-06-01", "2013-07-01"),
        ("since", None, "2013-02-01"), ("since", None, "2013-01-01"),
        ("void", "2013-01-01", "2013-01-01"), ("void", "2013-03-01", "2013-02-01"),
        ("meet", "2013-01-01", "2013-02-01"), ("meet", "2013-02-01", "2014-01-01"),
        ("hole", "2013-01-01", "2013-02-01"), ("hole", "2013-02-02", None),
        ("back", None, "2013-01-01"), ("back", "2013-05-01", "2013-06-01"),
        (None, "2013-01-01", None), (None, "2013-01-01", None),
    ]  # fmt: skip
    dimension = frame(
        spark, [(k, day(a), day(b)) for k, a, b in rows], "k STRING, f DATE, t DATE", partitions=3
    )
    dimension = dimension.withColumn("f", F.col("f").cast("timestamp"))
    spec = LookupSpec((("k", "k"),), (("k", "kk"),), validity=Validity(dt.date(2013, 6, 15), "f", "t"))
    sides = lookup_sides(dimension.select("k"), dimension, spec)
    (found,) = [row.asDict() for row in validity_summary(sides, spec).collect()]
    assert found == {
        "empty_keys": 1, "empty_first": "void", "empty_last": "void",
        "overlapping_keys": 3, "overlapping_first": "open", "overlapping_last": "since",
        "gap_keys": 2, "gap_first": "back", "gap_last": "hole",
        "absent_keys": 3, "absent_first": "back", "absent_last": "void",
    }  # fmt: skip


def test_d1_a_table_serves_twice_after_unpersist_and_is_gone_after_close(spark: SparkSession) -> None:
    facts, dimension = frame(spark, [(1,)], "k INT"), frame(spark, [(1, "a")], "k INT, v STRING")
    spec = LookupSpec((("k", "k"),), (("v", ""),))
    sides = lookup_sides(facts, dimension, spec)
    rows = prepared_dimension(sides, spec)
    table = broadcast_table(variable_rows(sides, rows), workers=1, max_bytes=1000)
    found = answer(found_hits(sides, rows, table.variable), spec)
    assert rows_of(found) == [(1, "a")]
    table.variable.unpersist(blocking=True)
    assert rows_of(found) == [(1, "a")]
    table.variable.destroy()  # somebody else's
    table.close()
    table.close()
    with pytest.raises(Exception, match="destroyed"):
        found.collect()


def test_what_cannot_be_looked_up_is_said(spark: SparkSession) -> None:
    facts = frame(spark, [], "k BIGINT, name STRING")
    dimension = frame(spark, [], "k DOUBLE, j BIGINT, Name STRING, label STRING, f STRING")
    good = LookupSpec((("k", "j"),), (("label", ""),))
    with pytest.raises(ParameterError, match=r"name that no other column .*--take Name=dimension_Name"):
        lookup_sides(facts, dimension, LookupSpec(good.on, (("name", ""),)))
    with pytest.raises(ParameterError, match="taken column `x`"):
        lookup_sides(facts, dimension, LookupSpec(good.on, (("label", "x"), ("j", "x"))))
    with pytest.raises(ColumnTypeError, match=r"bigint and double. Hint: .* --dimension-schema"):
        lookup_sides(facts, dimension, LookupSpec((("k", "k"),), good.take))
    with pytest.raises(ColumnMissingError, match=r"a column of the input dimension.*did you mean `label`"):
        lookup_sides(facts, dimension, LookupSpec(good.on, (("lable", ""),)))
    sides = lookup_sides(facts, dimension, good)
    validity = Validity(dt.date(2013, 1, 1), "f", "f")
    with pytest.raises(ColumnTypeError, match="column `f`: expected a date or a timestamp, got string"):
        prepared_dimension(sides, LookupSpec(good.on, good.take, validity=validity))
    assert lookup_sides(facts.selectExpr("CAST(k AS INT) k"), dimension, good).casts == (
        "facts k: int -> bigint",
    )
    collated = frame(spark, [], "k STRING, v INT").selectExpr("k COLLATE UTF8_LCASE AS k", "v")
    spec = LookupSpec((("k", "k"),), (("v", ""),))
    sides = lookup_sides(collated.select("k"), collated, spec)
    with pytest.raises(StrategyError, match="keys whose equal values have one hash"):
        variable_rows(sides, prepared_dimension(sides, spec))


def test_a_default_that_does_not_fit_is_named(spark: SparkSession) -> None:
    dimension = frame(spark, [], "k INT, v STRING, n INT, d DATE")
    spec = LookupSpec((("k", "k"),), (("v", ""), ("n", "m"), ("d", "")), missing="default", default="none")
    sides = lookup_sides(dimension.select("k"), dimension, spec)
    assert rows_of(unfit_defaults(sides, spec)) == [(["m (int)", "d (date)"],)]
