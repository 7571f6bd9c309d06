"""A dimension in a worker: found by hash and by key, mapped without a copy, refused before it is pickled."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from common.core.errors import EngineError, StrategyError
from common.engine import broadcast_tables
from common.engine.broadcast_tables import BroadcastTable, workers_per_executor
from common.transforms.lookup_table import HashTable, Layout, finder, mapped, opened, payload

NAN = float("nan")


class Variable:
    """As a broadcast variable is in a worker: a file with the pickle of its value."""

    def __init__(self, folder: Path, value: bytes) -> None:
        self._path = str(folder / "broadcast")
        Path(self._path).write_bytes(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


class Context:
    """Counts what is broadcast and destroyed; as Spark does, it fails the second time."""

    def __init__(self) -> None:
        self.broadcasts: list[bytes] = []
        self.destroyed = 0

    def broadcast(self, value: bytes) -> Any:
        self.broadcasts.append(value)
        return SimpleNamespace(destroy=self._destroy)

    def _destroy(self) -> None:
        self.destroyed += 1
        raise FileNotFoundError("the driver's file is gone")


def table(hashes: list[int], keys: list[Any], values: list[Any], kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"h": pa.array(hashes, pa.int64()), "q0": pa.array(keys, kind), "d0": values})


def found(rows: pa.Table, hashes: list[int | None], keys: list[Any], *, expands: bool = False) -> list[Any]:
    batch = mapped(SimpleNamespace(value=payload(rows)))
    layout = Layout(("q0",), ("d0",), expands)
    kind = rows.schema.field("q0").type
    answer = HashTable(batch, layout).find(pa.array(hashes, pa.int64()), pa.array(keys, kind))
    return list(answer.to_pylist())


def test_keys_of_one_hash_are_told_apart() -> None:
    rows = table([5, 5, 5, 7], ["a", "b", "c", "d"], [1, 2, None, 4])
    asked = found(rows, [5, 5, 7, 5, None, 6, 8, 5], ["b", "x", "d", "c", "a", "a", "d", "a"])
    assert asked == [{"d0": 2}, None, {"d0": 4}, {"d0": None}, None, None, None, {"d0": 1}]


def test_all_rows_of_a_key_are_found_and_no_others() -> None:
    rows = table([5, 5, 5, 7], ["a", "b", "a", "d"], [1, 2, 3, 4])
    asked = found(rows, [7, 5, None, 5, 4], ["d", "a", "a", "z", "d"], expands=True)
    assert asked == [[{"d0": 4}], [{"d0": 1}, {"d0": 3}], [], [], []]


@pytest.mark.parametrize("again", [[], [7]], ids=["once", "twice"])
def test_null_is_not_zero_where_the_hash_is_the_key(again: list[int]) -> None:
    numbers = [0, 7, -3, *again]
    rows = pa.table({"h": pa.array(numbers, pa.int64()), "d0": [f"d{n}" for n in numbers]})
    batch = mapped(SimpleNamespace(value=payload(rows)))
    asked = pa.array([None, 0, -3, 5], pa.int64())
    found = HashTable(batch, Layout((), ("d0",), expands=bool(again))).find(asked).to_pylist()
    expected = [None, {"d0": "d0"}, {"d0": "d-3"}, None]
    assert found == ([[row] if row else [] for row in expected] if again else expected)


def test_nan_is_nan_and_zero_has_no_sign() -> None:
    rows = table([1, 2], [0.0, NAN], ["zero", "nan"])
    assert found(rows, [1, 2, 1], [-0.0, NAN, NAN]) == [{"d0": "zero"}, {"d0": "nan"}, None]


@pytest.mark.parametrize("hashes", [[], [1, 2]])
def test_no_facts_and_no_dimension(hashes: list[int]) -> None:
    nothing = table([], [], pa.array([], pa.string()), pa.string())  # type: ignore[arg-type]
    assert found(nothing, hashes, ["a"] * len(hashes)) == [None] * len(hashes)


@pytest.mark.parametrize("count", [3, 100_000])
def test_a_large_table_is_mapped_where_it_lies(tmp_path: Path, count: int) -> None:
    rows = table(list(range(count, 0, -1)), [f"k{n}" for n in range(count)], list(range(count)))
    variable = Variable(tmp_path, payload(rows))
    before = pa.total_allocated_bytes()
    batch = mapped(variable)
    # Aligned for Arrow, and nothing but its bookkeeping is on the heap.
    assert all(buffer is None or buffer.address % 8 == 0 for buffer in batch.column(0).buffers())
    if count > 3:
        assert pa.total_allocated_bytes() - before < batch.nbytes / 10
    assert batch.column(0).to_pylist() == list(range(1, count + 1))
    assert batch.column(2).to_pylist() == list(reversed(range(count)))


def test_a_worker_decodes_a_variable_once(tmp_path: Path) -> None:
    variable = Variable(tmp_path, payload(table([1], ["a"], [1])))
    layout = Layout(("q0",), ("d0",))
    first = opened(variable, layout)
    Path(variable._path).unlink()
    assert opened(variable, layout) is first
    encrypted = SimpleNamespace(value=payload(table([1], ["a"], [2])))
    assert mapped(encrypted).column(2).to_pylist() == [2]


def test_d3_nothing_but_the_variable_goes_with_the_function() -> None:
    find = finder("the variable", Layout(("q0",), ("d0",)))
    closed = [cell.cell_contents for cell in find.__closure__ or ()]  # type: ignore[attr-defined]
    assert [value for value in closed if not isinstance(value, (str, Layout))] == []


def test_d4_a_large_table_is_refused_with_both_numbers_before_it_is_pickled() -> None:
    context = Context()
    rows = table(list(range(1000)), ["k"] * 1000, list(range(1000)))
    spark: Any = SimpleNamespace(sparkContext=context)
    with (
        patch.object(broadcast_tables, "payload", side_effect=AssertionError("pickled")),
        pytest.raises(StrategyError, match=r"KiB decoded in each of 4 workers .*, the limit is 10 KiB"),
    ):
        BroadcastTable(spark, rows, workers=4, max_bytes=10 * 1024)
    assert context.broadcasts == []
    BroadcastTable(spark, rows, workers=1, max_bytes=rows.nbytes)
    assert len(context.broadcasts) == 1


def test_d1_it_is_destroyed_once_and_says_so() -> None:
    context = Context()
    spark: Any = SimpleNamespace(sparkContext=context)
    with (
        pytest.raises(ZeroDivisionError),
        BroadcastTable(spark, table([1], ["a"], [1]), workers=1, max_bytes=1000) as made,
    ):
        assert made.variable
        raise ZeroDivisionError
    made.close()
    assert context.destroyed == 1
    with pytest.raises(EngineError, match="broadcast `variable`: expected one that still exists"):
        _ = made.variable


@pytest.mark.parametrize(
    ("master", "conf", "expected"),
    [
        ("local[2]", {}, 2),
        ("local[8]", {"spark.executor.cores": "3"}, 8),
        ("yarn", {"spark.executor.cores": "6", "spark.task.cpus": "2"}, 3),
        ("spark://host:7077", {}, 8),
    ],
)
def test_workers_of_one_executor(master: str, conf: dict[str, str], expected: int) -> None:
    context = SimpleNamespace(master=master, getConf=lambda: conf)
    spark: Any = SimpleNamespace(sparkContext=context)
    assert workers_per_executor(spark, core_count=2 if master == "local[2]" else 8) == expected
