"""How an executor's memory is divided; the numbers are worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.settings.profiles import load_profile
from common.tuning.executor_memory import ExecutorMemory, share_executor

CONF = Path(__file__).resolve().parents[2] / "conf"
MIB = 1024**2


def shared(name: str, master: str, **overrides: str) -> ExecutorMemory | str | None:
    settings = {key.replace("_", "."): value for key, value in overrides.items()}
    return share_executor(load_profile(name, folder=CONF, overrides=settings), master=master)


@pytest.mark.parametrize(("name", "master"), [("yarn+comet", "yarn"), ("k8s+comet", "k8s://https://h:6443")])
def test_a_container_is_as_large_as_before(name: str, master: str) -> None:
    memory = shared(name, master)
    assert isinstance(memory, ExecutorMemory)
    # 6144 / 3; (6144 - 2048) / 1.15 cut; int(0.4 * 6144) and the 535 that are left of 6144.
    assert memory == ExecutorMemory(6144 * MIB, 2048 * MIB, 3561 * MIB, (2457 + 535) * MIB)
    # Spark 4.1.3 says so of 6g and 0.4: 6144 + 2457 = 8601 (ResourceProfile.getResourcesForClusterManager).
    assert memory.heap_bytes + memory.off_heap_bytes + (memory.overhead_bytes or 0) == 8601 * MIB
    assert memory.settings == {
        "spark.executor.memory": "2g",
        "spark.memory.offHeap.size": "3561m",
        "spark.executor.memoryOverhead": "2992m",
    }
    assert str(memory).startswith("of an executor's 6 GiB: 2 GiB heap, 3.5 GiB outside it")


def test_a_worker_counts_the_heap_only() -> None:
    memory = shared("standalone+comet", "spark://h:1", spark_executor_memory="3g")
    # 3072 / 3; 2048 / 1.15 = 1780.87
    assert memory == ExecutorMemory(3072 * MIB, 1024 * MIB, 1780 * MIB, None)
    assert memory.settings == {"spark.executor.memory": "1g", "spark.memory.offHeap.size": "1780m"}


def test_the_least_that_can_be_divided() -> None:
    # 640 + 512 * 1.15 = 1228.8
    memory = shared("standalone+comet", "spark://h:1", spark_executor_memory="1229m")
    assert memory == ExecutorMemory(1229 * MIB, 640 * MIB, 512 * MIB, None)
    for size in (
        {"spark_executor_memory": "1228"},
        {},
    ):  # Spark takes a bare number for MiB, and nothing for 1g
        why = shared("standalone+comet", "spark://h:1", **size)
        assert isinstance(why, str)
        assert "--conf spark.executor.memory=1229m or more" in why


@pytest.mark.parametrize(
    ("overrides", "overhead"),
    [
        ({"spark_executor_memoryOverhead": "3g"}, 3072),
        ({"spark_executor_memoryOverheadFactor": "0.01"}, 384),
        ({"spark_executor_memoryOverheadFactor": "0.01", "spark_executor_minMemoryOverhead": "1g"}, 1024),
    ],
)
def test_the_overhead_that_was_asked_for(overrides: dict[str, str], overhead: int) -> None:
    memory = shared("yarn+comet", "yarn", **overrides)
    assert isinstance(memory, ExecutorMemory)
    assert memory.overhead_bytes == (overhead + 535) * MIB


@pytest.mark.parametrize(("master", "overhead"), [("yarn", 614), ("k8s://https://h", 2457)])
def test_sparks_own_share_where_a_profile_names_none(tmp_path: Path, master: str, overhead: int) -> None:
    (tmp_path / "base.conf").write_text("spark.executor.memory 6g\n")
    memory = share_executor(load_profile("base", folder=tmp_path), master=master)
    assert isinstance(memory, ExecutorMemory)
    assert memory.overhead_bytes == (overhead + 535) * MIB  # int(0.1 * 6144), int(0.4 * 6144)


def test_a_size_of_the_users_own_is_left_alone() -> None:
    assert shared("yarn+comet", "yarn", spark_memory_offHeap_size="4g") is None
