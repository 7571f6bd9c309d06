"""What is wrong with a word count's flags and files is said before anything starts."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from common.core.errors import (
    FileCorruptError,
    FileUnreadableError,
    FormatError,
    OnlyMarkersError,
    ParameterError,
    PathAbsentError,
    PathEmptyError,
    SeveralErrors,
    SuiteError,
    UnknownNameError,
    UsageError,
)
from common.engine.listing import Listing, list_input
from common.runs.inputs import not_read
from common.settings.command_line import parse_command
from jobs.word_count import Settings, _rules


def settings_of(*words: str) -> Settings:
    return _parsed(*words)[0]


def listed(*words: str) -> Listing:
    return list_input(_parsed(*words)[1])


def _parsed(*words: str):  # type: ignore[no-untyped-def]
    command = parse_command(
        Settings, job="word-count", summary="Words.", inputs=("input",), argv=words, environ={}
    )
    assert command is not None
    return command.settings, command.inputs[0]


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        ("--encoding utf-88", UnknownNameError, r"encoding `utf-88`: .* did you mean .*`utf-8`"),
        ("--encoding cp1251 --column text", UsageError, "the text of a column is decoded already"),
        ("--tokenizer unicod", SuiteError, "unicod"),
        ("--tokenizer regex:(", SuiteError, r"regex|\("),
        ("--tokenizer no_such_module:cut", SuiteError, "no_such_module"),
        ("--stop-words absent.txt", UsageError, "expected none, en, zh or a readable UTF-8 file, got absent"),
        ("--user-dictionary absent.txt --tokenizer cjk", UsageError, "--user-dictionary`: .* got absent"),
        ("--user-dictionary absent.txt", UsageError, "expected --tokenizer cjk beside it, got"),
        ("--by count", ParameterError, "column `count`: expected another name than `word`"),
        ("--by Word", ParameterError, "column `Word`"),
        ("--input-format csv", UsageError, "flag `--column`: .* got none, and --input-format csv"),
        ("--input-option wholetext=true", UsageError, "wholetext`: expected --column beside it, got files"),
        ("--input-schema x=STRING", UsageError, "flag `--input-schema`: expected --column beside it"),
        ("--top 0", UsageError, "`--top`"),
        ("--ngrams 0", UsageError, "`--ngrams`"),
        ("--min-length 0", UsageError, "`--min-length`"),
        ("--strategy spark", UsageError, "`--strategy`"),
        ("--case upper", UsageError, "`--case`"),
    ],
)  # fmt: skip
def test_flags(words: str, kind: type[SuiteError], said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        settings_of("--input", "in", *words.split())
    assert caught.value.exit_code == 2


def test_a_table_needs_a_column() -> None:
    with pytest.raises(UsageError, match=r"flag `--column`: .* got none, and table:t"):
        settings_of("--input", "table:t")


def test_all_wrong_flags_are_said_at_once() -> None:
    with pytest.raises(SeveralErrors) as caught:
        settings_of("--input", "in", "--encoding", "utf-88", "--stop-words", "absent.txt", "--by", "rank")
    assert len(caught.value.problems) == 3


def test_stop_words_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "stop.txt"
    path.write_text("\ufeffThe und\n\nSTRASSE \u0130\n", encoding="utf-8")
    rules = _rules(settings_of("--input", "in", "--stop-words", str(path)))
    assert rules.stop_words == {"The", "und", "STRASSE", "\u0130"}
    path.with_name("bad.txt").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not UTF-8 text"):
        settings_of("--input", "in", "--stop-words", str(path.with_name("bad.txt")))


def test_built_in_stop_words() -> None:
    english = _rules(settings_of("--input", "in", "--stop-words", "en")).stop_words
    assert {"the", "and", "of"} <= english
    assert "word" not in english
    assert "的" in _rules(settings_of("--input", "in", "--stop-words", "zh")).stop_words


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    contents = {
        "a.txt": b"x",
        "_b.txt": b"y",
        "sub/b.csv": b"x",
        "sub/deep/c": b"x",
        "hidden/_b.txt": b"y",
        "other/binary": b"\x7fELF\0",
        "other/a.parquet": b"PAR1",
        "other/bad.gz": b"no",
        "other/bad.snappy": b"no",
        "other/e:f.txt": b"w",
        "other/wide.txt": "\u4f60\u597d".encode("utf-16"),
        "other/zipped": gzip.compress(b"x", mtime=1),
        "other/letter.docx": b"PK\x03\x04x",
        "other/page": b"%PDF-1.7 all of it ASCII",
    }
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("absent.txt", PathAbsentError, "absent.txt`: expected a file or folder, got nothing"),
        ("*.md", PathAbsentError, "expected a glob that matches something, got no match"),
        ("empty", PathEmptyError, "expected data files, got an empty folder"),
        ("hidden", OnlyMarkersError, r"expected data files, got only markers \(`_b.txt`\)"),
        ("_b.txt", FormatError, "_b.txt`: expected a name that does not begin with `_` or `.`, got a"),
        ("other/binary", FormatError, "binary`: expected text in utf-8, got a NUL at byte 4. Hint: .*utf-16"),
        ("other/a.parquet", FormatError, "expected a file of text, got a parquet file. Hint: .*--column"),
        ("other/bad.gz", FileCorruptError, "bad.gz`: expected readable compressed text, got damaged .gz"),
        ("other/wide.txt", FormatError, "text in utf-8, got the mark of UTF-16. Hint: --encoding utf-16"),
        ("other/zipped", FormatError, r"got gzip data. Hint: unpack it, or let its name end in \.gz"),
        ("other/letter.docx", FormatError, "got a zip archive, or what an office program saved. Hint: take"),
        ("other/page", FormatError, "got a PDF. Hint: take the text out of it"),
        ("other/bad.snappy", FormatError, r"expected text that is plain, \.gz, \.bz2, \.zst, got \.snappy"),
        ("other/e:f.txt", FileUnreadableError, "e:f.txt`: .* got a colon in a file's name"),
    ],
)  # fmt: skip
def test_files(folder: Path, name: str, kind: type[SuiteError], said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        listed("--input", f"{folder}/{name}")
    assert caught.value.exit_code == 3


def test_what_begins_as_no_utf8_does_may_be_other_text(folder: Path) -> None:
    for name, encoding in (("wide.txt", "utf-16"), ("wide.txt", "latin-1"), ("page", "cp1252")):
        found = listed("--input", f"{folder}/other/{name}", "--encoding", encoding)
        assert len(found.files) == 1, (name, encoding)


def test_sub_folders_are_passed_over_or_read(folder: Path) -> None:
    (folder / "other").rename(folder / "_other")
    found = listed("--input", str(folder))
    assert [file.path for file in found.files] == [f"{folder}/a.txt"]
    assert (found.format, found.roots) == ("text", (str(folder),))
    hidden = f"not read, since hidden: {folder}/_b.txt, {folder}/_other"
    nested = ", ".join(f"{folder}/{name}" for name in ("empty", "hidden", "sub"))
    assert list(not_read(found)) == [
        hidden, f"not read, since in sub-folders (--recursive reads them): {nested}"
    ]  # fmt: skip
    (folder / "sub" / "loop").symlink_to(folder)
    found = listed("--input", str(folder), "--recursive")
    names = ["a.txt", "sub/b.csv", "sub/deep/c"]
    assert [file.path for file in found.files] == [f"{folder}/{name}" for name in names]
    assert found.roots == tuple(f"{folder}/{name}" for name in names)
    assert found.passed_over == ()
    assert list(not_read(found)) == [f"{hidden}, {folder}/hidden/_b.txt, {folder}/sub/loop"]


def test_a_table_is_read_as_in_other_jobs(folder: Path) -> None:
    _, request = _parsed("--input", str(folder), "--column", "text")
    assert (request.encoding, request.format, request.sub_folders) == (None, "auto", "refuse")
    with pytest.raises(FormatError, match="the sub-folders"):
        list_input(request)
