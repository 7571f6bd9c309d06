from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from common.engine.listing import list_input
from common.engine.tables import read_input
from common.settings.inputs import InputRequest

Read = Callable[..., DataFrame]


@pytest.fixture
def read(spark: SparkSession, tmp_path: Path) -> Read:
    def read_files(contents: dict[str, str | bytes], **fields: Any) -> DataFrame:
        for name, content in contents.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return read_input(spark, list_input(InputRequest("input", (str(tmp_path),), **fields)))

    return read_files


def rows(df: DataFrame) -> set[tuple[Any, ...]]:
    found = [tuple(row) for row in df.collect()]
    assert len(found) == len(set(found))
    return set(found)


def test_i1_same_columns_in_another_order(read: Read) -> None:
    df = read({"f1.csv": "NAME,AGE\nBob,31\n", "f2.csv": "AGE,NAME\n54,Sam\n", "f3.csv": ""})
    assert df.columns == ["NAME", "AGE"]
    assert rows(df) == {("Bob", "31"), ("Sam", "54")}


def test_i2_doubled_quotes_and_a_line_break_in_a_field(read: Read) -> None:
    df = read({"f.csv": 'n,t\n1,"a ""b"", c"\n2,"x\ny"\n'})
    assert rows(df) == {("1", 'a "b", c'), ("2", "x\ny")}


def test_i4_the_rows_dropped_do_not_depend_on_the_columns_selected(read: Read) -> None:
    df = read({"f.csv": "a,b,c,d\n1,2,3,4\n5,6,7,8\n9,10,11,12\nxxx\n"}, options={"mode": "DROPMALFORMED"})
    assert [df.count(), df.select("a").count(), len(df.select("d").collect()), len(df.collect())] == [3] * 4


@pytest.mark.parametrize("multi_line", ["true", "false"])
def test_i4_nor_do_those_dropped_for_a_value(read: Read, multi_line: str) -> None:
    options = {"mode": "DROPMALFORMED", "multiLine": multi_line}
    df = read({"f.csv": "a,b\n1,2\n3,12x\n5,6\n"}, schema="a INT, b INT", options=options)
    assert [df.count(), len(df.select("a").collect()), df.selectExpr("sum(a)").collect()[0][0]] == [2, 2, 6]


def test_i6_leading_zeros_stay(read: Read) -> None:
    df = read({"f.csv": "zip,n\n00123,1\n02134,2\n"})
    assert df.dtypes == [("zip", "string"), ("n", "string")]
    assert rows(df) == {("00123", "1"), ("02134", "2")}


def test_i8_an_empty_day_is_zero_rows_of_the_declared_schema(read: Read) -> None:
    df = read({"_SUCCESS": ""}, schema="zip STRING, n DECIMAL(10,2), day DATE", allow_empty=True)
    assert df.dtypes == [("zip", "string"), ("n", "decimal(10,2)"), ("day", "date")]
    assert df.collect() == []


def test_i11_a_bad_value_of_a_declared_type_stops(read: Read) -> None:
    df = read({"f.csv": "a,b\n1,x\n12x,y\n"}, schema="a INT, b STRING")
    with pytest.raises(Exception, match=r"MALFORMED_RECORD|12x"):
        df.collect()


def test_a_short_record_stops_whatever_is_selected(read: Read) -> None:
    df = read({"f.csv": "a,b\n1,x\n2\n"})
    with pytest.raises(Exception, match="MALFORMED_RECORD"):
        df.select("a").collect()


def test_declared_types_and_order_win_and_other_columns_are_dropped(read: Read) -> None:
    contents = {"f1.csv": "x,n,d\nq,1,2013-01-01\n", "f2.csv.gz": gzip.compress(b"D,N\n2013-01-02,2\n")}
    df = read(contents, schema="d DATE, n BIGINT")
    assert df.dtypes == [("d", "date"), ("n", "bigint")]
    assert {(str(day), number) for day, number in rows(df)} == {("2013-01-01", 1), ("2013-01-02", 2)}


def test_partition_columns_come_last_in_types_that_spark_would_not_guess(read: Read) -> None:
    df = read(
        {
            "zip=007/f.csv": "n\n1\n",
            "zip=__HIVE_DEFAULT_PARTITION__/f.csv": "n\n2\n",
            "zip=a%2Fb/f.csv": "n\n3\n",
        }
    )
    assert df.dtypes == [("n", "string"), ("zip", "string")]
    assert rows(df) == {("1", "007"), ("2", None), ("3", "a/b")}


def test_a_declared_column_of_folders_and_files_takes_the_folders_value(read: Read) -> None:
    df = read({"day=1/f.csv": "day,n\n9,5\n", "day=2/f.csv": "n,day\n6,9\n"}, schema="n INT, day INT")
    assert rows(df) == {(5, 1), (6, 2)}


def test_names_that_need_quotes(read: Read) -> None:
    df = read({"f1.csv": 'a.b,"c `d`",\n1,2,3\n', "f2.csv": 'a.b,,"c `d`"\n1,3,9\n'.replace(",,", ",_c2,")})
    assert df.columns == ["a.b", "c `d`", "_c2"]
    assert rows(df) == {("1", "2", "3"), ("1", "9", "3")}


def test_without_a_header(read: Read) -> None:
    assert rows(read({"f.csv": "\ufeff1,a\n2,b\n"}, options={"header": "false"})) == {("1", "a"), ("2", "b")}
    typed = read({}, options={"header": "false"}, schema="n INT, s STRING")
    assert rows(typed) == {(1, "a"), (2, "b")}


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("n\tt\n1\tx,y\n", {"sep": "\\t"}),
        ("n||t\n1||x,y\n", {"delimiter": "||"}),
        ("# made\n\nn;t\n1;x,y\n", {"sep": ";", "comment": "#"}),
        ("n;t\n1;x,y\n".encode("utf-16"), {"sep": ";", "encoding": "UTF-16"}),
        ("n,t\r\n1,'x,y'\r\n", {"quote": "'"}),
        ('n,t\r1,"x,y"\r', {}),
    ],
)
def test_dialects_are_read_alike_by_the_header_and_by_spark(
    read: Read, content: str | bytes, options: dict[str, str]
) -> None:
    df = read({"f.csv": content}, options=options)
    assert df.columns == ["n", "t"]
    assert rows(df) == {("1", "x,y")}


def test_rejects_are_kept_when_asked_for(read: Read) -> None:
    df = read(
        {"f.csv": "b,a\n2026-01-01,1\n2026-01-02,x\n"},
        schema="a INT, b DATE, _corrupt_record STRING",
        options={"mode": "PERMISSIVE"},
    )
    assert {(a, rejected) for a, _, rejected in rows(df)} == {(1, None), (None, "2026-01-02,x")}
