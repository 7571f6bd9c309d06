from __future__ import annotations

import os
from pathlib import Path

import pytest

from common.engine.storage import LocalStorage, storage_for

STORAGE = LocalStorage()


def test_entry_tells_size_and_kind(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12345")
    file, folder = STORAGE.entry(str(tmp_path / "f")), STORAGE.entry(str(tmp_path))
    assert (file.size_bytes, file.is_folder, file.name) == (5, False, "f")
    assert (folder.size_bytes, folder.is_folder) == (0, True)


def test_entry_takes_the_time_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.touch()
    os.utime(path, (1_000_000_000, 1_234_567_890))
    assert STORAGE.entry(str(path)).modified_seconds == 1_234_567_890


@pytest.mark.parametrize("name", ["absent", "file/below", "nul\0"])
def test_entry_of_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError):
        STORAGE.entry(f"{tmp_path}/{name}")


def test_children_come_by_name_and_know_dangling_links(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("xy")
    (tmp_path / "a").mkdir()
    (tmp_path / "c").symlink_to(tmp_path / "gone")
    found = [(entry.name, entry.size_bytes, entry.is_folder) for entry in STORAGE.children(str(tmp_path))]
    assert found == [("a", 0, True), ("b", 2, False), ("c", 0, False)]


@pytest.mark.parametrize(("size_bytes", "expected"), [(0, b""), (3, b"abc"), (99, b"abcdef")])
def test_head(tmp_path: Path, size_bytes: int, expected: bytes) -> None:
    (tmp_path / "f").write_bytes(b"abcdef")
    assert STORAGE.head(str(tmp_path / "f"), size_bytes=size_bytes) == expected


def test_rename_moves_to_a_free_name_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    with pytest.raises(FileExistsError):
        STORAGE.rename(f"{tmp_path}/a", target=f"{tmp_path}/b")
    STORAGE.rename(f"{tmp_path}/a", target=f"{tmp_path}/c")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c"]


def test_delete_tree_takes_folders_files_links_and_nothing(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "link").symlink_to(kept)
    (tmp_path / "tree/deep").mkdir(parents=True)
    (tmp_path / "file").touch()
    for name in ("link", "tree", "file", "absent"):
        STORAGE.delete_tree(f"{tmp_path}/{name}")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_make_folders_twice(tmp_path: Path) -> None:
    STORAGE.make_folders(f"file://{tmp_path}/a/b")
    STORAGE.make_folders(f"{tmp_path}/a/b")
    assert (tmp_path / "a/b").is_dir()
    assert STORAGE.exists(f"{tmp_path}/a/b")
    assert not STORAGE.exists(f"{tmp_path}/a/c")


def test_refusal_of_a_pipe_and_of_a_colon(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a:b.csv").touch()
    (tmp_path / "t=10:00").mkdir()
    refusals = {entry.name: STORAGE.refusal(entry) for entry in STORAGE.children(str(tmp_path))}
    assert "pipe" in (refusals["pipe"] or "")
    assert "colon" in (refusals["a:b.csv"] or "")
    assert refusals["t=10:00"] is None


@pytest.mark.parametrize(
    ("path", "local"), [("data/x", True), ("file:/x", True), ("FILE:///x", True), ("s3a://b/x", False)]
)
def test_without_a_session_only_local_paths_have_a_storage(path: str, *, local: bool) -> None:
    storage = storage_for(path)
    assert (storage is not None and storage.is_local) == local


def test_resolve_makes_absolute_and_decodes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert STORAGE.resolve("a%20b/../c#/") == f"{tmp_path}/c#"
