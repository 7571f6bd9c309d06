# ruff: noqa: RUF001  text in many scripts
"""Encodings: names, which can be cut at line ends, and the bytes of any of them as UTF-8."""

from __future__ import annotations

import codecs
from encodings.aliases import aliases

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.core.errors import UnknownNameError
from common.engine.text_encodings import (
    Decoded,
    UndecodableError,
    decoded_blocks,
    encoding_of,
    is_splittable,
    is_utf8,
    is_wide,
)

SAMPLES = {
    "cp1251": "Привет, мир\r\nещё раз\n",
    "koi8-r": "Привет\rмир",
    "latin-1": "voilà\nça",
    "cp1252": "“don’t”\n",
    "gb18030": "你好，世界\n㐀\U00020000\r\n再见",
    "gbk": "你好\n世界",
    "big5": "功能\n蓋",
    "shift_jis": "表示ソ\nabc",
    "euc_jp": "日本語\nテキスト",
    "euc_kr": "안녕\n세계",
    "utf-16": "a漢\U0001f600\nb\u0a0d\u0d0a\r\nc",
    "utf-16-le": "\ufeffx\ny",
    "utf-16-be": "x\u0a00\ny",
    "utf-32": "a\U0001f600\nb",
    "iso2022_jp": "日本語\nabc\n語",
    "hz": "你好\nabc\n你",
    "cp037": "hello\nworld",
    "utf-8": "漢é\n",
}


def blocks(content: bytes, size: int, *, at_lines: bool) -> list[tuple[int, bytes]]:
    """Pieces of at least `size` bytes that end behind a line end, as ranges give them; else of any place."""
    cuts = [0]
    for place in range(1, len(content)):
        if place - cuts[-1] >= size and (not at_lines or content[place - 1 : place] in (b"\n", b"\r")):
            cuts.append(place)
    return [(start, content[start:end]) for start, end in zip(cuts, [*cuts[1:], len(content)], strict=True)]


def text_of(found: list[tuple[int, Decoded]]) -> str:
    return b"".join(decoded.utf8 for _, decoded in found).decode()


@pytest.mark.parametrize("encoding", SAMPLES)
@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_text_comes_back_whatever_the_blocks(encoding: str, size: int) -> None:
    text = SAMPLES[encoding]
    content = text.encode(encoding)
    for at_lines in [True] if is_splittable(encoding) else [True, False]:
        found = list(decoded_blocks(blocks(content, size, at_lines=at_lines), encoding, replace=False))
        assert text_of(found) == text.removeprefix("\ufeff")
        assert sum(decoded.replaced for _, decoded in found) == 0
        if not is_splittable(encoding):  # every block but the last is whole lines
            assert all(decoded.utf8[-1:] in (b"\n", b"\r") for _, decoded in found[:-1])


@pytest.mark.parametrize(
    ("encoding", "splittable"),
    [("utf8", True), ("ascii", True), ("iso-8859-15", True), ("mac-roman", True), ("gb18030", True),
     ("shift_jis", True), ("utf-16", False), ("utf-32-be", False), ("iso2022_kr", False), ("hz", False),
     ("cp500", False)],
)  # fmt: skip
def test_which_can_be_cut_at_line_ends(encoding: str, splittable: bool) -> None:
    assert is_splittable(encoding) == splittable
    assert is_wide(encoding) == encoding.startswith(("utf-16", "utf-32"))


def test_no_splittable_encoding_has_a_line_end_inside_a_character() -> None:
    names = sorted({encoding_of(name) for name in aliases.values() if _is_known(name)})
    tried = [name for name in names if is_splittable(name) and name != "utf-8"]
    assert len(tried) > 60
    for name in tried:
        encoder = codecs.getencoder(name)
        for point in [*range(0x80, 0xD800, 31), *range(0xE000, 0x11000, 31), *range(0x20000, 0x20100)]:
            try:
                found, _ = encoder(chr(point))
            except UnicodeEncodeError:
                continue
            assert not {0x0A, 0x0D} & set(found), (name, hex(point))


def _is_known(name: str) -> bool:
    try:
        encoding_of(name)
    except UnknownNameError:
        return False
    return True


@pytest.mark.parametrize("name", ["utf-88", "", "rot13", "hex", "a\0b", "utf-7", "idna"])
def test_a_name_that_is_no_encoding_of_text(name: str) -> None:
    with pytest.raises(UnknownNameError, match="expected an encoding that Python knows"):
        encoding_of(name)


def test_the_nearest_name_is_said() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean .*`gb18030`"):
        encoding_of("gb18031")


@pytest.mark.parametrize("name", ["utf-8", "UTF8", "utf_8", "utf-8-sig", "U8"])
def test_spellings_of_utf8(name: str) -> None:
    assert is_utf8(name)


@pytest.mark.parametrize(
    "encoding", ["ascii", "cp1252", "gb18030", "shift_jis", "euc_jp", "utf-16", "iso2022_jp"]
)
@settings(deadline=None)
@given(content=st.binary(max_size=40).map(lambda raw: raw.replace(b"\x1b", b"")), size=st.integers(1, 9))
def test_replacements_are_those_of_python_and_are_counted(encoding: str, content: bytes, size: int) -> None:
    found = list(decoded_blocks(blocks(content, size, at_lines=True), encoding, replace=True))
    expected = content.decode(encoding, "replace")
    assert text_of(found) == expected.removeprefix("\ufeff")
    made = sum(decoded.replaced for _, decoded in found)
    assert made == expected.count("\ufffd") - content.decode(encoding, "ignore").count("\ufffd")


@pytest.mark.parametrize(
    ("encoding", "content", "offset"),
    [
        ("ascii", b"ab\ncd\n\xe9x", 6),
        ("cp1252", b"\n\n\x81", 2),
        ("gb18030", "你\n好\n".encode("gb18030") + b"\xff", 6),
        ("utf-16-le", "ab\n".encode("utf-16-le") + b"\x00\xdca\x00", 6),
        ("utf-16-be", b"\x00a\x00\n\xdc\x00\x00a", 4),
        ("utf-16-le", b"a\x00b", 2),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 50])
def test_the_place_of_what_is_no_text(encoding: str, content: bytes, offset: int, size: int) -> None:
    with pytest.raises(UndecodableError) as caught:
        list(decoded_blocks(blocks(content, size, at_lines=is_splittable(encoding)), encoding, replace=False))
    assert caught.value.offset_bytes == offset


def test_a_mark_inside_a_file_stays() -> None:
    content = "\ufeffa\n\ufeffb".encode("utf-16-le")
    found = list(decoded_blocks([(0, content[:6]), (6, content[6:])], "utf-16-le", replace=False))
    assert text_of(found) == "a\n\ufeffb"
