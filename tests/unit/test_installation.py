"""What must be there before anything of Spark is imported."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from unittest.mock import MagicMock

import pytest

import common
from common.core.errors import InstallationError
from common.engine.installation import find_packages, foreign_common


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in names else real(name))


def test_all_is_there() -> None:
    find_packages({})


def test_what_is_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "pyspark", "cyclopts")
    with pytest.raises(InstallationError, match=r"the packages pyspark, cyclopts, got .*pip install saltpan"):
        find_packages({})


def test_spark_from_spark_home(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "pyspark")
    found = MagicMock()
    monkeypatch.setattr("findspark.init", found)
    find_packages({"SPARK_HOME": "/opt/spark"})
    found.assert_called_once_with()


@pytest.mark.parametrize("name", ["common/__init__.py", "common.py"])
def test_a_foreign_package_is_found(tmp_path: Path, name: str) -> None:
    assert foreign_common(tmp_path) is None
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    assert foreign_common(tmp_path) == tmp_path / name.partition("/")[0]


def test_our_own_folder_is_not_foreign() -> None:
    assert foreign_common(Path(common.__file__).parents[1]) is None
