from __future__ import annotations

import itertools
import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from common.core.errors import ParameterError
from common.engine.stage_metrics import StageTasks
from common.runs import levels as levels_module
from common.runs.levels import KEPT_STAGES, stages_recorded
from common.runs.record import RunRecord, load_record
from common.tuning.levelness import Spread, StageRun, replayed_seconds, spread, stage_levels, waves


@pytest.mark.parametrize(
    ("tasks", "cores", "longest_first", "best"),
    [
        # Graham (1969): the worst cases of longest-first, at 4/3 - 1/(3 cores) of the best.
        ([3, 3, 2, 2, 2], 2, 7, 6),
        ([5, 5, 4, 4, 3, 3, 3], 3, 11, 9),
        ([7, 7, 6, 6, 5, 5, 4, 4, 4], 4, 15, 12),
    ],
)
def test_the_worst_cases_of_longest_first(
    tasks: list[float], cores: int, longest_first: float, best: float
) -> None:
    assert replayed_seconds([tasks], cores) == longest_first
    assert longest_first / best == pytest.approx(4 / 3 - 1 / (3 * cores))


def best_by_trying_all(tasks: tuple[int, ...], cores: int) -> int:
    def wall(places: tuple[int, ...]) -> int:
        return max(
            sum(it for it, at in zip(tasks, places, strict=True) if at == core) for core in range(cores)
        )

    return min(wall(places) for places in itertools.product(range(cores), repeat=len(tasks)))


def test_between_the_best_and_its_bound() -> None:
    for tasks in itertools.combinations_with_replacement((1, 2, 3, 5, 8), 5):
        for cores in (2, 3):
            best = best_by_trying_all(tasks, cores)
            wall = replayed_seconds([tasks], cores)
            assert best <= wall
            assert 3 * cores * wall <= (4 * cores - 1) * best


def test_stages_follow_each_other_whatever_the_order_of_tasks() -> None:
    assert replayed_seconds([[1, 9, 1], [4], [], [2, 2, 2, 2]], 2) == 9 + 4 + 0 + 4
    assert replayed_seconds([[9, 1, 1], [4], [], [2, 2, 2, 2]], 1_000) == 9 + 4 + 0 + 2
    assert replayed_seconds([[0.25] * 8], 3) == 0.75
    assert replayed_seconds([], 4) == replayed_seconds([[]], 4) == 0


@pytest.mark.parametrize("cores", [0, -2])
def test_no_cores_are_refused(cores: int) -> None:
    with pytest.raises(ParameterError, match=f"`cores`: expected at least 1, got {cores}"):
        replayed_seconds([[1.0]], cores)


def test_stages_that_overlap_are_one_wave() -> None:
    # Two sides of a join run at once; a third stage begins when the second has ended, before the first has.
    left, right = StageRun(0.0, 9.0, [4.0, 5.0]), StageRun(0.5, 2.0, [1.0])
    after_right = StageRun(2.0, 4.0, [7.0])
    last = StageRun(9.0, 10.0, [8.0])
    assert waves([last, after_right, right, left]) == [[4.0, 5.0, 1.0], [7.0], [8.0]]
    # Two cores end 4 + 1 and 5 at 5.0; then 7, then 8.
    assert replayed_seconds(waves([left, right, after_right, last]), 2) == 5.0 + 7.0 + 8.0
    untold = StageRun(3.0, None, [2.0])
    assert waves([untold, right, StageRun(None, 7.0, [3.0])]) == [[1.0], [2.0], [3.0]]
    assert waves([]) == []


def test_spreads() -> None:
    assert spread([3.0]) == Spread(3.0, 3.0, 3.0, 3.0, 3.0)
    assert spread([4, 1, 3, 2]) == Spread(1, 2.5, 4, 4, 10)
    # The nearest rank: of 20 the 19th, of 21 the 20th.
    assert (spread(range(1, 21)).p95, spread(range(1, 22)).p95) == (19, 20)


def test_ratios() -> None:
    assert stage_levels(1, [2.0, 2.0, 2.0]).max_to_median_ratio == 1
    assert stage_levels(1, [1.0, 2.0, 31.0]).max_to_median_ratio == 15.5
    assert stage_levels(1, [0.0, 0.0, 0.0]).max_to_median_ratio == 1
    assert stage_levels(1, [0.0, 0.0, 0.5]).max_to_median_ratio == 500  # below a millisecond is one
    assert stage_levels(1, []).max_to_median_ratio == 1


@pytest.mark.parametrize(
    ("seconds", "uneven"),
    [
        ([1.0] * 7 + [5.0], True),
        ([1.0] * 6 + [5.0], False),  # few tasks
        ([1.0] * 7 + [4.9], False),  # neither five times nor five seconds
        ([2.0] * 7 + [9.9], False),  # not five times
        ([0.1] * 7 + [4.9], False),  # not five seconds
        ([], False),
    ],
)
def test_what_is_worth_a_word(seconds: list[float], uneven: bool) -> None:
    assert stage_levels(1, seconds).is_uneven is uneven


def stage(number: int, seconds: tuple[float, ...], **other: Any) -> StageTasks:
    values: dict[str, Any] = {
        "attempt": 0, "name": "skew-join: shuffle", "task_count": len(seconds), "failed_tasks": 0,
        "shuffle_read_bytes": tuple(100 * int(it) for it in seconds),
        "shuffle_read_rows": (1,) * len(seconds),
        "shuffle_write_bytes": 7, "input_bytes": 11, "spilled_bytes": 13, "cpu_seconds": 1.0, **other,
    }  # fmt: skip
    return StageTasks(stage_id=number, task_seconds=seconds, **values)


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    return RunRecord.start("skew-join", runs_dir=tmp_path)


def recorded(
    record: RunRecord, stages: tuple[StageTasks, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    monkeypatch.setattr(levels_module, "stage_mark", lambda _spark: 4)
    monkeypatch.setattr(levels_module, "stages_since", lambda _spark, mark: stages if mark == 4 else ())
    with stages_recorded(SimpleNamespace(kind="classic", spark=None), record):  # type: ignore[arg-type]
        pass
    return load_record(record.finish())


def test_the_record_tells_each_stage_and_one_line_the_worst(
    record: RunRecord, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stages = (
        stage(3, (1.0, 3.0)),
        stage(4, (2.0,) * 9 + (31.0,), failed_tasks=2, attempt=1),
        stage(7, (1.0,) * 9 + (12.0,)),
    )
    with caplog.at_level(logging.INFO, "saltpan.run"):
        content = recorded(record, stages, monkeypatch)
    assert [it.getMessage() for it in caplog.records] == [
        "stage 4 (skew-join: shuffle, 10 tasks): the longest task took 31.0 s, the median 2.0 s: "
        "one key may hold too many rows [K3-K8]"
    ]
    assert content["stages"][1] == {
        "stage": 4,
        "attempt": 1,
        "name": "skew-join: shuffle",
        "tasks": 10,
        "failed_tasks": 2,
        "seconds": {"min": 2.0, "median": 2.0, "p95": 31.0, "max": 31.0, "total": 49.0},
        "shuffle_bytes": {"min": 200, "median": 200, "p95": 3100, "max": 3100, "total": 4900},
        "max_to_median_ratio": 15.5,
        "input_bytes": 11,
        "shuffle_write_bytes": 7,
        "spilled_bytes": 13,
    }
    assert [it["stage"] for it in content["stages"]] == [3, 4, 7]
    # On two cores 3 + 31 + 12, on sixteen as well: one task is all that each stage waits for.
    assert content["replayed_seconds"] == {"2": 46.0, "16": 46.0, "100": 46.0}
    assert content["stages_missing"] is None


def test_level_stages_are_told_to_who_asks_only(
    record: RunRecord, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "saltpan.run"):
        recorded(record, (stage(1, (4.0,) * 40), stage(2, (1.0,))), monkeypatch)
    assert {it.levelno for it in caplog.records} == {logging.DEBUG}
    assert [it.getMessage() for it in caplog.records] == [
        "stage 1 (skew-join: shuffle, 40 tasks): the longest task took 4.0 s, the median 4.0 s",
        # 40 tasks of 4 s: 20 rounds, then 3, then 1; and 1 s for the second stage.
        "2 stages; their tasks replayed: 81.0 s on 2, 13.0 s on 16, 5.0 s on 100 cores",
    ]


def test_of_many_stages_those_with_most_work_are_kept(
    record: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = tuple(stage(number, (float(number % 60),)) for number in range(60))
    content = recorded(record, stages, monkeypatch)
    assert [it["stage"] for it in content["stages"]] == list(range(60 - KEPT_STAGES, 60))
    assert content["replayed_seconds"]["2"] == sum(range(60)), "all stages count"
    assert len(json.dumps(content["stages"])) < 25_000


def test_without_evidence_the_record_says_why(record: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    content = recorded(record, None, monkeypatch)
    assert (content["stages"], content["replayed_seconds"]) == ([], {})
    assert content["stages_missing"] == "Spark did not tell; --debug says why"


def test_connect_has_no_evidence(record: RunRecord) -> None:
    with stages_recorded(SimpleNamespace(kind="connect", spark=None), record):  # type: ignore[arg-type]
        pass
    assert load_record(record.finish())["stages_missing"] == "not available on connect"


def test_a_failure_passes_through(record: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels_module, "stage_mark", lambda _spark: 4)
    engine: Any = SimpleNamespace(kind="classic", spark=None)
    with pytest.raises(ZeroDivisionError), stages_recorded(engine, record):
        raise ZeroDivisionError
    assert (record.stages, record.stages_missing) == ([], None)
