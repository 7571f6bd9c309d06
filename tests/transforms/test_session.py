"""A session that exists already: what it takes is applied, what not is reported, and all is given back."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from common.engine.session import open_engine
from common.settings.engines import capabilities, known_capabilities
from common.settings.profiles import load_profile
from tests.engine_probes import tried


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.conf").write_text(
        "spark.sql.session.timeZone Europe/Berlin\nspark.sql.ansi.enabled true\n"
    )
    (tmp_path / "site.conf").write_text("spark.driver.memory 7g\nspark.sql.shuffle.partitions 11\n")
    return tmp_path


def test_g1_what_comes_too_late_is_reported(spark: SparkSession, folder: Path) -> None:
    profile = load_profile("site", folder=folder, overrides={"spark.sql.files.openCostInBytes": "64k"})
    with open_engine("test", profile) as engine:
        assert (engine.name, engine.spark) == ("existing", spark)
        assert spark.conf.get("spark.sql.shuffle.partitions") == "11"
        assert engine.configuration["spark.sql.files.openCostInBytes"] == "64k"
        late = {item.key: (item.asked, item.effective) for item in engine.not_applied}
    assert late == {
        "spark.driver.memory": ("7g", "2g"),
        # The base layer does not overrule what the session's owner chose.
        "spark.sql.session.timeZone": ("Europe/Berlin", "UTC"),
    }
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"


def test_the_session_is_given_back_after_an_error(spark: SparkSession, folder: Path) -> None:
    profile = load_profile("site", folder=folder)
    with pytest.raises(ZeroDivisionError), open_engine("test", profile):
        raise ZeroDivisionError
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    assert spark.range(3).count() == 3


def test_a_session_goes_on_after_two_runs_in_it(spark: SparkSession, folder: Path) -> None:
    for _ in range(2):
        with open_engine("test", load_profile("base", folder=folder)):
            assert spark.sparkContext.parallelize([1, 2], 2).map(lambda x: x + 1).sum() == 5
    assert spark.sparkContext.parallelize([1, 2], 2).map(lambda x: x + 1).sum() == 5


def test_what_an_engine_tells(spark: SparkSession, folder: Path) -> None:
    with open_engine("test", load_profile("base", folder=folder)) as engine:
        assert engine.versions["spark"] == spark.version
        assert int(engine.versions["java"].split(".")[0]) >= 17
        assert engine.application_id.startswith("local-")
        assert engine.core_count == 3


def test_classic_spark_can_do_what_the_registry_says(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    with open_engine("test", load_profile("base", folder=folder)) as engine:
        works = tried(spark, tmp_path)
        assert works == {name: name in engine.capabilities for name in known_capabilities()}
        assert engine.capabilities == capabilities("classic", spark_version=spark.version)
