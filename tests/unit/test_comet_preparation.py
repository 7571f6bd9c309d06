"""The decision before a session, with the jar at hand or not; nothing is fetched here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from common.engine.comet import comet_settings, prepare_comet
from common.engine.jars import Fetched
from common.tuning.accelerator import Accelerated, RunFacts
from common.tuning.decision import Decision
from common.tuning.facts import InputFacts
from common.tuning.machine import Machine

GIB = 1024**3
V3 = frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"])
LAPTOP = Machine(16 * GIB, 16 * GIB, 8, "linux-x86_64", V3)
BIG = InputFacts("input", "parquet", ("facts",), size_bytes=GIB)


def prepared(
    fetch: Callable[..., Fetched],
    *,
    asked: Accelerated = "auto",
    machine: Machine = LAPTOP,
    engine: str = "local",
) -> tuple[Decision, dict[str, str]]:
    facts = RunFacts(engine, "4.1.3", machine, inputs=(BIG,), started_with=engine != "local")
    return prepare_comet(asked, facts, java="java", spark_home="spark", fetch=fetch)


def never(*_: object, **__: object) -> Fetched:
    raise AssertionError("nothing is fetched when it is not chosen, or not ours")


def test_with_the_jar(tmp_path: Path) -> None:
    jar = tmp_path / "my jars" / "comet.jar"
    decision, settings = prepared(lambda *_, **__: Fetched(jar))
    assert decision.choice == "comet"
    assert settings == {
        "spark.jars": f"file://{tmp_path}/my%20jars/comet.jar",
        "spark.driver.memory": "1g",
        "spark.memory.offHeap.size": "6489m",  # (0.6 * 16384 - 320 - 8 * 128 - 1024) / 1.15
    }


def test_other_jars_stay() -> None:
    settings = comet_settings(RunFacts("local", "4.1.3", LAPTOP), jar=Path("/c.jar"), jars="/a.jar,/b.jar")
    assert settings is not None
    assert settings["spark.jars"] == "/a.jar,/b.jar,file:///c.jar"


@pytest.mark.parametrize("asked", ["auto", "comet"])
def test_without_network_it_is_plain_spark_in_one_sentence(asked: Accelerated) -> None:
    decision, settings = prepared(lambda *_, **__: Fetched(None, "no network"), asked=asked)
    assert (decision.choice, settings) == ("none", {})
    assert decision.reason == "plain Spark: Comet's jar cannot be had: no network"


def test_a_comma_would_be_two_jars() -> None:
    decision, settings = prepared(lambda *_, **__: Fetched(Path("/a,b/c.jar")))
    assert (decision.choice, settings) == ("none", {})
    assert "a comma in its name" in decision.reason


def test_with_two_gibibytes_nothing_is_fetched() -> None:
    small = Machine(2 * GIB, 2 * GIB, 2, "linux-x86_64", V3)
    decision, settings = prepared(never, machine=small)
    assert (decision.choice, settings) == ("none", {})
    assert "2 GiB of memory" in decision.reason
    assert comet_settings(RunFacts("local", "4.1.3", small), jar=Path("/c.jar")) is None


def test_a_session_that_has_it_keeps_its_own() -> None:
    decision, settings = prepared(never, engine="submit")
    assert (decision.choice, settings) == ("comet", {})


def test_footers_are_read_only_when_all_else_agrees(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("x", pa.int64())], metadata={"org.apache.spark.version": "2.4.8"})
    pq.write_table(pa.table({"x": [1]}, schema=schema), tmp_path / "old.parquet")
    facts = RunFacts("local", "4.1.3", LAPTOP, inputs=(BIG,))
    old = [str(tmp_path / "old.parquet")]
    decision, settings = prepare_comet("auto", facts, java="", spark_home="", files=old, fetch=never)
    assert (decision.choice, settings) == ("none", {})
    assert "calendar of Spark 2" in decision.reason
    absent = [str(tmp_path / "absent.parquet")]
    decision, _ = prepare_comet("none", facts, java="", spark_home="", files=absent, fetch=never)
    assert decision.choice == "none"


def test_none_fetches_nothing() -> None:
    decision, settings = prepared(never, asked="none")
    assert (decision.choice, settings) == ("none", {})
