"""Progress as text, and the poller against a tracker made of data."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from common.engine import progress
from common.engine.progress import Stage, describe, reporting


@pytest.mark.parametrize(
    ("stages", "seconds", "text"),
    [
        ([], 1, ""),
        ([Stage(0, 0, True)], 1, ""),
        ([Stage(365, 120, True)], 12.9, "stage 1 of 1 · 120 of 365 tasks (32 %) · 12 s"),
        (
            [Stage(10, 10, False), Stage(20, 0, False), Stage(30, 5, True)],
            61,
            "stage 2 of 3 · 15 of 60 tasks (25 %) · 1 min 1 s",
        ),
        ([Stage(4, 4, False), Stage(4, 4, True)], 3, "stage 2 of 2 · 8 of 8 tasks (99 %) · 3 s"),
        ([Stage(4, 6, True)], 3, "stage 1 of 1 · 4 of 4 tasks (99 %) · 3 s"),  # speculative copies
    ],
)
def test_the_line(stages: list[Stage], seconds: float, text: str) -> None:
    assert describe(stages, seconds=seconds) == text


class Tracker:
    """A status tracker whose answers are given."""

    def __init__(
        self, jobs: dict[int, list[int]], stages: dict[int, tuple[int, int]], active: list[int]
    ) -> None:
        self._jobs, self._stages, self._active = jobs, stages, active

    def getActiveStageIds(self) -> list[int]:  # noqa: N802
        return self._active

    def getActiveJobsIds(self) -> list[int]:  # noqa: N802
        return list(self._jobs)

    def getJobInfo(self, job: int) -> Any:  # noqa: N802
        return SimpleNamespace(stageIds=self._jobs[job])

    def getStageInfo(self, stage: int) -> Any:  # noqa: N802
        if stage not in self._stages:
            return None
        tasks, done = self._stages[stage]
        return SimpleNamespace(numTasks=tasks, numCompletedTasks=done)


def session(tracker: object) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))


def first_line(tracker: object, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    told = threading.Event()
    lines: list[str] = []

    def update(text: str) -> None:
        lines.append(text)
        told.set()

    with reporting(session(tracker), update):
        told.wait(10)
    return lines[0]


def test_stages_of_all_running_jobs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = Tracker({7: [3, 4], 8: [5]}, {3: (10, 10), 4: (6, 1), 5: (4, 0)}, [4, 5])
    assert first_line(tracker, monkeypatch).startswith("stage 2 of 3 · 11 of 20 tasks (55 %) · ")


def test_skipped_and_forgotten_stages_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    # 3 was made by an earlier job, 5 is unknown to the tracker, 6 waits for 4.
    tracker = Tracker({7: [3, 4, 5, 6]}, {3: (100, 0), 4: (8, 2), 6: (2, 0)}, [4])
    assert first_line(tracker, monkeypatch).startswith("stage 1 of 2 · 2 of 10 tasks (20 %) · ")


def test_a_tracker_that_fails_ends_the_telling_not_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    asked = threading.Event()

    def fail() -> None:
        asked.set()
        raise ConnectionRefusedError

    broken = cast("Any", SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=fail)))
    with reporting(broken, lambda text: None):
        assert asked.wait(10)
    assert not [thread for thread in threading.enumerate() if thread.name == "spark-progress"]


def test_an_error_of_the_job_passes_and_ends_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    with pytest.raises(KeyError), reporting(session(Tracker({}, {}, [])), lambda text: None):
        raise KeyError("job")
    assert not [thread for thread in threading.enumerate() if thread.name == "spark-progress"]


def test_on_connect_the_server_tells() -> None:
    handlers: list[Any] = []

    class Session:
        __module__ = "pyspark.sql.connect.session"

        def registerProgressHandler(self, handler: Any) -> None:  # noqa: N802
            handlers.append(handler)

        def removeProgressHandler(self, handler: Any) -> None:  # noqa: N802
            handlers.remove(handler)

    lines: list[str] = []
    stage = SimpleNamespace(num_tasks=8, num_completed_tasks=2, done=False)
    with reporting(cast("Any", Session()), lines.append):
        handlers[0](stages=[stage], inflight_tasks=1, operation_id="a", done=False)
        handlers[0](stages=None, inflight_tasks=0, operation_id="a", done=False)
        handlers[0](stages=[stage], inflight_tasks=0, operation_id="a", done=True)
    assert lines == ["stage 1 of 1 · 2 of 8 tasks (25 %) · 0 s"]
    assert handlers == []


def test_a_callback_that_fails_does_not_reach_the_query() -> None:
    handlers: list[Any] = []

    class Session:
        __module__ = "pyspark.sql.connect.session"
        registerProgressHandler = staticmethod(handlers.append)  # noqa: N815
        removeProgressHandler = staticmethod(handlers.remove)  # noqa: N815

    def update(text: str) -> None:
        raise BrokenPipeError

    with reporting(cast("Any", Session()), update):
        stage = SimpleNamespace(num_tasks=8, num_completed_tasks=2, done=False)
        assert handlers[0](stages=[stage], inflight_tasks=1, operation_id="a", done=False) is None
