"""Versions that are loaded, swapped and let go, with a clock and a holder of the test's own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from typing import Any

import pytest

from common.core.errors import DataError, EngineError, ParameterError
from common.engine.refreshing import RefreshingBroadcast


class Kept:
    """Stands in for Spark's Broadcast."""

    def __init__(self, value: Any) -> None:
        self.value, self.ends = value, 0

    def destroy(self) -> None:
        self.ends += 1


class Source:
    """A source whose content, fingerprint and faults the test sets; counts how often it is asked."""

    def __init__(self) -> None:
        self.content, self.mark, self.fault = "a", "1", ""
        self.loads = self.looks = 0
        self.seconds = 0.0
        self.kept: list[Kept] = []

    def load(self) -> str:
        self.loads += 1
        if self.fault:
            raise OSError(self.fault)
        return self.content

    def look(self) -> Hashable:
        self.looks += 1
        return self.mark

    def hold(self, value: str) -> Kept:
        self.kept.append(Kept(value))
        return self.kept[-1]

    def clock(self) -> float:
        return self.seconds

    def change(self, content: str) -> None:
        self.content, self.mark = content, content

    def refreshing(self, **asked: Any) -> RefreshingBroadcast[str]:
        return RefreshingBroadcast(self.load, self.hold, clock=self.clock, name="planes", **asked)


def served(refreshing: RefreshingBroadcast[str]) -> tuple[int, str]:
    with refreshing.batch() as version:
        return version.number, version.held.value


def test_it_loads_when_the_source_has_changed_and_only_then() -> None:
    source = Source()
    refreshing = source.refreshing(fingerprint=source.look)
    assert refreshing.state.version == 0
    assert source.loads == 0
    assert [served(refreshing), served(refreshing)] == [(1, "a"), (1, "a")]
    source.change("b")
    assert [served(refreshing), served(refreshing)] == [(2, "b"), (2, "b")]
    assert (source.loads, source.looks) == (2, 4)
    assert [kept.ends for kept in source.kept] == [1, 0]


def test_it_loads_when_it_is_old() -> None:
    source = Source()
    refreshing = source.refreshing(max_age_seconds=60)
    seen = []
    for source.seconds in (0, 59.9, 60, 119, 120):
        seen.append(served(refreshing)[0])
    assert seen == [1, 1, 2, 2, 3]
    source.seconds = 130
    assert refreshing.state.age_seconds == 10


def test_a_batch_keeps_its_version_and_the_last_one_to_leave_ends_it() -> None:
    source = Source()
    refreshing = source.refreshing(fingerprint=source.look)
    with refreshing.batch() as first, refreshing.batch() as also_first:
        source.change("b")
        with refreshing.batch() as second:
            assert (first.number, also_first.number, second.number) == (1, 1, 2)
            assert (first.held.value, second.held.value) == ("a", "b")
            assert refreshing.state.waiting == 1
        assert [kept.ends for kept in source.kept] == [0, 0]
    assert [kept.ends for kept in source.kept] == [1, 0]
    assert refreshing.state.waiting == 0


def test_a_batch_that_fails_leaves_its_version() -> None:
    source = Source()
    refreshing = source.refreshing(fingerprint=source.look)
    with pytest.raises(ZeroDivisionError), refreshing.batch():
        raise ZeroDivisionError
    source.change("b")
    served(refreshing)
    assert [kept.ends for kept in source.kept] == [1, 0]


def test_the_old_version_stays_while_reloads_fail_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    source = Source()
    refreshing = source.refreshing(fingerprint=source.look, retry_seconds=10)
    served(refreshing)
    source.change("b")
    source.fault, source.seconds = "no such host", 30
    with caplog.at_level(logging.WARNING, logger="saltpan.engine"):
        assert served(refreshing) == (1, "a")
    assert caplog.messages == ["planes: not reloaded, version 1 stays, 30 s old (OSError: no such host)"]
    state = refreshing.state
    assert (state.is_stale, state.failures, state.problem) == (True, 1, "OSError: no such host")
    source.seconds = 39  # too soon to try again
    assert served(refreshing) == (1, "a")
    assert source.loads == 2
    source.fault, source.seconds = "", 40
    assert served(refreshing) == (2, "b")
    state = refreshing.state
    assert (state.is_stale, state.failures, state.loads, state.problem) == (False, 1, 2, None)


def test_a_look_that_fails_is_a_failed_reload() -> None:
    source = Source()
    looking: list[Callable[[], Hashable]] = [source.look]

    def look() -> Hashable:
        return looking[-1]()

    refreshing = source.refreshing(fingerprint=look)
    served(refreshing)
    looking.append(lambda: 1 // 0)
    assert served(refreshing) == (1, "a")
    assert refreshing.state.is_stale
    looking.append(source.look)  # the same source again: nothing to load, nothing wrong any more
    assert served(refreshing) == (1, "a")
    assert not refreshing.state.is_stale
    assert source.loads == 1


def test_a_change_during_the_load_is_loaded_next_time() -> None:
    source = Source()

    def load() -> str:
        content = source.content
        if content == "a":
            source.change("b")
        return content

    refreshing = RefreshingBroadcast(load, source.hold, fingerprint=source.look)
    assert [served(refreshing), served(refreshing)] == [(1, "a"), (2, "b")]


def test_without_a_first_version_there_is_an_error_each_time() -> None:
    source = Source()
    refreshing = source.refreshing(fingerprint=source.look, retry_seconds=99)
    source.fault = "no such host"
    for _ in range(2):
        with pytest.raises(EngineError, match="expected a first version, got OSError: no such host") as told:
            served(refreshing)
        assert isinstance(told.value.__cause__, OSError)
    source.fault = ""
    assert served(refreshing) == (1, "a")

    def refused() -> str:
        raise DataError("input", "planes", expected="rows", got="none")

    with pytest.raises(DataError, match="DATA_INVALID"):
        served(RefreshingBroadcast(refused, source.hold, max_age_seconds=1))


def test_closing_ends_all_but_what_a_batch_holds_and_may_happen_twice() -> None:
    source = Source()
    refreshing = source.refreshing(fingerprint=source.look)
    with refreshing.batch() as version:
        refreshing.close()
        assert source.kept[0].ends == 0
        assert version.held.value == "a"
    refreshing.close()
    assert source.kept[0].ends == 1
    with pytest.raises(EngineError, match="got closed"):
        served(refreshing)
    assert source.loads == 1


def test_threads_go_on_with_the_old_version_while_one_loads() -> None:
    source = Source()
    begun, may_end = threading.Event(), threading.Event()

    def load() -> str:
        content = source.load()
        if content == "b":
            begun.set()
            assert may_end.wait(20)
        return content

    refreshing = RefreshingBroadcast(load, source.hold, fingerprint=source.look)
    served(refreshing)
    source.change("b")
    seen: list[tuple[int, str]] = []
    loader = threading.Thread(target=lambda: seen.append(served(refreshing)))
    loader.start()
    assert begun.wait(20)
    assert [served(refreshing) for _ in range(3)] == [(1, "a")] * 3
    may_end.set()
    loader.join(20)
    assert seen == [(2, "b")]
    assert source.loads == 2


def test_many_threads_never_see_an_ended_version() -> None:
    source = Source()
    refreshing = source.refreshing(fingerprint=source.look)
    wrong: list[str] = []

    def work(number: int) -> None:
        for step in range(200):
            if number == 0:
                source.change(str(step))
            with refreshing.batch() as version:
                kept: Any = version.held
                if kept.ends:
                    wrong.append(f"version {version.number} had ended")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    refreshing.close()
    assert wrong == []
    assert {kept.ends for kept in source.kept} == {1}


def test_it_wants_a_reason_to_reload() -> None:
    source = Source()
    with pytest.raises(ParameterError, match="a fingerprint, an age, or both, got neither"):
        source.refreshing()
    with pytest.raises(ParameterError, match="0 or more, got max_age_seconds=-1"):
        source.refreshing(max_age_seconds=-1)
