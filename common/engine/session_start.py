"""A session that starts while a signal comes: its JVM goes with it, and the signal stays what it is."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from subprocess import Popen
from types import SimpleNamespace
from typing import Any


@contextmanager
def starting() -> Iterator[None]:
    """Within: PySpark starts a JVM and a session.

    Its own handler of SIGINT is left out: that asks the JVM to cancel, also in the middle of another call,
    which then fails some other way. And a JVM whose start was interrupted before PySpark knew its address
    would stay for ever, waiting for calls: it is killed.
    """
    started: list[Popen[Any]] = []

    class Recorded(Popen[Any]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            started.append(self)
            super().__init__(*args, **kwargs)

    without = SimpleNamespace(SIGINT=signal.SIGINT, signal=lambda *_: None)
    with (
        _instead("pyspark.core.context", "signal", without),
        _instead("pyspark.java_gateway", "Popen", Recorded),
    ):
        try:
            yield
        except KeyboardInterrupt:
            for process in started:
                if getattr(process, "pid", None) is not None:  # interrupted before there was a process
                    process.kill()
            raise


@contextmanager
def _instead(module_name: str, name: str, value: object) -> Iterator[None]:
    with ExitStack() as stack:
        module: Any = sys.modules[module_name]
        stack.callback(setattr, module, name, getattr(module, name))
        setattr(module, name, value)
        yield
