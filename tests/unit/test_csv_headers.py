from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from common.core.errors import (
    ColumnMissingError,
    FileCorruptError,
    FormatError,
    ParameterError,
    PathEmptyError,
    SchemaConflictError,
    SuiteError,
)
from common.engine.csv_layout import CsvLayout, csv_layout
from common.engine.csv_records import first_record
from common.engine.listing import list_input
from common.engine.reader_options import CsvDialect
from common.engine.storage import LocalStorage
from common.settings.inputs import InputRequest


def layout(folder: Path, contents: dict[str, bytes | str], **fields: object) -> CsvLayout:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    request = InputRequest("input", (str(folder),), format="csv", **fields)  # type: ignore[arg-type]
    return csv_layout(list_input(request), storage=LocalStorage())


def columns(folder: Path, content: bytes | str, name: str = "f.csv", **options: str) -> list[str]:
    return [column for column, _ in layout(folder, {name: content}, options=options).columns]


@pytest.mark.parametrize(
    ("text", "dialect", "expected"),
    [
        ("a,b\n1,2\n", CsvDialect(), ["a", "b"]),
        ("a,b\r\n1,2\r\n", CsvDialect(), ["a", "b"]),
        ("a,b\r1,2", CsvDialect(), ["a", "b"]),
        ("\n\na,b\n", CsvDialect(), ["a", "b"]),
        ('"a ""x"", y","b\nc"\n', CsvDialect(), ['a "x", y', "b\nc"]),
        ('"a \\"x\\""\n', CsvDialect(escape="\\"), ['a "x"']),
        ("'a,b';c\n", CsvDialect(sep=";", quote="'", escape="'"), ["a,b", "c"]),
        ("a||b|c||d\n", CsvDialect(sep="||"), ["a", "b|c", "d"]),
        ('"a,b\n', CsvDialect(quote=""), ['"a', "b"]),
        ("# made today\na,b\n", CsvDialect(comment="#"), ["a", "b"]),
        (" a , b \n", CsvDialect(), [" a ", " b "]),
        (" a , b \n", CsvDialect(strip_left=True, strip_right=True), ["a", "b"]),
        ("a,b\nc;1\n", CsvDialect(line_sep=";"), ["a", "b\nc"]),
        ("a,,c\n", CsvDialect(), ["a", "", "c"]),
    ],
)
def test_the_first_record(text: str, dialect: CsvDialect, expected: list[str]) -> None:
    assert first_record(text, dialect=dialect, whole=True) == expected


@pytest.mark.parametrize(
    ("text", "whole", "expected"),
    [("", True, []), ("\n\n", True, []), ("", False, None), ("a,b", False, None), ("a,b", True, ["a", "b"]),
     ('"a,b\n', True, None), ("a\n1", False, ["a"])],
)  # fmt: skip
def test_where_the_text_ends(text: str, *, whole: bool, expected: list[str] | None) -> None:
    assert first_record(text, dialect=CsvDialect(), whole=whole) == expected


RAW = b"name,age\nBob,31\n"
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda raw: bytes(pa.compress(raw, codec="zstd", asbytes=True)),
}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("f.csv", RAW),
        # Without a time of its own: the bytes name the test, the same in every process.
        ("f.csv.gz", gzip.compress(RAW, mtime=0)),
        ("f.csv.gz", gzip.compress(b"name,", mtime=0) + gzip.compress(b"age\nBob,31\n", mtime=0)),
        ("f.csv.bz2", bz2.compress(RAW)),
        ("f.csv.deflate", zlib.compress(RAW)),
        ("f.csv.zst", pa.compress(RAW, codec="zstd", asbytes=True)),
        ("f.csv", b"\xef\xbb\xbf" + RAW),
    ],
)
def test_packed_files_and_a_byte_order_mark(tmp_path: Path, name: str, content: bytes) -> None:
    assert columns(tmp_path, content, name=name) == ["name", "age"]


@pytest.mark.parametrize("name", ["f.csv.gz", "f.csv.bz2", "f.csv.zst"])
def test_the_header_of_a_packed_file_that_is_longer_than_one_look(tmp_path: Path, name: str) -> None:
    import random

    noise = random.Random(1)
    rows = b"".join(b"%d,%d\n" % (noise.getrandbits(62), noise.getrandbits(62)) for _ in range(60_000))
    content = PACKED[name.rpartition(".")[2]](RAW + rows)
    assert len(content) > 200_000
    assert columns(tmp_path, content, name=name) == ["name", "age"]


def test_a_header_longer_than_the_first_look(tmp_path: Path) -> None:
    names = [f"column_{number}" for number in range(20_000)]
    assert columns(tmp_path, ",".join(names) + "\n1\n") == names


@pytest.mark.parametrize(
    ("content", "encoding"),
    [("größe,b\n".encode("latin-1"), "ISO-8859-1"), ("größe,b\n".encode("utf-16"), "UTF-16"),
     ("größe,b\n".encode("utf-16-be"), "UTF-16"), ("größe,b\n".encode("cp1252"), "windows-1252")],
)  # fmt: skip
def test_named_encodings(tmp_path: Path, content: bytes, encoding: str) -> None:
    assert columns(tmp_path, content, encoding=encoding) == ["größe", "b"]


@pytest.mark.parametrize(
    ("content", "name", "options", "expected"),
    [
        ("größe,b\n".encode("latin-1"), "f.csv", {}, (FileCorruptError, "encoding=")),
        ("a,b\n".encode("utf-16"), "f.csv", {}, (FileCorruptError, "UTF-16")),
        (b"a,b\n", "f.csv", {"encoding": "latin-one"}, (ParameterError, "latin-one")),
        (b"not packed", "f.csv.gz", {}, (FileCorruptError, "damaged .gz")),
        (b"not packed", "f.csv.zst", {}, (FileCorruptError, "damaged .zst")),
        (b"x", "f.csv.lz4", {}, (FormatError, "pack it as .gz")),
        (b'"a,b\n1,2\n', "f.csv", {}, (FileCorruptError, "quote")),
        (b"a,b,A\n", "f.csv", {}, (SchemaConflictError, "`A` twice")),
    ],
)
def test_headers_that_cannot_be_read(
    tmp_path: Path, content: bytes, name: str, options: dict[str, str], expected: tuple[type[SuiteError], str]
) -> None:
    kind, said = expected
    with pytest.raises(kind, match=said):
        columns(tmp_path, content, name=name, **options)


def test_names_that_are_missing_get_their_position(tmp_path: Path) -> None:
    assert columns(tmp_path, "a,,c\n") == ["a", "_c1", "c"]


def test_without_a_header_columns_are_numbered(tmp_path: Path) -> None:
    assert columns(tmp_path, "1,2,3\n", header="false") == ["_c0", "_c1", "_c2"]


def test_other_order_makes_groups_by_name(tmp_path: Path) -> None:
    found = layout(
        tmp_path, {"f1.csv": "NAME,AGE\nBob,31\n", "f2.csv": "age,name\n54,Sam\n", "f3.csv": "NAME,AGE\n"}
    )
    assert found.columns == (("NAME", "STRING"), ("AGE", "STRING"))
    grouped = [
        ([name for name, _ in group.columns], [Path(file.path).name for file in group.files])
        for group in found.groups
    ]
    assert grouped == [(["NAME", "AGE"], ["f1.csv", "f3.csv"]), (["AGE", "NAME"], ["f2.csv"])]


def test_other_columns_are_an_error_that_names_the_file_and_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(SchemaConflictError, match=r"f2\.csv.*no price.*did you mean `prices`"):
        layout(tmp_path, {"f1.csv": "name,price\n", "f2.csv": "name,prices\n"})


def test_a_declared_column_that_a_file_lacks(tmp_path: Path) -> None:
    with pytest.raises(ColumnMissingError, match=r"`zip`.*f2\.csv.*did you mean `zipp`"):
        layout(tmp_path, {"f1.csv": "zip,n\n", "f2.csv": "zipp,n\n"}, schema="zip STRING")


def test_declared_columns_take_their_types_and_others_are_dropped(tmp_path: Path) -> None:
    found = layout(tmp_path, {"f.csv": "x,N,zip\n"}, schema="zip STRING, n INT")
    assert found.columns == (("zip", "STRING"), ("n", "INT"))
    assert found.groups[0].columns == (("__dropped_0", "STRING"), ("n", "INT"), ("zip", "STRING"))


def test_the_reject_column_is_not_expected_in_files(tmp_path: Path) -> None:
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "raw"}
    found = layout(tmp_path, {"f.csv": "a\n1\n"}, schema="a INT, raw STRING", options=options)
    assert found.groups[0].columns == (("a", "INT"), ("raw", "STRING"))
    with pytest.raises(ColumnMissingError, match="raw"):
        layout(tmp_path, {}, schema="a INT, raw STRING")


def test_empty_files_bring_no_columns(tmp_path: Path) -> None:
    found = layout(tmp_path, {"a.csv": "", "b.csv": "n\n1\n", "c.csv": "\n"})
    assert found.columns == (("n", "STRING"),)
    assert len(found.groups) == 1
    assert {Path(file.path).name for file in found.groups[0].files} == {"a.csv", "b.csv", "c.csv"}


def test_nothing_but_empty_files_needs_a_declaration(tmp_path: Path) -> None:
    with pytest.raises(PathEmptyError, match="--input-schema"):
        layout(tmp_path, {"a.csv": ""})
    assert layout(tmp_path, {}, schema="zip STRING").columns == (("zip", "STRING"),)


def test_a_column_of_files_and_of_folders(tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {"day=1/f.csv": "day,n\n9,1\n"}
    with pytest.raises(SchemaConflictError, match=r"`day`.*folders"):
        layout(tmp_path, files)
    found = layout(tmp_path, files, schema="n INT, day INT")
    assert found.columns == (("n", "INT"),)
    assert found.groups[0].columns == (("__dropped_0", "STRING"), ("n", "INT"))


def test_ragged_files_without_a_header(tmp_path: Path) -> None:
    with pytest.raises(SchemaConflictError, match=r"b\.csv.*2 columns.*3 in its first record"):
        layout(tmp_path, {"a.csv": "1,2\n", "b.csv": "1,2,3\n"}, options={"header": "false"})
