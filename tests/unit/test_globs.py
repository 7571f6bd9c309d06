from __future__ import annotations

from pathlib import Path

import pytest

from common.engine.globs import expand_glob
from common.engine.storage import LocalStorage

FILES = [
    "a.csv", "b.csv", "[x].csv", "_hidden.csv", ".dot.csv", "day=1/p.csv", "day=2/p.csv", "day=2/q.txt",
    "deep/er/p.csv", "_h=1/p.csv", "{a,b}.csv",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.csv", ["[x].csv", "a.csv", "b.csv", "{a,b}.csv"]),
        ("?.csv", ["a.csv", "b.csv"]),
        ("[ab].csv", ["a.csv", "b.csv"]),
        ("[!a].csv", ["b.csv"]),
        ("[[]x].csv", ["[x].csv"]),
        ("{a,*}.csv", ["{a,b}.csv"]),
        ("_hid*", ["_hidden.csv"]),
        ("day=*", ["day=1", "day=2"]),
        ("day=*/*.csv", ["day=1/p.csv", "day=2/p.csv"]),
        ("*=*/p.csv", ["_h=1/p.csv", "day=1/p.csv", "day=2/p.csv"]),
        ("**/p.csv", ["_h=1/p.csv", "day=1/p.csv", "day=2/p.csv", "deep/er/p.csv"]),
        ("d*/", ["day=1", "day=2", "deep"]),
        ("[x]*.csv", []),
        ("a.csv/*", []),
        ("absent/*", []),
        ("*/absent.csv", []),
    ],
)
def test_matches(folder: Path, pattern: str, expected: list[str]) -> None:
    found = expand_glob(f"{folder}/{pattern}", storage=LocalStorage())
    assert [entry.path for entry in found] == [f"{folder}/{name}" for name in expected]
