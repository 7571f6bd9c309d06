"""Rows that cannot be read as declared: the same ones whichever columns are asked for, each where it is."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from common.core.errors import ParameterError, UsageError, ValueMalformedError
from common.engine.failures import translated
from common.engine.listing import Listing, list_input
from common.engine.sifted_rows import bad_row_summary
from common.engine.sifted_rows import sift as sifted
from common.engine.tables import read_input
from common.engine.writer import write_rows
from common.settings.inputs import InputRequest
from common.transforms.bad_rows import BAD_ROWS
from tests.frames import frame, rows_of

Sift = Callable[..., tuple[DataFrame, list[dict[str, Any]], int]]


@pytest.fixture
def sift(spark: SparkSession, tmp_path: Path) -> Sift:
    """The readable rows of some files, the bad ones in order, and the number of all records."""

    def of(contents: dict[str, str | bytes], **fields: Any) -> tuple[DataFrame, list[dict[str, Any]], int]:
        for name, content in contents.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        listing = list_input(InputRequest("sales", (str(tmp_path),), bad_rows="reject", **fields))
        read = sifted(spark, listing)
        bad, counters = read.bad()
        found = sorted((row.asDict() for row in bad.collect()), key=lambda row: (row["file"], row["record"]))
        for row in found:
            assert row.pop("input") == "sales"
            row["file"] = str(Path(row["file"]).relative_to(tmp_path))
        records = sum(one.settle().values["records"] for one in counters)
        return read.readable, found, records

    return of


def bad(file: str, record: int | None, raw: str, columns: str | None = None) -> dict[str, Any]:
    reason = "MALFORMED" if columns is None else "BAD_VALUE"
    return {"reason": reason, "columns": columns, "file": file, "record": record, "raw": raw}


def test_i4_whichever_columns_are_selected(sift: Sift) -> None:
    good, found, records = sift({"f.csv": "a,b,c,d\n1,2,3,4\n5,6,7,8\nxxx\n9,10,11,12\n"})
    assert [good.count(), good.select("a").count(), len(good.select("d").collect()), len(good.collect())] == [
        3
    ] * 4
    assert (found, records) == ([bad("f.csv", 3, "xxx")], 4)


def test_i5_a_value_and_a_short_row(sift: Sift) -> None:
    text = "a,b\n1,2026-01-01\nx,2026-01-02\n3\n"
    good, found, records = sift({"f.csv": text}, schema="a INT, b DATE")
    assert rows_of(good) == [(1, dt.date(2026, 1, 1))]
    assert found == [bad("f.csv", 2, "x,2026-01-02", "a"), bad("f.csv", 3, "3")]
    assert records == 3


def test_i11_casts_and_a_decimal_that_is_too_wide(spark: SparkSession, sift: Sift, tmp_path: Path) -> None:
    text = "n,d\n1,1.5\n12x,1.5\n2,10.34\ny,11\n"
    good, found, _ = sift({"f.csv": text}, schema="n INT, d DECIMAL(5,4)")
    assert rows_of(good) == [(1, Decimal("1.5000"))]
    assert found == [
        bad("f.csv", 2, "12x,1.5", "n"), bad("f.csv", 3, "2,10.34", "d"), bad("f.csv", 4, "y,11", "n, d")
    ]  # fmt: skip
    for columns in ("n", "d"):  # a row is bad for a column that nobody asks for
        assert good.select(columns).count() == 1
    strict = list_input(InputRequest("sales", (str(tmp_path),), schema="n INT, d DECIMAL(5,4)"))
    with pytest.raises(ValueMalformedError), translated():
        read_input(spark, strict).collect()


def test_records_are_numbered_in_each_file_over_quoted_line_breaks_and_long_ones(sift: Sift) -> None:
    long = "z" * 1_500_000  # more than the parser's buffer
    files = {
        "a b+c%.csv": 't,n\n"two\nlines",1\n\n"x ""y""\nz",no\n',
        "b.csv": f"n,t\n1,{long}\n2,{long},more\n3,w\n",
    }
    good, found, records = sift(files, schema="t STRING, n INT")
    assert sorted((len(row[0]), row[1]) for row in rows_of(good)) == [(1, 3), (9, 1), (1_500_000, 1)]
    assert [(row["file"], row["record"], row["reason"], row["columns"]) for row in found] == [
        ("a b+c%.csv", 2, "BAD_VALUE", "n"), ("b.csv", 2, "MALFORMED", None)
    ]  # fmt: skip
    assert found[0]["raw"] == '"x ""y""\nz",no'
    assert found[1]["raw"] == f"2,{long},more"
    assert records == 5


def test_folders_other_separators_and_columns_that_nobody_wants(sift: Sift) -> None:
    files = {
        "day=1/c.csv": "t;n;skipped\nq;oops;1\nq;5;2\n",
        "day=2/c.csv": "skipped;n;t\n1;6;'r;s'\nz;;\n",
    }
    options = {"sep": ";", "quote": "'"}
    good, found, records = sift(files, schema="n INT, t STRING", options=options)
    assert sorted(rows_of(good), key=repr) == [(5, "q", 1), (6, "r;s", 2), (None, None, 2)]
    assert found == [bad("day=1/c.csv", 1, "q;oops;1", "n")]
    assert records == 4
    assert good.where("day = 2").count() == 2


def test_lines_of_json(sift: Sift) -> None:
    lines = [
        {"a": 1, "b": {"c": 1}, "s": "x"},
        {"a": "1x", "b": {"c": 2}},
        {"b": {"c": "no"}, "a": 3},
        {"a": None},
    ]
    text = "\n".join(map(json.dumps, lines)) + '\n\n{"a": 5\nnull\n'
    good, found, records = sift({"f.json": text}, schema="a INT, b STRUCT<c: INT>, s STRING")
    assert [row["a"] for row in good.select("a").orderBy("a").collect()][:2] == [None, 1]
    assert good.count() == good.select("s").count() == records - len(found)
    assert [(row["reason"], row["columns"], row["raw"]) for row in found] == [
        ("BAD_VALUE", "a", json.dumps(lines[1])),
        ("BAD_VALUE", None, json.dumps(lines[2])),
        ("MALFORMED", None, '{"a": 5'),
        ("MALFORMED", None, "null"),
    ]
    assert [row["record"] for row in found] == [2, 3, 5, 6]


def test_json_without_a_schema_has_bad_lines_only(sift: Sift) -> None:
    good, found, records = sift({"f.json": '{"a": 1}\noops\n{"a": "x"}\n'})
    assert (good.columns, sorted(rows_of(good))) == (["a"], [("1",), ("x",)])
    assert (found, records) == ([bad("f.json", 2, "oops")], 3)


def test_values_of_parquet_that_do_not_fit(sift: Sift, tmp_path: Path, spark: SparkSession) -> None:
    table = pa.table({"k": ["1", "2x", None, "4"], "v": [1, 2, 3, 2**40], "w": [0, 0, 0, 0]})
    pq.write_table(table, tmp_path / "f.parquet")
    good, found, records = sift({}, schema="v INT, k INT")
    assert sorted(rows_of(good), key=repr) == [(1, 1), (3, None)]
    assert good.select("v").count() == 2
    assert found == [
        bad("f.parquet", 2, '{"v":2,"k":"2x"}', "k"),
        bad("f.parquet", 4, '{"v":1099511627776,"k":"4"}', "v"),
    ]
    assert records == 4
    everything, nothing, _ = sift({})
    assert (everything.count(), nothing) == (4, [])


def test_a_table_knows_no_files(spark: SparkSession, sift: Sift) -> None:
    spark.createDataFrame(pa.table({"k": ["1", "x"]})).createOrReplaceTempView("sifted_table")
    listing = list_input(InputRequest("sales", ("table:sifted_table",), schema="k INT", bad_rows="reject"))
    read = sifted(spark, listing)
    assert rows_of(read.readable) == [(1,)]
    rows, (counters,) = read.bad()
    assert rows_of(rows) == [("sales", "BAD_VALUE", "k", None, None, '{"k":"x"}')]
    assert counters.settle().values == {"records": 2}


def test_what_cannot_be_sifted_is_refused(spark: SparkSession) -> None:
    request = InputRequest("sales", ("s3a://b/f.csv",), format="csv", bad_rows="reject")
    with pytest.raises(UsageError, match="files that only the server can look at"):
        sifted(spark, Listing(request, "csv", is_listed=False))


@pytest.mark.parametrize("file_format", ["json", "csv"])
def test_what_was_written_is_counted_by_reason(spark: SparkSession, tmp_path: Path, file_format: Any) -> None:
    rows = [("i", "BAD_VALUE", "a, b", "/f", number, 'x\n"y"') for number in range(1, 8)]
    rows += [("i", "MALFORMED", None, "/g", None, "z"), ("j", "MALFORMED", None, None, None, "z")]
    folder = str(tmp_path / ".a [b]" / "out")
    assert write_rows(frame(spark, rows, BAD_ROWS), folder, file_format=file_format) == 9
    files = [str(path) for path in Path(folder).glob("part-*")]
    assert bad_row_summary(spark, files, file_format=file_format) == [
        {
            "input": "i",
            "reason": "BAD_VALUE",
            "rows": 7,
            "examples": [f"/f record {number} (a, b)" for number in range(1, 6)],
        },
        {"input": "i", "reason": "MALFORMED", "rows": 1, "examples": ["/g"]},
        {"input": "j", "reason": "MALFORMED", "rows": 1, "examples": ["a table"]},
    ]


def test_our_own_column_name_is_refused(sift: Sift) -> None:
    with pytest.raises(ParameterError, match="__saltpan_record"):
        sift({"f.csv": "a,__SALTPAN_record\n1,2\n"})
