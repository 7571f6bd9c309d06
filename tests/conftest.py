"""One Spark session per test process; markers follow from the folder a test is in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDERS = ("unit", "transforms", "properties", "plans", "e2e", "architecture")
SPARK_FOLDERS = ("transforms", "properties", "plans", "e2e")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for folder in FOLDERS:
            if f"/tests/{folder}/" in str(item.path).replace("\\", "/"):
                item.add_marker(folder)
                if folder in SPARK_FOLDERS:
                    item.add_marker("spark")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    from pyspark.sql import SparkSession

    scratch: Path = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("saltpan-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.default.parallelism", "3")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config(
            "spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.timezone=UTC"
        )
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
