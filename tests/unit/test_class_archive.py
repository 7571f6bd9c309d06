"""A class archive is used only when it is whole, and of this JVM and these jars."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from common.engine.archive_keeper import keep
from common.engine.class_archive import Archive, find_archive


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "a.jar").write_bytes(b"jar")
    return tmp_path / "spark"


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """A java that loads any archive that holds the word `good`."""
    home = tmp_path / "java home"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="17.0.1"')
    program = home / "bin" / "java"
    program.write_text(
        "#!/bin/sh\n"
        "for word; do case $word in -XX:SharedArchiveFile=*) file=${word#*=};; esac; done\n"
        'grep -q good "$file"\n'
    )
    program.chmod(0o755)
    return home


def archive(java: Path, spark_home: Path, tmp_path: Path) -> Archive:
    found = find_archive(str(java), str(spark_home), folder=tmp_path / "cache folder")
    assert found is not None
    return found


def record(found: Archive, java: Path, content: str) -> bool:
    found.recording.write_text(content)
    ended = subprocess.Popen(["true"])
    ended.wait()
    return keep(
        found.recording, found.path, jvm_pid=ended.pid, java=str(java / "bin" / "java"), class_path="x"
    )


def test_first_it_is_recorded_then_used(java: Path, spark_home: Path, tmp_path: Path) -> None:
    first = archive(java, spark_home, tmp_path)
    assert not first.usable
    assert (
        first.options()[-1] == f'"-XX:ArchiveClassesAtExit={first.path.with_suffix(f".{os.getpid()}.part")}"'
    )
    assert record(first, java, "good")
    second = archive(java, spark_home, tmp_path)
    assert second.usable
    assert second.options()[-1] == f'"-XX:SharedArchiveFile={second.path}"'
    assert second.options()[:2] == ("-Xlog:disable", "-Xlog:all=error:stderr")
    assert not first.recording.exists()


def test_what_no_jvm_loads_is_thrown_away(java: Path, spark_home: Path, tmp_path: Path) -> None:
    found = archive(java, spark_home, tmp_path)
    assert not record(found, java, "bad")
    assert list(found.path.parent.iterdir()) == []


@pytest.mark.parametrize("content", [b"goo", b"gooD", b""])
def test_a_truncated_or_changed_archive_is_not_used(
    java: Path, spark_home: Path, tmp_path: Path, content: bytes
) -> None:
    found = archive(java, spark_home, tmp_path)
    record(found, java, "good")
    found.path.write_bytes(content)
    assert not archive(java, spark_home, tmp_path).usable


def test_a_foreign_archive_has_another_name(java: Path, spark_home: Path, tmp_path: Path) -> None:
    found = archive(java, spark_home, tmp_path)
    record(found, java, "good")
    (spark_home / "jars" / "b.jar").write_bytes(b"another")
    other = archive(java, spark_home, tmp_path)
    assert other.path != found.path
    assert not other.usable


def test_without_its_promise_it_is_not_used(java: Path, spark_home: Path, tmp_path: Path) -> None:
    found = archive(java, spark_home, tmp_path)
    record(found, java, "good")
    found.path.with_suffix(".json").unlink()
    assert not archive(java, spark_home, tmp_path).usable


def test_none_where_a_folder_with_files_is_on_the_class_path(
    java: Path, spark_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    assert find_archive(str(java), str(spark_home), folder=tmp_path / "c") is not None
    (tmp_path / "conf" / "spark-env.sh").touch()
    assert find_archive(str(java), str(spark_home), folder=tmp_path / "c") is None


def test_none_where_nothing_can_be_kept(java: Path, spark_home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert find_archive(str(java), str(spark_home), folder=tmp_path / "file" / "x") is None


def test_jars_in_a_folder_with_a_space_are_not_shared(java: Path, spark_home: Path, tmp_path: Path) -> None:
    spaced = spark_home.rename(tmp_path / "my spark")
    assert find_archive(str(java), str(spaced), folder=tmp_path / "cache") is None
