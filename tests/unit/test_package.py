"""The zip that workers import from."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from common.core.errors import UsageError
from common.engine.package import main, package_bytes, worker_package


def test_same_sources_same_bytes() -> None:
    assert package_bytes() == package_bytes()


def test_it_holds_the_packages_and_nothing_made() -> None:
    names = zipfile.ZipFile(io.BytesIO(package_bytes(("common", "jobs")))).namelist()
    assert {"common/__init__.py", "common/transforms/__init__.py", "jobs/topn.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    assert names == sorted(names)


def test_transforms_import_from_the_zip_alone_without_settings(tmp_path: Path) -> None:
    archive = worker_package(tmp_path)
    code = (
        "import sys, common.transforms.topn, common.transforms.fingerprint as f;"
        "assert '.zip' in f.__file__, f.__file__;"
        "print(sorted(m for m in sys.modules if m.startswith(('pydantic', 'cyclopts', 'common.settings'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(archive)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_the_name_carries_the_content(tmp_path: Path) -> None:
    assert worker_package(tmp_path) == worker_package(tmp_path)
    assert worker_package(tmp_path).name.startswith("saltpan_common_")


def test_a_spoiled_one_is_replaced(tmp_path: Path) -> None:
    path = worker_package(tmp_path)
    path.write_bytes(b"half")
    assert worker_package(tmp_path).read_bytes() == package_bytes()


def test_without_a_cache_folder_it_is_in_the_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert worker_package().parent.parent == tmp_path


def test_the_command(tmp_path: Path) -> None:
    assert main([str(tmp_path / "dist" / "x.zip")]) == 0
    assert zipfile.is_zipfile(tmp_path / "dist" / "x.zip")
    with pytest.raises(UsageError, match=r"expected one TARGET\.zip"):
        main([])
