"""A storage that stops at one of its calls: what a process leaves that dies there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.engine.storage import LocalStorage


class StopsAtCall:
    """The local storage, until its k-th call.

    Args:
        call: The k.
        when: Stop "before" that call does anything, or "after" it has.
        stop: Ends the process, or raises; called at each later call too.
    """

    def __init__(self, call: int, when: str, stop: Callable[[], None]) -> None:
        self._left, self._when, self._stop, self._storage = call, when, stop, LocalStorage()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._storage, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self._left -= 1
            if self._left < 0 or (self._left == 0 and self._when == "before"):
                self._stop()
            try:
                return method(*args, **kwargs)
            finally:
                if self._left == 0:
                    self._stop()

        return counted
