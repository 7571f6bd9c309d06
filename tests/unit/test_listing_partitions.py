from __future__ import annotations

from pathlib import Path

import pytest

from common.core.errors import FormatError, SchemaConflictError, UsageError, ValueMalformedError
from common.engine.listing import list_input
from common.engine.partitions import json_type
from common.settings.inputs import InputRequest


def partitioned(folder: Path, *names: str) -> InputRequest:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "f.csv").write_text("n\n1\n")
    return InputRequest("input", (str(folder),))


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        (["k=2013-01-01", "k=2013-12-31"], "DATE"),
        (["k=2013-01-01", "k=2013-02-30"], "STRING"),
        (["k=1", "k=-20", "k=__HIVE_DEFAULT_PARTITION__"], "BIGINT"),
        (["k=1", "k=007"], "STRING"),
        (["k=1", "k=+2"], "STRING"),
        (["k=9223372036854775807"], "BIGINT"),
        (["k=9223372036854775808"], "STRING"),
        (["k=1.5"], "STRING"),
        (["k=__HIVE_DEFAULT_PARTITION__"], "STRING"),
    ],
)
def test_types_without_a_declaration(tmp_path: Path, folders: list[str], expected: str) -> None:
    assert list_input(partitioned(tmp_path, *folders)).partition_columns == (("k", expected),)


def test_values_are_decoded_as_spark_writes_them(tmp_path: Path) -> None:
    names = ["k=a%2Fb", "k=50%25", "k=1%", "k=x=y", "k=10:00", "k=__HIVE_DEFAULT_PARTITION__", "k=ü"]
    found = list_input(partitioned(tmp_path, *names))
    values = {file.partition[0][1] for file in found.files}
    assert values == {"a/b", "50%", "1%", "x=y", "10:00", None, "ü"}


def test_nested_partitions_and_hidden_ones(tmp_path: Path) -> None:
    found = list_input(partitioned(tmp_path, "_y=2013/m=1", "_y=2013/m=2", ".y=2014/m=1", "_tmp/m=3"))
    assert found.partition_columns == (("_y", "BIGINT"), ("m", "BIGINT"))
    assert [file.partition for file in found.files] == [
        (("_y", "2013"), ("m", "1")),
        (("_y", "2013"), ("m", "2")),
    ]
    assert {file.base for file in found.files} == {str(tmp_path)}


def test_a_declared_type_wins(tmp_path: Path) -> None:
    request = partitioned(tmp_path, "Day=2013-01-01", "Day=2013-01-02")
    declared = InputRequest("input", request.paths, schema="n INT, day STRING")
    found = list_input(declared)
    assert found.partition_columns == (("Day", "STRING"),)
    assert found.declared_columns == (("n", "INT"),)


@pytest.mark.parametrize(("kind", "value"), [("INT", "x"), ("TINYINT", "300"), ("DATE", "june")])
def test_a_value_that_does_not_fit_the_declared_type(tmp_path: Path, kind: str, value: str) -> None:
    request = partitioned(tmp_path, "k=2013-01-01" if kind == "DATE" else "k=1", f"k={value}")
    with pytest.raises(ValueMalformedError, match=f"`{value}` in"):
        list_input(InputRequest("input", request.paths, schema=f"n STRING, k {kind}"))


@pytest.mark.parametrize(
    "folders", [["a=1", "b=1"], ["a=1", "a=1/b=2"], ["a=1/b=1", "b=1/a=1"], ["a=1", "A=2"], ["a=1", "."]]
)
def test_folders_that_do_not_agree(tmp_path: Path, folders: list[str]) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "f.csv").write_text("n\n1\n")
    with pytest.raises(SchemaConflictError, match="partition folders"):
        list_input(InputRequest("input", (str(tmp_path),)))


@pytest.mark.parametrize("name", ["=1", "k="])
def test_half_a_partition_is_no_partition(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match="NAME=VALUE"):
        list_input(partitioned(tmp_path, name))


def test_the_column_counts_below_the_fixed_part_of_a_glob_only(tmp_path: Path) -> None:
    partitioned(tmp_path, "day=1", "day=2")
    by_glob = list_input(InputRequest("input", (f"{tmp_path}/day=*",)))
    by_name = list_input(InputRequest("input", (f"{tmp_path}/day=1",)))
    by_base = list_input(InputRequest("input", (f"{tmp_path}/day=1",), options={"basePath": str(tmp_path)}))
    assert by_glob.partition_columns == by_base.partition_columns == (("day", "BIGINT"),)
    assert by_name.partition_columns == ()
    assert (len(by_glob.files), len(by_name.files), len(by_base.files)) == (2, 1, 1)


def test_a_type_that_no_folder_name_can_hold() -> None:
    with pytest.raises(UsageError, match="k"):
        json_type("k", kind="ARRAY<INT>")
