"""Parts of text files as UTF-8: packed ones, byte order marks, damage, and the place of bad bytes."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from common.core.errors import FileCorruptError, FormatError, PathAbsentError, ValueMalformedError
from common.engine.data_files import DataFile
from common.engine.storage import LocalStorage
from common.engine.text_checks import check_text_files
from common.engine.text_ranges import TextFile, TextRange
from common.engine.text_reader import utf8_blocks

TEXT = "".join(f"line {number} é漢\r\n" for number in range(500)).encode()


def zstd(content: bytes) -> bytes:
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd}


def content_of(
    path: Path, *, encoding: str = "utf-8", block_bytes: int = 1_000, replace: bool = False
) -> bytes:
    packing = path.suffix if path.suffix in PACKERS else ""
    part = TextRange(TextFile(str(path), path.stat().st_size, packing))
    blocks = list(utf8_blocks(part, encoding=encoding, block_bytes=block_bytes, replace=replace))
    return b"".join(decoded.utf8 for _, decoded in blocks)


@pytest.mark.parametrize("ending", PACKERS)
def test_packed_files_of_several_streams(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a{ending}"
    path.write_bytes(PACKERS[ending](TEXT) + PACKERS[ending](b"and more\n"))
    assert content_of(path) == TEXT + b"and more\n"


@pytest.mark.parametrize("ending", PACKERS)
def test_damaged_and_cut_off_files_are_named(tmp_path: Path, ending: str) -> None:
    for name, content in {"cut": PACKERS[ending](TEXT)[:-9], "none": b"no packed text at all"}.items():
        path = tmp_path / f"{name}{ending}"
        path.write_bytes(content)
        with pytest.raises(
            FileCorruptError, match=rf"{name}\{ending}`: expected readable packed text, got dam"
        ):
            content_of(path)


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [("utf-8", b"\xef\xbb\xbf"), ("utf-8-sig", b"\xef\xbb\xbf"), ("utf-16", b"\xff\xfe"),
     ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"), ("gb18030", b"\x84\x31\x95\x33")],
)  # fmt: skip
def test_a_mark_at_the_beginning_is_dropped(tmp_path: Path, encoding: str, mark: bytes) -> None:
    path = tmp_path / "a.txt"
    codec = {"utf-16": "utf-16-le", "utf-8-sig": "utf-8"}.get(encoding, encoding)
    path.write_bytes(mark + "hi ho\nhi".encode(codec))
    assert content_of(path, encoding=encoding) == b"hi ho\nhi"
    path.write_bytes(mark)
    assert content_of(path, encoding=encoding) == b""
    path.write_bytes("hi\n\ufeffho".encode(codec))
    assert content_of(path, encoding=encoding) == "hi\n\ufeffho".encode()


def test_ranges_behind_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfa b\nc")
    file = TextFile(str(path), 8)
    parts = [TextRange(file, start, start + 1) for start in range(8)]
    found = [(offset, decoded.utf8) for part in parts for offset, decoded in utf8_blocks(part, cut_at=b" \n")]
    assert found == [(3, b"a "), (5, b"b\n"), (7, b"c")]


def test_the_place_of_bad_bytes_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc\n" * 1_000 + b"\x81\n")
    with pytest.raises(ValueMalformedError) as caught:
        content_of(path, encoding="cp1252", block_bytes=100)
    assert str(caught.value) == (
        f"[VALUE_MALFORMED] file `{path}`: expected text in cp1252, got other bytes at byte 4,000. "
        "Hint: name the right one with --encoding, or put U+FFFD there with --on-decode-error replace."
    )
    assert content_of(path, encoding="cp1252", block_bytes=100, replace=True).endswith("\ufffd\n".encode())
    packed = tmp_path / "a.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(ValueMalformedError, match="byte 4,000 of its unpacked content"):
        content_of(packed, encoding="cp1252", block_bytes=100)


def test_a_file_that_went_is_named(tmp_path: Path) -> None:
    part = TextRange(TextFile(str(tmp_path / "gone"), 5))
    with pytest.raises(PathAbsentError, match=r"gone`: expected the file that was listed"):
        list(utf8_blocks(part))


def test_binary_files_are_refused_by_their_first_bytes(tmp_path: Path) -> None:
    texts = {
        "a.txt": b"plain",
        "b.gz": gzip.compress(b"plain"),
        "c.txt": b"",
        "w.txt": "wide".encode("utf-16-le"),
    }
    for name, content in {**texts, "d.gz": gzip.compress(b"x\0"), "e.bin": b"\x7fELF\0\0"}.items():
        (tmp_path / name).write_bytes(content)

    def check(*names: str, encoding: str = "utf-8") -> None:
        paths = [tmp_path / name for name in names]
        files = [DataFile(str(path), path.stat().st_size, 0.0) for path in paths]
        check_text_files(files, encoding=encoding, storage=LocalStorage())

    check("a.txt", "b.gz", "c.txt")
    check("w.txt", encoding="utf-16")
    for name, place in {"w.txt": 1, "d.gz": 1, "e.bin": 4}.items():
        with pytest.raises(
            FormatError, match=rf"{name}`: expected text in utf-8, got a NUL at byte {place}\. Hint"
        ):
            check("a.txt", name)
