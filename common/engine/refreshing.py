"""A value for long-lived drivers that is loaded again when it is old or its source has changed.

For a streaming query's foreachBatch, or a loop of batches: each batch holds one version from its beginning to
its end, the next one may get a newer. Guidelines B1, B4.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from pyspark import Broadcast
from pyspark.sql import SparkSession

from common.core.errors import EngineError, ParameterError, SuiteError

REQUIRES = frozenset({"classic", "broadcast_variable"})

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_LOG = logging.getLogger("saltpan.engine")


class Held(Protocol[T_co]):
    """What a version is kept in: Spark's `Broadcast`, or another thing with a value and an end."""

    @property
    def value(self) -> T_co:
        """The loaded value."""

    def destroy(self) -> None:
        """Let it go, here and on all executors."""


@dataclass(frozen=True)
class Version(Generic[T]):
    """One load of the source.

    Attributes:
        number: 1 for the first; loads that failed have none.
        held: To be used in tasks: `version.held.value`.
        fingerprint: The source's before it was loaded.
        loaded_at_seconds: By the clock of the RefreshingBroadcast.
    """

    number: int
    held: Held[T]
    fingerprint: Hashable
    loaded_at_seconds: float


@dataclass(frozen=True)
class RefreshState:
    """How a RefreshingBroadcast stands.

    Attributes:
        version: The number being served; 0 before the first load.
        age_seconds: Since it was loaded.
        loads: Loads that went well.
        failures: Loads, or looks at the source, that failed.
        failing_since: Failures since the last one that went well; above 0 the version may be out of date.
        problem: What the last of these said.
        waiting: Older versions that a batch still holds.
    """

    version: int = 0
    age_seconds: float = 0.0
    loads: int = 0
    failures: int = 0
    failing_since: int = 0
    problem: str | None = None
    waiting: int = 0

    @property
    def is_stale(self) -> bool:
        """True when the last try to look or to load failed, and an older version is served."""
        return self.failing_since > 0


class RefreshingBroadcast(Generic[T]):
    """Serves the newest version of a source that could be loaded, one to each batch.

    A version is destroyed once it has been replaced and no batch holds it. While a reload fails the one
    before it stays, with a warning and in `state`; it is tried again `retry_seconds` later. Threads may share
    it: one loads, the others go on with what is there.

    Args:
        load: Gives the value: a table, a dict, anything that can be pickled. Called in the driver.
        hold: Puts it where tasks find it: `broadcasting(spark)`.
        fingerprint: Something cheap that is another when the source has changed: names, sizes, times.
        max_age_seconds: Load again when a version is this old; None never does for its age.
        retry_seconds: After a failure, how long to leave the source alone.
        name: For messages.
        clock: Seconds that only go up.

    Raises:
        ParameterError: neither a fingerprint nor an age; a time that is negative.
    """

    def __init__(
        self,
        load: Callable[[], T],
        hold: Callable[[T], Held[T]],
        *,
        fingerprint: Callable[[], Hashable] | None = None,
        max_age_seconds: float | None = None,
        retry_seconds: float = 0.0,
        name: str = "dimension",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if fingerprint is None and max_age_seconds is None:
            expected = "a fingerprint, an age, or both"
            raise ParameterError("refreshing broadcast", name, expected=expected, got="neither")
        if min(max_age_seconds or 0.0, retry_seconds) < 0:
            got = f"max_age_seconds={max_age_seconds}, retry_seconds={retry_seconds}"
            raise ParameterError("refreshing broadcast", name, expected="seconds, 0 or more", got=got)
        self._load, self._hold, self._fingerprint = load, hold, fingerprint
        self._max_age_seconds, self._retry_seconds = max_age_seconds, retry_seconds
        self._name, self._clock = name, clock
        self._lock = threading.Lock()  # guards what follows; never held while loading
        self._loading = threading.Lock()
        self._current: Version[T] | None = None
        self._users: dict[int, int] = {}
        self._replaced: dict[int, Version[T]] = {}
        self._state = RefreshState()
        self._retry_at_seconds: float | None = None
        self._closed = False

    @property
    def state(self) -> RefreshState:
        """How it stands now."""
        with self._lock:
            age = self._clock() - self._current.loaded_at_seconds if self._current else 0.0
            return replace(self._state, age_seconds=age, waiting=len(self._replaced))

    @contextmanager
    def batch(self) -> Iterator[Version[T]]:
        """One version, for as long as the block lasts; a reload that is due happens before.

        What uses the version must have run at the end of the block: a DataFrame is lazy, its action belongs
        inside.

        Raises:
            EngineError: closed; or the first load failed, whose error is its cause. A SuiteError of the
                loader passes as it is.
        """
        self.refresh()
        with self._lock:
            version = self._serving()
            self._users[version.number] = self._users.get(version.number, 0) + 1
        try:
            yield version
        finally:
            self._leave(version)

    def refresh(self) -> bool:
        """Load when it is due; True when a new version is served. `batch` does so by itself.

        Raises:
            EngineError, SuiteError: as `batch`.
        """
        if self._current is None:
            with self._loading:  # there is nothing to go on with; another may have loaded meanwhile
                return self._try()
        if not self._loading.acquire(blocking=False):
            return False
        try:
            return self._try()
        finally:
            self._loading.release()

    def close(self) -> None:
        """Destroy what no batch holds now, and the rest when its batch ends. May be called again."""
        with self._lock:
            self._closed = True
            if self._current is not None:
                self._replaced[self._current.number] = self._current
                self._current = None
        self._destroy_unused()

    def _serving(self) -> Version[T]:
        if self._current is None:
            got = "closed" if self._closed else "nothing loaded"
            raise EngineError("refreshing broadcast", self._name, expected="a version to serve", got=got)
        return self._current

    def _try(self) -> bool:
        """Look and load, with `_loading` held; a failure is an error only while there is no version."""
        with self._lock:
            current, retry_at = self._current, self._retry_at_seconds
            if self._closed:
                return False
        now = self._clock()
        if retry_at is not None and current is not None and now < retry_at:
            return False
        try:
            # Before the load: what changes meanwhile is loaded next time.
            fingerprint = self._fingerprint() if self._fingerprint else None
            if current is not None and not self._is_due(current, fingerprint, now):
                self._note_fine()
                return False
            held = self._hold(self._load())
        except Exception as error:
            self._note_failure(error, current)
            if current is not None:
                return False
            if isinstance(error, SuiteError):
                raise
            got = f"{type(error).__name__}: {error}"
            raise EngineError(
                "refreshing broadcast", self._name, expected="a first version", got=got
            ) from error
        self._swap(held, fingerprint)
        return True

    def _is_due(self, current: Version[T], fingerprint: Hashable, now: float) -> bool:
        too_old = (
            self._max_age_seconds is not None and now - current.loaded_at_seconds >= self._max_age_seconds
        )
        return too_old or fingerprint != current.fingerprint

    def _swap(self, held: Held[T], fingerprint: Hashable) -> None:
        with self._lock:
            number = self._state.loads + 1
            version = Version(number, held, fingerprint, self._clock())
            before = self._current
            if before is not None:
                self._replaced[before.number] = before
            if self._closed:
                self._replaced[number] = version
            else:
                self._current = version
            self._state = replace(self._state, version=number, loads=number, failing_since=0, problem=None)
            self._retry_at_seconds = None
        _LOG.info("%s: version %d is loaded", self._name, number)
        self._destroy_unused()

    def _note_fine(self) -> None:
        with self._lock:
            self._state = replace(self._state, failing_since=0, problem=None)
            self._retry_at_seconds = None

    def _note_failure(self, error: Exception, current: Version[T] | None) -> None:
        problem = f"{type(error).__name__}: {error}"
        with self._lock:
            state = self._state
            self._state = replace(
                state, failures=state.failures + 1, failing_since=state.failing_since + 1, problem=problem
            )
            self._retry_at_seconds = self._clock() + self._retry_seconds
        if current is not None:
            age = self._clock() - current.loaded_at_seconds
            served = f"version {current.number} stays, {age:,.0f} s old"
            _LOG.warning("%s: not reloaded, %s (%s)", self._name, served, problem)

    def _leave(self, version: Version[T]) -> None:
        with self._lock:
            self._users[version.number] -= 1
            if not self._users[version.number]:
                del self._users[version.number]
        self._destroy_unused()

    def _destroy_unused(self) -> None:
        with self._lock:
            unused = [number for number in self._replaced if number not in self._users]
            ended = [self._replaced.pop(number) for number in unused]
        for version in ended:
            try:
                version.held.destroy()
            except Exception as error:  # noqa: BLE001  a session that has ended took it along
                _LOG.warning("%s: version %d was not destroyed (%s)", self._name, version.number, error)
            else:
                _LOG.debug("%s: version %d is destroyed", self._name, version.number)


def broadcasting(spark: SparkSession) -> Callable[[Any], Broadcast[Any]]:
    """What holds a version in a broadcast variable of a classic session."""
    return spark.sparkContext.broadcast
