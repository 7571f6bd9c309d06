"""What goes to stderr while work goes on: whole lines, and below them one line of progress."""

from __future__ import annotations

import codecs
import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import ClassVar, Final, Self, TextIO

from common.core.masking import mask_text

_LOCK = threading.RLock()
# A value must not move the cursor, start a new table line or colour the terminal.
CONTROLS: Final = {
    code: chr(code).encode("unicode_escape").decode()
    for code in (*range(32), *range(127, 160), 0x2028, 0x2029)
}
CONTROLS_OF_TEXT: Final = {code: seen for code, seen in CONTROLS.items() if chr(code) not in "\n\t"}


def write_line(text: str, *, stream: TextIO) -> None:
    """Write a line, masked already, to a log stream, above the progress line if there is one."""
    with above_progress(), contextlib.suppress(OSError, ValueError):  # stderr is gone: nobody left to tell
        write(stream, text.translate(CONTROLS_OF_TEXT) + "\n")
        stream.flush()


@contextlib.contextmanager
def above_progress() -> Iterator[None]:
    """Clear the progress line, let the caller write whole lines, draw it again."""
    with _LOCK:
        line = ProgressLine.shown
        if line:
            line.erase()
        try:
            yield
        finally:
            if line:
                line.draw()


class ProgressLine:
    """One line on stderr about long work; nothing in the first 3 seconds.

    On a terminal the line rewrites itself and is gone after `close`; elsewhere it is a new line at most
    every 10 s.

    Args:
        enabled: None means only on a terminal.
        stream: stderr when not given.
        clock: Seconds that only grow.
    """

    DELAY_SECONDS: ClassVar[float] = 3.0
    INTERVAL_SECONDS: ClassVar[float] = 10.0
    shown: ClassVar[ProgressLine | None] = None

    def __init__(
        self,
        *,
        enabled: bool | None = None,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._enabled = self._terminal if enabled is None else enabled
        self._clock = clock
        self._started = clock()
        self._written: float | None = None
        self._text = ""
        self._drawn_width = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def update(self, text: str) -> None:
        """Say what is going on now."""
        with _LOCK:
            now = self._clock()
            if not self._enabled or now - self._started < self.DELAY_SECONDS:
                return
            self._text = mask_text(" ".join(text.split())).translate(CONTROLS)
            if self._terminal:
                if ProgressLine.shown and ProgressLine.shown is not self:
                    ProgressLine.shown.erase()
                ProgressLine.shown = self
                self.draw()
            elif self._written is None or now - self._written >= self.INTERVAL_SECONDS:
                self._written = now
                write_line(self._text, stream=self._stream)

    def close(self) -> None:
        """Clear the line; later updates show nothing."""
        with _LOCK:
            self._enabled = False
            self.erase()
            if ProgressLine.shown is self:
                ProgressLine.shown = None

    def draw(self) -> None:
        """Write the line over itself."""
        from rich.cells import cell_len, set_cell_size

        room = shutil.get_terminal_size().columns - 1  # a full line would wrap and no longer be one line
        text = set_cell_size(self._text, room) if cell_len(self._text) > room else self._text
        width = cell_len(text)
        self._put("\r" + text + " " * (self._drawn_width - width))
        self._drawn_width = width

    def erase(self) -> None:
        """Blank the line and go back to its start."""
        if self._drawn_width:
            self._put("\r" + " " * self._drawn_width + "\r")
            self._drawn_width = 0

    def _put(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # stderr is gone: the work goes on
            write(self._stream, text)
            self._stream.flush()


def write(stream: TextIO, text: str) -> None:
    """Write text; what the stream's encoding does not have becomes its backslash form."""
    try:
        stream.write(text)
    except UnicodeEncodeError:
        stream.write(text.encode(encoding_of(stream), "backslashreplace").decode(encoding_of(stream)))


def encoding_of(stream: TextIO) -> str:
    """The Python name of the encoding that the stream writes."""
    return codecs.lookup(stream.encoding or "utf-8").name
