from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from common.core.errors import (
    ColumnMissingError,
    ColumnTypeError,
    FileCorruptError,
    SchemaConflictError,
)
from common.engine import footers
from common.engine.footers import Footers, evenly_spaced, read_footers
from common.engine.listing import list_input
from common.settings.inputs import InputRequest


def write(folder: Path, **tables: dict[str, Any]) -> None:
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def read(folder: Path, **fields: object) -> Footers:
    found = read_footers(list_input(InputRequest("input", (str(folder),), **fields)))  # type: ignore[arg-type]
    assert found is not None
    return found


def test_rows_are_exact_and_the_order_of_columns_does_not_matter(tmp_path: Path) -> None:
    write(
        tmp_path,
        a={"n": [1, 2, 3], "s": ["x", "y", None]},
        b={"s": ["z"], "n": [4]},
        c={"n": pa.array([], "int64"), "s": pa.array([], "string")},
    )
    found = read(tmp_path)
    assert found.row_count == 4
    assert [footer.row_count for footer in found.read] == [3, 1, 0]
    assert found.read[0].columns == (("n", "bigint"), ("s", "string"))


def test_orc_too(tmp_path: Path) -> None:
    orc.write_table(pa.table({"n": [1, 2]}), tmp_path / "a.orc")
    orc.write_table(pa.table({"n": [3]}), tmp_path / "b.orc")
    assert read(tmp_path).row_count == 3
    orc.write_table(pa.table({"m": [3]}), tmp_path / "b.orc")
    with pytest.raises(SchemaConflictError, match=r"a\.orc.*b\.orc"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1], pa.int8()), "tinyint"),
        (pa.array([1], pa.int32()), "int"),
        (pa.array([1], pa.uint32()), "bigint"),
        (pa.array([1.5]), "double"),
        (pa.array([1.5], pa.float32()), "float"),
        (pa.array([True]), "boolean"),
        (pa.array([b"x"]), "binary"),
        (pa.array(["x"]).dictionary_encode(), "string"),
        (pa.array([date(2013, 1, 1)]), "date"),
        (pa.array([datetime(2013, 1, 1)], pa.timestamp("us", "UTC")), "timestamp"),
        (pa.array([datetime(2013, 1, 1)], pa.timestamp("ms")), "timestamp_ntz"),
        (pa.array([1], pa.decimal128(10, 2)), "decimal(10,2)"),
        (pa.array([[1]]), "struct<list.element: bigint>"),
    ],
)
def test_types_as_spark_reads_them(tmp_path: Path, column: pa.Array[Any], expected: str) -> None:
    write(tmp_path, a={"a.b": column})
    assert read(tmp_path).read[0].columns == (("a.b", expected),)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"n": ["1"], "s": ["x"]}, r"a\.parquet` with n bigint and .*b\.parquet` with n string"),
        ({"n": [1]}, r"with s string and .*b\.parquet` with no s"),
        ({"n": [1], "s": ["x"], "t": [1]}, r"with no t and .*b\.parquet` with t bigint"),
        ({"n": pa.array([1], pa.int32()), "s": ["x"]}, "n int"),
    ],
)
def test_files_that_differ_are_named_with_the_columns(
    tmp_path: Path, other: dict[str, Any], said: str
) -> None:
    write(tmp_path, a={"n": [1], "s": ["x"]}, b=other)
    with pytest.raises(SchemaConflictError, match=said):
        read(tmp_path)


def test_a_declared_schema_settles_types_and_drops_what_it_does_not_name(tmp_path: Path) -> None:
    write(tmp_path, a={"n": [1], "s": ["x"]}, b={"n": ["2"], "t": [1]})
    assert read(tmp_path, schema="n STRING").row_count == 2
    with pytest.raises(ColumnMissingError, match=r"`s`.*b\.parquet"):
        read(tmp_path, schema="n STRING, s STRING")


def test_merging_allows_other_columns_but_no_other_types(tmp_path: Path) -> None:
    write(tmp_path, a={"n": [1], "s": ["x"]}, b={"n": [1], "t": [1]})
    assert read(tmp_path, options={"mergeSchema": "true"}).row_count == 2
    write(tmp_path, c={"n": ["1"]})
    with pytest.raises(SchemaConflictError, match="n string"):
        read(tmp_path, options={"mergeSchema": "true"})


def test_case_aside_a_column_twice_is_an_error_and_other_case_is_the_same(tmp_path: Path) -> None:
    write(tmp_path, a={"n": [1]}, b={"N": [2]})
    assert read(tmp_path).row_count == 2
    write(tmp_path, c={"n": [1], "N": [2]})
    with pytest.raises(SchemaConflictError, match="`N` twice"):
        read(tmp_path)


@pytest.mark.parametrize("kind", ["cut", "text"])
def test_a_corrupt_file_is_named(tmp_path: Path, kind: str) -> None:
    write(tmp_path, a={"n": [1]}, b={"n": [1]})
    content = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(content[:-9] if kind == "cut" else b"n\n1\n")
    with pytest.raises(FileCorruptError, match=r"b\.parquet"):
        read(tmp_path)


def test_timestamps_in_nanoseconds_are_found_before_spark_fails_on_them(tmp_path: Path) -> None:
    write(tmp_path, a={"n": [1], "t": pa.array([datetime(2013, 1, 1)], pa.timestamp("ns"))})
    with pytest.raises(ColumnTypeError, match=r"`t`.*nanoseconds.*a\.parquet"):
        read(tmp_path)
    assert read(tmp_path, schema="n BIGINT").row_count == 1


def test_of_very_many_files_some_are_read_and_the_rows_stay_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footers, "FILE_LIMIT", 3)
    write(tmp_path, **{f"f{number}": {"n": [number]} for number in range(9)})
    found = read(tmp_path)
    assert [Path(footer.file.path).stem for footer in found.read] == ["f0", "f4", "f8"]
    assert found.row_count is None


@pytest.mark.parametrize(
    ("count", "limit", "expected"),
    [(0, 4, []), (1, 4, [0]), (9, 3, [0, 4, 8]), (5, 1, [2]), (100, 2, [0, 99])],
)
def test_evenly_spaced(count: int, limit: int, expected: list[int]) -> None:
    assert evenly_spaced(count, limit=limit) == expected


def test_other_formats_have_no_footers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    assert read_footers(list_input(InputRequest("input", (str(tmp_path),)))) is None
