"""SIGINT and SIGTERM become one exception in the main thread, so that every `with` block cleans up."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from common.core.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def install_handlers() -> None:
    """Make both signals raise `Interrupted`; called again after a session started, which sets its own."""
    for number in _SIGNALS:
        signal.signal(number, _interrupt)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    # What cleans up must not be interrupted by the same impatient key; a third press ends the process.
    for each in _SIGNALS:
        signal.signal(each, _second)
    raise Interrupted(number)


def _second(_number: int, _frame: FrameType | None) -> None:
    for each in _SIGNALS:
        signal.signal(each, _give_up)


def _give_up(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)


@contextmanager
def terminating_signals() -> Iterator[None]:
    """Within: both signals raise `Interrupted`. Afterwards the former handlers are back."""
    former = {number: signal.getsignal(number) for number in _SIGNALS}
    install_handlers()
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
