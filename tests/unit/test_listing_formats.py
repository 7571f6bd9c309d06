from __future__ import annotations

from pathlib import Path

import pytest

from common.core.errors import FileCorruptError, FormatError
from common.engine.listing import Listing, list_input
from common.settings.inputs import InputRequest


def listed(folder: Path, contents: dict[str, bytes], **fields: object) -> Listing:
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return list_input(InputRequest("left", (str(folder),), **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.parquet", "parquet"), ("a.snappy.PARQUET", "parquet"), ("a.pq", "parquet"), ("a.orc", "orc"),
        ("a.csv", "csv"), ("a.tsv", "csv"), ("a.CSV.gz", "csv"), ("a.csv.zst", "csv"), ("a.json", "json"),
        ("a.jsonl.bz2", "json"), ("a.ndjson", "json"), ("a.txt", "text"), ("a.text.deflate", "text"),
        ("a.log", "text"),
    ],
)  # fmt: skip
def test_endings(tmp_path: Path, name: str, expected: str) -> None:
    assert listed(tmp_path, {name: b"xxxx"}).format == expected


@pytest.mark.parametrize(("content", "expected"), [(b"PAR1...", "parquet"), (b"ORC...", "orc")])
def test_first_bytes_when_endings_say_nothing(tmp_path: Path, content: bytes, expected: str) -> None:
    assert listed(tmp_path, {"part-00000": content, "part-00001": content}).format == expected


@pytest.mark.parametrize(
    "contents",
    [
        {"part-00000": b"a,b\n"},
        {"a.dat": b"a,b\n"},
        {"a.csv": b"a\n", "b.json": b"{}"},
        {"a.csv": b"a\n", "README.md": b"about"},
        {"a.csv.zip": b"PK"},
        {"a.csv.xz": b"a"},
        {"a.parquet.gz": b"a"},
        {"a.csv": b"a,b\n", "b.tsv": b"a\tb\n"},
        {"part-0": b""},
    ],
    ids="+".join,
)
def test_unclear_mixed_or_packed(tmp_path: Path, contents: dict[str, bytes]) -> None:
    with pytest.raises(FormatError) as caught:
        listed(tmp_path, contents)
    assert any(name in str(caught.value) for name in contents)


def test_the_hint_names_this_inputs_flag(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="--left-format"):
        listed(tmp_path, {"part-00000": b"a,b\n"})


def test_a_named_format_wins(tmp_path: Path) -> None:
    assert listed(tmp_path, {"part-0": b"a,b\n", "b.txt": b"a,b\n"}, format="csv").format == "csv"


@pytest.mark.parametrize("name", ["a.parquet", "a.orc"])
def test_no_bytes_at_all_are_no_parquet_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileCorruptError, match="0 bytes"):
        listed(tmp_path, {name: b""})


def test_no_bytes_are_fine_for_text(tmp_path: Path) -> None:
    found = listed(tmp_path, {"a.csv": b"n\n", "b.csv": b"", "part-0": b""})
    assert (found.format, len(found.files)) == ("csv", 3)


def test_tsv_files_are_separated_by_tabs(tmp_path: Path) -> None:
    found = listed(tmp_path, {"a.tsv": b"a\tb\n"})
    assert found.options["sep"] == "\t"
    (tmp_path / "b.csv").write_bytes(b"a;b\n")
    named = list_input(InputRequest("left", (str(tmp_path),), options={"Delimiter": ";"}))
    assert "sep" not in named.options
    assert named.options["Delimiter"] == ";"
