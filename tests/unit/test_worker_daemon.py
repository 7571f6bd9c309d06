"""Archives are read again when they have changed, and only then."""

from __future__ import annotations

import os
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from common.engine import worker_daemon
from common.engine.worker_daemon import MODULE_KEY, daemon_settings, read_when_changed
from common.engine.worker_python import WorkerPython


def _archive(path: Path, module: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{module}.py", f"NAME = {module!r}\n")


def test_an_archive_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "modules.zip"
    _archive(path, "first")
    importer, read = zipimport.zipimporter(str(path)), []

    def own(found: zipimport.zipimporter) -> None:
        read.append(found)
        zipimport.zipimporter.invalidate_caches(found)

    invalidate = read_when_changed(own)
    for _ in range(3):
        invalidate(importer)
    assert read == [importer]
    _archive(path, "second")
    os.utime(path, ns=(0, 1))
    for _ in range(3):
        invalidate(importer)
    assert read == [importer, importer]
    assert importer.find_spec("second") is not None
    assert importer.find_spec("first") is None


def test_an_archive_that_is_gone_is_looked_for_every_time(tmp_path: Path) -> None:
    path = tmp_path / "modules.zip"
    _archive(path, "first")
    importer, read = zipimport.zipimporter(str(path)), []
    invalidate = read_when_changed(read.append)
    path.unlink()
    invalidate(importer)
    invalidate(importer)
    assert len(read) == 2


@pytest.mark.parametrize(
    ("python", "spark", "environ", "installed", "is_set"),
    [
        ((3, 11, 7), "4.1.3", {}, True, True),
        ((3, 11, 7), "4.1.3", {"PYSPARK_PYTHON": sys.executable}, True, True),
        ((3, 11, 7), "4.1.3", {}, False, False),
        ((3, 13, 0), "4.1.3", {}, True, False),
        ((3, 11, 7), "4.2.0", {}, True, False),
    ],
)
def test_where_the_daemon_is_ours(
    monkeypatch: pytest.MonkeyPatch,
    python: tuple[int, int, int],
    spark: str,
    environ: dict[str, str],
    installed: bool,
    is_set: bool,
) -> None:
    monkeypatch.setattr(sys, "version_info", python)
    monkeypatch.setattr(worker_daemon.pyspark, "__version__", spark)
    monkeypatch.setattr(worker_daemon, "distributions", lambda name: [name] if installed else [])
    assert daemon_settings(environ) == ({MODULE_KEY: "common.engine.worker_daemon"} if is_set else {})


def test_another_python_need_not_have_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 11, 7))
    monkeypatch.setattr(worker_daemon.pyspark, "__version__", "4.1.3")
    theirs = WorkerPython("/other/python3", "3.11", is_ours=False)
    monkeypatch.setattr(worker_daemon, "find_worker_python", lambda environ: theirs)
    assert daemon_settings({"PYSPARK_PYTHON": "/other/python3"}) == {}
