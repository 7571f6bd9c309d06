"""One Spark session per test process; markers follow from the folder a test is in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDERS = ("unit", "transforms", "properties", "plans", "e2e", "architecture")
SPARK_FOLDERS = ("transforms", "properties", "plans", "e2e")
LOCAL_RULE = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for folder in FOLDERS:
            if f"/tests/{folder}/" in str(item.path).replace("\\", "/"):
                item.add_marker(folder)
                if folder in SPARK_FOLDERS:
                    item.add_marker("spark")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine",
        choices=("spark", "comet"),
        default="spark",
        help="what runs the plans of the shared session; with comet also those of literal rows",
    )


@pytest.fixture(scope="session")
def comet_jar() -> Path:
    """Comet's jar, fetched; what needs it is skipped where Comet cannot run or the jar cannot be had."""
    import pyspark

    from common.engine.jars import fetch_jar
    from common.engine.java import check_java
    from common.engine.machine import read_machine
    from common.settings.accelerators import accelerator
    from common.tuning.accelerator import RunFacts, plan_accelerator

    comet = accelerator("comet")
    decision = plan_accelerator("comet", RunFacts("local", pyspark.__version__, read_machine()), comet=comet)
    if decision.choice != "comet":
        pytest.skip(f"Comet cannot run here: {decision.reason}")
    fetched = fetch_jar(comet.jar, java=check_java().program, spark_home=str(Path(pyspark.__file__).parent))
    if fetched.path is None:
        pytest.skip(f"Comet's jar cannot be had: {fetched.problem}")
    return fetched.path


def comet_settings(jar: Path) -> dict[str, str]:
    """Comet as conf/comet.conf has it, in little memory, also on rows that come from no file."""
    from common.settings.profiles import load_profile

    profile = load_profile("local+comet", folder=Path(__file__).parents[1] / "conf")
    return {
        **{key: setting.value for key, setting in profile.settings.items() if setting.layer == "comet"},
        "spark.jars": jar.as_uri(),
        "spark.memory.offHeap.size": "1g",
        "spark.comet.sparkToColumnar.enabled": "true",
        "spark.comet.sparkToColumnar.supportedOperatorList": "Range,InMemoryTableScan,RDDScan,LocalTableScan",
    }


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[object]:
    from pyspark.sql import SparkSession

    from common.engine.comet import is_active
    from common.engine.local_session import worker_python
    from common.engine.worker_daemon import daemon_settings

    scratch: Path = tmp_path_factory.mktemp("spark")
    engine = request.config.getoption("--engine")
    comet = comet_settings(request.getfixturevalue("comet_jar")) if engine == "comet" else {}
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("saltpan-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.default.parallelism", "3")
        # Else the optimizer computes on literal rows by itself, and the plan under test never runs.
        .config("spark.sql.optimizer.excludedRules", LOCAL_RULE)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config(
            "spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.timezone=UTC"
        )
        .config("spark.driver.memory", "2g")
        .config(map={**comet, **daemon_settings({})})
    )
    with worker_python(""):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    assert is_active(session) == (engine == "comet")
    yield session
    session.stop()
