"""When Comet is chosen, and how memory is shared out."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common.core.errors import UnknownNameError
from common.settings.accelerators import accelerator
from common.tuning.accelerator import (
    WORTH_FROM_BYTES,
    Accelerated,
    Memory,
    RunFacts,
    plan_accelerator,
    share_memory,
)
from common.tuning.facts import InputFacts
from common.tuning.machine import Machine

GIB = 1024**3
MIB = 1024**2
COMET = accelerator("comet")
V3 = frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"])
LAPTOP = Machine(16 * GIB, 12 * GIB, 8, "linux-x86_64", V3 | {"sse2"})
BIG = InputFacts("input", "parquet", ("facts",), size_bytes=WORTH_FROM_BYTES)


def facts(machine: Machine = LAPTOP, **changes: Any) -> RunFacts:
    return dataclasses.replace(RunFacts("local", "4.1.3", machine, inputs=(BIG,)), **changes)


def machine(**changes: Any) -> Machine:
    return dataclasses.replace(LAPTOP, **changes)


def test_auto_takes_it_for_much_parquet() -> None:
    decision = plan_accelerator("auto", facts(), comet=COMET)
    assert (decision.choice, decision.forced) == ("comet", False)
    assert "Comet 1.2.0" in decision.reason
    assert decision.evidence["size_bytes"] == WORTH_FROM_BYTES


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"engine": "connect"}, "the server of a remote session decides"),
        ({"engine": "submit"}, "--packages org.apache.datafusion:comet-spark-spark4.1_2.13:1.2.0"),
        ({"engine": "existing"}, "was started without it"),
        ({"spark_version": "4.3.0"}, "made for Spark 4.1, this is 4.3.0"),
        ({"spark_version": "4.10.1"}, "this is 4.10.1"),
        ({"spark_version": ""}, "this is unknown"),
        ({"machine": machine(system="darwin-arm64")}, "no native library for darwin-arm64"),
        ({"machine": machine(cpu_flags=V3 - {"avx2", "bmi2"})}, "lacks avx2, bmi2"),
        ({"machine": machine(memory_bytes=2 * GIB, available_bytes=2 * GIB)}, "2 GiB of memory"),
        ({"machine": machine(available_bytes=GIB)}, "1 GiB of memory are free"),
        ({"heap_bytes": 9 * GIB, "heap_is_fixed": True}, "beside a heap of 9 GiB"),
        ({"time_zone": "Europe/Berlin"}, "the session is in Europe/Berlin, not UTC"),
        ({"unsafe_inputs": ("files in an old calendar",)}, "files in an old calendar"),
        ({"jar_problem": "no network"}, "cannot be had: no network"),
    ],
)
@pytest.mark.parametrize("asked", ["auto", "comet"])
def test_what_cannot_be_is_plain_spark_even_when_asked_for(
    asked: Accelerated, changes: dict[str, Any], said: str
) -> None:
    decision = plan_accelerator(asked, facts(**changes), comet=COMET)
    assert decision.choice == "none"
    assert said in decision.reason
    assert decision.forced == (asked == "comet")
    assert [name for name, _ in decision.rejected] == ["comet"]


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ((dataclasses.replace(BIG, size_bytes=WORTH_FROM_BYTES - 1),), "from which Comet's start pays"),
        ((dataclasses.replace(BIG, format="csv"),), "Comet reads Parquet, and the input is csv"),
        ((BIG, dataclasses.replace(BIG, format="text")), "the input is text"),
    ],
)
def test_what_does_not_pay_is_left_out_unless_asked_for(inputs: tuple[InputFacts, ...], said: str) -> None:
    known = facts(inputs=inputs)
    decision = plan_accelerator("auto", known, comet=COMET)
    assert decision.choice == "none"
    assert said in decision.reason
    assert plan_accelerator("comet", known, comet=COMET).choice == "comet"


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": "submit", "started_with": True},
        {"inputs": (InputFacts("input", "table", ("db.t",)),)},  # nobody knows its size
        {"inputs": ()},
        {"machine": machine(cpu_flags=frozenset())},  # nothing tells; the probe will
        {"machine": machine(system="linux-aarch64", cpu_flags=frozenset(["asimd"]))},
        {"time_zone": "Etc/UTC"},
        {"spark_version": "4.1.1"},
    ],
)
def test_it_is_taken(changes: dict[str, Any]) -> None:
    assert plan_accelerator("auto", facts(**changes), comet=COMET).choice == "comet"


def test_two_inputs_count_together() -> None:
    half = dataclasses.replace(BIG, size_bytes=WORTH_FROM_BYTES // 2)
    assert plan_accelerator("auto", facts(inputs=(half,)), comet=COMET).choice == "none"
    assert plan_accelerator("auto", facts(inputs=(half, half)), comet=COMET).choice == "comet"


def test_none_is_none() -> None:
    decision = plan_accelerator("none", facts(), comet=COMET)
    assert (decision.choice, decision.forced, decision.rejected) == ("none", True, ())


def test_the_jar_is_the_last_obstacle() -> None:
    decision = plan_accelerator("auto", facts(jar_problem="no network", time_zone="Asia/Tokyo"), comet=COMET)
    assert "Asia/Tokyo" in decision.reason


# 60 % of the memory (or 90 % of what is free), less 320 MiB for the JVM and 128 MiB for each Python worker,
# is for data: the heap as asked or a third of it (at least 640 MiB), and the rest / 1.15.
@pytest.mark.parametrize(
    ("memory", "free", "cores", "heap", "expected"),
    [
        # 9.6 GiB: 9830.4 - 320 - 1024 = 8486.4; 8486.4 - 1024 = 7462.4; / 1.15 = 6489.04
        (16, 16, 8, 1024, Memory(1024 * MIB, 6489 * MIB)),
        # 1843.2 - 320 - 256 = 1267.2; heap 640 (a third is less); 627.2 / 1.15 = 545.4
        (3, 3, 2, 2048, Memory(640 * MIB, 545 * MIB)),
        # 6 GiB free: 5529.6 - 320 - 512 = 4697.6; a third is 1565.87; 3131.7 / 1.15 = 2723.2
        (16, 6, 4, 4096, Memory(1565 * MIB, 2723 * MIB)),
        # much of it: at most 4 GiB per core
        (256, 250, 2, 1024, Memory(1024 * MIB, 8192 * MIB)),
    ],
)
def test_memory_is_shared_out(memory: int, free: int, cores: int, heap: int, expected: Memory) -> None:
    there = Machine(memory * GIB, free * GIB, cores, "linux-x86_64", V3)
    assert share_memory(facts(there, heap_bytes=heap * MIB)) == expected


@pytest.mark.parametrize("memory", [3, 4, 6, 8, 12, 16, 24, 32, 64, 128])
@pytest.mark.parametrize("cores", [1, 2, 4, 8])
def test_all_of_it_fits_into_three_fifths(memory: int, cores: int) -> None:
    shared = share_memory(
        facts(Machine(memory * GIB, memory * GIB, cores, "linux-x86_64", V3), heap_bytes=2 * GIB)
    )
    if isinstance(shared, str):
        assert memory < 3 + cores / 2
        return
    total = shared.heap_bytes + shared.off_heap_bytes * 1.15 + 320 * MIB + cores * 128 * MIB
    assert total <= 0.6 * memory * GIB
    assert shared.off_heap_bytes >= 512 * MIB


def test_a_heap_that_the_user_named_stays() -> None:
    shared = share_memory(facts(heap_bytes=4 * GIB, heap_is_fixed=True))
    assert isinstance(shared, Memory)
    assert shared.heap_bytes == 4 * GIB


def test_unknown_accelerators_are_named() -> None:
    with pytest.raises(UnknownNameError, match="comet"):
        accelerator("comit")
