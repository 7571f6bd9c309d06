from __future__ import annotations

import os
import signal
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from common.core.errors import (
    FileUnreadableError,
    FormatError,
    OnlyMarkersError,
    PathAbsentError,
    PathEmptyError,
    SuiteError,
    UsageError,
)
from common.engine.listing import Listing, list_input
from common.settings.inputs import InputRequest


def listed(*paths: object, **fields: object) -> Listing:
    return list_input(InputRequest("input", tuple(str(path) for path in paths), **fields))  # type: ignore[arg-type]


def names(listing: Listing, folder: Path) -> list[str]:
    return [os.path.relpath(file.path, folder) for file in listing.files]


def fill(folder: Path, *paths: str) -> Path:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("n\n1\n")
    return folder


def test_a_folder_is_its_visible_files(tmp_path: Path) -> None:
    fill(tmp_path, "b.csv", "a.csv", "_SUCCESS", ".a.csv.crc", "x.csv._COPYING_", "_temporary/0/t.csv")
    found = listed(tmp_path)
    assert names(found, tmp_path) == ["a.csv", "b.csv"]
    assert (found.format, found.size_bytes, found.roots) == ("csv", 8, (str(tmp_path),))
    hidden = {".a.csv.crc", "_SUCCESS", "_temporary", "x.csv._COPYING_"}
    assert {Path(path).name for path in found.skipped} == hidden


@pytest.mark.parametrize(
    "name",
    ["a,b.csv", "a{b,c}.csv", "a b.csv", "a%20b.csv", "a+b.csv", "a#b.csv", "ü漢.csv", "a\\b.csv", "a\nb.csv",
     "a[1].csv", "a*b.csv", "a?b.csv"],
)  # fmt: skip
def test_an_existing_name_is_that_file(tmp_path: Path, name: str) -> None:
    fill(tmp_path, name, "a1.csv", "axb.csv")
    assert names(listed(tmp_path / name), tmp_path) == [name]
    assert listed(f"file://{tmp_path}/{name}").files == listed(tmp_path / name).files


def test_a_glob_takes_what_matches_and_nothing_hidden(tmp_path: Path) -> None:
    fill(tmp_path, "a1.csv", "a2.csv", "b1.csv", "_a3.csv")
    assert names(listed(tmp_path / "*[12].csv"), tmp_path) == ["a1.csv", "a2.csv", "b1.csv"]
    assert names(listed(tmp_path / "a*"), tmp_path) == ["a1.csv", "a2.csv"]


def test_several_paths_are_one_input_and_no_file_counts_twice(tmp_path: Path) -> None:
    fill(tmp_path, "x/a.csv", "x/b.csv", "y/c.csv")
    found = listed(tmp_path / "x", tmp_path / "x/a.csv", tmp_path / "y")
    assert names(found, tmp_path) == ["x/a.csv", "x/b.csv", "y/c.csv"]
    assert len(found.roots) == len(set(found.roots)) == 3
    assert str(tmp_path / "x") not in found.roots


def test_a_name_with_a_colon_is_refused_by_its_own_sentence(tmp_path: Path) -> None:
    fill(tmp_path, "a:b.csv")
    with pytest.raises(FileUnreadableError, match=r"a:b\.csv.*colon.*rename it"):
        listed(tmp_path)


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    Path(os.fsdecode(bytes(tmp_path) + b"/\xff.csv")).write_text("n\n")
    with pytest.raises(FileUnreadableError, match="not UTF-8"):
        listed(tmp_path)


def test_empty_markers_absent_and_glob_are_four_different_errors(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    fill(tmp_path, "done/_SUCCESS", "flights.csv")
    seen: dict[str, str] = {}
    expected = {
        "empty": PathEmptyError,
        "done": OnlyMarkersError,
        "flight.csv": PathAbsentError,
        "z*": PathAbsentError,
    }
    for path, kind in expected.items():
        with pytest.raises(kind) as caught:
            listed(tmp_path / path)
        assert type(caught.value) is kind
        seen[path] = str(caught.value)
    assert "_SUCCESS" in seen["done"]
    assert f"did you mean `{tmp_path}/flights.csv`" in seen["flight.csv"]
    assert "no match" in seen["z*"]


def test_the_nearest_name_is_that_of_the_first_missing_folder(tmp_path: Path) -> None:
    fill(tmp_path, "flights/day=1/f.csv")
    with pytest.raises(PathAbsentError, match=f"did you mean `{tmp_path}/flights`"):
        listed(tmp_path / "fligths/day=1/f.csv")


@pytest.mark.parametrize("path", ["empty", "done"])
def test_an_allowed_empty_input_is_no_files(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    fill(tmp_path, "done/_SUCCESS")
    found = listed(tmp_path / path, schema="zip STRING", allow_empty=True, format="csv")
    assert found.files == ()
    with pytest.raises(PathEmptyError):
        listed(tmp_path / path, allow_empty=True)
    with pytest.raises(PathAbsentError):
        listed(tmp_path / "absent", schema="zip STRING", allow_empty=True)


def test_one_empty_path_among_several_is_an_error(tmp_path: Path) -> None:
    fill(tmp_path, "full/a.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(PathEmptyError, match="empty"):
        listed(tmp_path / "full", tmp_path / "empty")


@pytest.mark.parametrize(
    ("files", "said"),
    [(["june/a.csv"], "no data files"), (["june/a.csv", "b.csv"], "beside data files"),
     (["day=1/june/a.csv"], "day=1")],
)  # fmt: skip
def test_plain_sub_folders_are_never_ignored(tmp_path: Path, files: list[str], said: str) -> None:
    fill(tmp_path, *files)
    with pytest.raises(FormatError, match=said) as caught:
        listed(tmp_path)
    assert "`june`" in str(caught.value)
    assert "/*/`" in str(caught.value)


def test_the_suggested_glob_works(tmp_path: Path) -> None:
    fill(tmp_path, "june/a.csv", "july/b.csv")
    assert names(listed(f"{tmp_path}/*/"), tmp_path) == ["july/b.csv", "june/a.csv"]


def test_a_hidden_file_by_name_is_refused_since_spark_skips_it(tmp_path: Path) -> None:
    fill(tmp_path, "_h.csv")
    with pytest.raises(FormatError, match="hidden"):
        listed(tmp_path / "_h.csv")


def test_a_dangling_link_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "l.csv").symlink_to(tmp_path / "gone.csv")
    for path in (tmp_path, tmp_path / "l.csv"):
        with pytest.raises(FileUnreadableError, match="link to nothing"):
            listed(path)


@pytest.mark.parametrize(
    ("closed", "expected"), [("f/a.csv", "FileUnreadableError"), ("f", "FileUnreadableError"), (None, "none")]
)
def test_without_the_right_to_read(closed: str | None, expected: str) -> None:
    with TemporaryDirectory() as place:  # not tmp_path, which another user may not enter
        folder = fill(Path(place), "f/a.csv")
        folder.chmod(0o755)
        if closed is not None:
            (folder / closed).chmod(0)
        told = _error_of_another_user(folder / "f")
        (folder / "f").chmod(0o755)
    assert told == expected


def _error_of_another_user(path: Path) -> str:
    """What listing raises for a user without rights; root reads everything, so a child gives up its own."""
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads: the child starts none
        child = os.fork()
    if child == 0:
        told = "another error"
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            listed(path)
            told = "none"
        except SuiteError as error:
            told = type(error).__name__
        finally:
            os.write(write_end, told.encode())
            os.kill(os.getpid(), signal.SIGKILL)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told


def test_a_working_folder_whose_name_looks_like_a_glob(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, "we[ird]*/day=1/a.csv", "wei/day=1/b.csv")
    monkeypatch.chdir(tmp_path / "we[ird]*")
    found = listed("day=?/*.csv")
    assert names(found, tmp_path) == ["we[ird]*/day=1/a.csv"]
    assert found.partition_columns == (("day", "BIGINT"),)


@pytest.mark.parametrize("path", ["x" * 5000, "nul\0"])
def test_what_cannot_be_a_path_is_absent(path: str) -> None:
    with pytest.raises(PathAbsentError):
        listed(path)


def test_links_in_a_circle_are_unreadable(tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    with pytest.raises(FileUnreadableError):
        listed(tmp_path)


def test_the_fingerprint_follows_paths_sizes_and_times(tmp_path: Path) -> None:
    fill(tmp_path, "a.csv", "b.csv")
    for name in ("a.csv", "b.csv"):
        os.utime(tmp_path / name, (1, 1))
    prints = {listed(tmp_path).fingerprint}
    assert {listed(tmp_path).fingerprint} == prints
    os.utime(tmp_path / "a.csv", (2, 2))
    prints.add(listed(tmp_path).fingerprint)
    (tmp_path / "a.csv").write_text("n\n12\n")
    os.utime(tmp_path / "a.csv", (2, 2))
    prints.add(listed(tmp_path).fingerprint)
    (tmp_path / "b.csv").rename(tmp_path / "c.csv")
    prints.add(listed(tmp_path).fingerprint)
    assert len(prints) == 4


@pytest.mark.parametrize(
    "paths", [(), ("",), ("table:a", "b"), ("a", "s3a://b/c")], ids=["none", "empty", "table", "systems"]
)
def test_what_is_typed_wrongly(paths: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        listed(*paths)


def test_a_table_and_a_remote_path_are_not_listed() -> None:
    table, remote = listed("table:db.t"), listed("s3a://bucket/x.parquet")
    assert (table.format, table.is_listed, table.files) == ("table", False, ())
    assert (remote.format, remote.is_listed, remote.fingerprint) == ("parquet", False, None)
    assert "existence" in remote.unchecked


@pytest.mark.parametrize("name", ["inferSchema", "PATHGLOBFILTER", "recursiveFileLookup"])
def test_options_that_change_what_is_read_are_refused(tmp_path: Path, name: str) -> None:
    fill(tmp_path, "a.csv")
    with pytest.raises(UsageError, match=name):
        listed(tmp_path, options={name: "true"})
