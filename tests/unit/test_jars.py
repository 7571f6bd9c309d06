"""Jars are fetched once, checked, and done without when they cannot be had; Ivy is a script here."""

from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from common.engine import jars
from common.engine.jars import Fetched, fetch_jar, jar_folder
from common.settings.accelerators import Jar, accelerator

CONTENT = b"the jar that was tried"
JAR = Jar("org.example:quick_2.13:1.0", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
NAME = "quick_2.13-1.0.jar"


class Ivy:
    """A program in the place of Java: writes what it is told, and notes each call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls"
        self.java = folder / "java"
        (folder / "spark" / "jars").mkdir(parents=True)
        (folder / "spark" / "jars" / "ivy-2.5.3.jar").touch()
        self.gives(CONTENT)

    def gives(self, content: bytes) -> None:
        (self.folder / "content").write_bytes(content)
        self.does(f"cat '{self.folder}/content' >\"$place\"")

    def does(self, script: str) -> None:
        lines = ["#!/bin/sh", f"echo \"$*\" >>'{self.calls}'", 'while [ "$1" != -retrieve ]; do shift; done']
        lines += ['place=$(dirname "$2")/quick_2.13.jar', script]
        self.java.write_text("\n".join(lines))
        self.java.chmod(0o755)

    def fetch(self, folder: Path, *, timeout_seconds: float = 30) -> Fetched:
        home = str(self.folder / "spark")
        return fetch_jar(
            JAR, java=str(self.java), spark_home=home, folder=folder, timeout_seconds=timeout_seconds
        )

    @property
    def call_count(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


@pytest.fixture
def ivy(tmp_path: Path) -> Ivy:
    return Ivy(tmp_path)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "my cache" / "jars"


def test_it_is_fetched_once(ivy: Ivy, cache: Path) -> None:
    first, second = ivy.fetch(cache), ivy.fetch(cache)
    assert first == second == Fetched(cache / NAME)
    assert (cache / NAME).read_bytes() == CONTENT
    assert ivy.call_count == 1
    said = ivy.calls.read_text()
    assert "org.apache.ivy.Main -dependency org.example quick_2.13 1.0 -notransitive -types jar" in said
    left = {path.name for path in cache.iterdir()} - {f".{NAME}.lock"}
    assert left == {NAME, "quick_2.13-1.0.json"}


def test_a_jar_that_lies_there_is_taken_without_network(ivy: Ivy, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / NAME).write_bytes(CONTENT)
    assert ivy.fetch(cache).path == cache / NAME
    assert ivy.call_count == 0


@pytest.mark.parametrize("damage", [CONTENT[:-1], CONTENT[:-1] + b"X", b"", CONTENT + b"more"])
def test_a_damaged_jar_is_fetched_anew(ivy: Ivy, cache: Path, damage: bytes) -> None:
    ivy.fetch(cache)
    (cache / NAME).write_bytes(damage)
    assert ivy.fetch(cache).path == cache / NAME
    assert (cache / NAME).read_bytes() == CONTENT
    assert ivy.call_count == 2


def test_a_damaged_jar_is_not_used_when_there_is_no_network(ivy: Ivy, cache: Path) -> None:
    ivy.fetch(cache)
    (cache / NAME).write_bytes(b"damage")
    ivy.does("exit 1")
    assert ivy.fetch(cache).path is None
    assert not (cache / NAME).exists()


def test_another_jar_under_the_name_is_refused(ivy: Ivy, cache: Path) -> None:
    ivy.gives(b"something else, whose digest is another")
    assert ivy.fetch(cache) == Fetched(None, "what was fetched is not the jar that was tried")
    assert not (cache / NAME).exists()


def test_a_promise_of_another_digest_is_no_promise(ivy: Ivy, cache: Path) -> None:
    ivy.fetch(cache)
    beside = cache / "quick_2.13-1.0.json"
    beside.write_text(json.dumps({**json.loads(beside.read_text()), "sha256": "0" * 64}))
    assert ivy.fetch(cache).path == cache / NAME
    assert ivy.call_count == 1  # the jar itself is right
    assert json.loads(beside.read_text())["sha256"] == JAR.sha256


@pytest.mark.parametrize("junk", ["", "{", "[]", "null", "\x00"])
def test_a_broken_promise_is_made_anew(ivy: Ivy, cache: Path, junk: str) -> None:
    ivy.fetch(cache)
    (cache / "quick_2.13-1.0.json").write_text(junk)
    assert ivy.fetch(cache).path == cache / NAME


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            "echo '\tServer access error at url https://x.org/a.pom (java.net.ConnectException: no)'; exit 1",
            "Server access error (java.net.ConnectException: no)",
        ),
        (
            "echo '\t\t:: org.example#quick_2.13;1.0: not found'; exit 1",
            "org.example#quick_2.13;1.0: not found",
        ),
        ("exit 1", "Ivy did not find it"),
        ("exit 0", "Ivy did not find it"),
    ],
)
def test_no_network_is_a_reason(ivy: Ivy, cache: Path, script: str, expected: str) -> None:
    ivy.does(script)
    assert ivy.fetch(cache) == Fetched(None, expected)
    assert [path.name for path in cache.iterdir() if path.name.startswith(".part")] == []


def test_it_does_not_wait_for_ever(ivy: Ivy, cache: Path) -> None:
    ivy.does("exec sleep 20")
    assert ivy.fetch(cache, timeout_seconds=0.3) == Fetched(None, "nothing came within 0.3 s")


def test_after_a_failure_it_is_not_tried_again_at_once(
    ivy: Ivy, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ivy.does("exit 1")
    ivy.fetch(cache)
    ivy.gives(CONTENT)
    assert ivy.fetch(cache).problem.startswith("Ivy did not find it (tried ")
    assert ivy.call_count == 1
    monkeypatch.setattr(jars, "RETRY_AFTER_SECONDS", 0.0)
    assert ivy.fetch(cache).path == cache / NAME
    assert not (cache / "quick_2.13-1.0.failed").exists()


def test_runs_at_the_same_time_fetch_it_once(ivy: Ivy, cache: Path) -> None:
    ivy.does(f"sleep 0.2; cat '{ivy.folder}/content' >\"$place\"")
    with ThreadPoolExecutor(max_workers=6) as pool:
        fetched = list(pool.map(lambda _: ivy.fetch(cache), range(6)))
    assert fetched == [Fetched(cache / NAME)] * 6
    assert ivy.call_count == 1


def test_a_folder_that_cannot_be_made_is_a_reason(ivy: Ivy, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    problem = ivy.fetch(tmp_path / "file" / "jars").problem
    assert problem == f"{tmp_path}/file/jars cannot be used (Not a directory)"


def test_java_that_is_not_there_is_a_reason(ivy: Ivy, cache: Path) -> None:
    ivy.java.unlink()
    assert "cannot be used (No such file or directory)" in ivy.fetch(cache).problem


def test_a_spark_without_ivy_is_a_reason(ivy: Ivy, cache: Path) -> None:
    (ivy.folder / "spark" / "jars" / "ivy-2.5.3.jar").unlink()
    assert ivy.fetch(cache).problem == f"there is no Ivy among the jars of {ivy.folder}/spark"


def test_a_clone_keeps_its_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "_ROOT", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert jar_folder() == tmp_path / "home" / "saltpan" / "jars"
    for name in ("Makefile", "pyproject.toml"):
        (tmp_path / name).touch()
    assert jar_folder() == tmp_path / ".cache" / "jars"


def test_comet_is_the_jar_that_the_lock_wants() -> None:
    jar = accelerator("comet").jar
    assert jar.file_name == "comet-spark-spark4.1_2.13-1.2.0.jar"
    assert len(bytes.fromhex(jar.sha256)) == 32
    kept = jar_folder() / jar.file_name
    if kept.exists() and os.environ.get("CI"):
        assert kept.stat().st_size == jar.size_bytes
