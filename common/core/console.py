"""The only place that prints: tables, CSV and JSON lines to stdout, words and progress to stderr."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal

from common.core.masking import mask_text
from common.core.progress import CONTROLS, CONTROLS_OF_TEXT, above_progress, encoding_of, write, write_line
from common.core.values import json_value, unique_names, value_text

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

WIDTH: Final = 120  # of what is not a terminal
_BAR_WIDTH = range(10, 30)
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    measures: Sequence[str] = (),
    title: str | None = None,
    caption: str | None = None,
) -> None:
    """Print rows as a table; when stdout is no terminal, without colour, wrapping or cutting.

    Args:
        columns: The column names.
        rows: Values as PySpark's Row gives them.
        measures: Columns that count or add up: integers get thousand separators, the first numeric one a bar.
        title: A line above.
        caption: A line below.
    """
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((WIDTH, 24)).columns if terminal else WIDTH
    table = _table(columns, [tuple(row) for row in rows], measures=measures, width=width, terminal=terminal)
    _print(_render(table, title=title, caption=caption, width=width, terminal=terminal))


def print_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    r"""Print rows as CSV: quoting of RFC 4180, a header, UTF-8, lines that end in \n as Unix tools expect.

    NULL is an empty field, the empty string is `""`.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and encoding_of(sys.stdout) != "utf-8":
        sys.stdout.reconfigure(encoding="utf-8")  # CSV has no escapes for what the locale cannot write
    lines = itertools.chain([columns], rows)
    _print("".join(",".join(_csv_field(value) for value in line) + "\n" for line in lines))


def print_json(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print one JSON object a line, see `json_value`; a repeated column name gets _2, _3, …"""
    names = unique_names(columns)
    ascii_only = encoding_of(sys.stdout) != "utf-8"
    _print(
        "".join(
            json.dumps(
                {name: json_value(value) for name, value in zip(names, row, strict=True)},
                ensure_ascii=ascii_only,
                allow_nan=False,
            )
            + "\n"
            for row in rows
        )
    )


def print_text(text: str) -> None:
    """Print words that are a command's answer (a plan, a help page) to stdout, secrets masked."""
    _print(mask_text(text).translate(CONTROLS_OF_TEXT) + "\n")


def say(text: str) -> None:
    """Print one line for the user on stderr, secrets masked."""
    write_line(mask_text(text), stream=sys.stderr)


@contextlib.contextmanager
def quiet_pipe() -> Iterator[None]:
    """Let a reader of stdout that stops early (`| head`) end the output, not the run.

    Wrap writes to stdout only: a broken pipe to an engine is another matter.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        # The interpreter flushes stdout once more at exit; that must not fail either.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    text = value_text(value)
    if text == "" or any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _is_finite(value: float | Decimal) -> bool:
    """As math.isfinite, which takes an int or a Decimal beyond the largest float for infinite."""
    return value.is_finite() if isinstance(value, Decimal) else isinstance(value, int) or math.isfinite(value)


def _is_numeric(values: Sequence[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(_is_number(value) for value in present)


def _table(
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    *,
    measures: Sequence[str],
    width: int,
    terminal: bool,
) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    headers = [Text(_seen(name), "bold") for name in columns]
    values = [[row[i] for row in rows] for i in range(len(columns))]
    cells = [
        [_cell(value, thousands=name in measures) for value in column]
        for name, column in zip(columns, values, strict=True)
    ]
    table = Table(box=box.SIMPLE_HEAD if _can_show("─") else box.ASCII2, show_edge=False, pad_edge=False)
    for header, column in zip(headers, values, strict=True):
        numeric = _is_numeric(column)
        justify: Literal["right", "left"] = "right" if numeric else "left"
        table.add_column(header, justify=justify, no_wrap=numeric or not terminal, overflow="fold")
    used = sum(
        max(text.cell_len for text in (header, *column)) + 3
        for header, column in zip(headers, cells, strict=True)
    )
    bar_width = _bar_width(width - used, terminal=terminal)
    measured = [values[columns.index(name)] for name in measures if name in columns]
    measure = next((column for column in measured if _is_numeric(column)), None)
    if measure is not None and bar_width:
        table.add_column("", no_wrap=True)
        cells.append(_bars(measure, bar_width))
    for line in zip(*cells, strict=True):
        table.add_row(*line)
    return table


def _cell(value: Any, *, thousands: bool) -> Text:
    from rich.text import Text

    if value is None:
        return Text("NULL", "dim")
    if thousands and isinstance(value, int) and not isinstance(value, bool):
        return Text(f"{value:,}")
    text = value.isoformat(sep=" ") if isinstance(value, datetime) else value_text(value)
    return Text(_seen(text))


def _bar_width(room: int, *, terminal: bool) -> int:
    """Cells for the bar; where lines may be as long as they like it is never left out."""
    if room < _BAR_WIDTH.start:
        return 0 if terminal else _BAR_WIDTH.start
    return min(room, _BAR_WIDTH.stop)


def _bars(values: Sequence[Any], width: int) -> list[Text]:
    from rich.text import Text

    # Fractions, since an int or a Decimal may be larger than any float.
    sizes = [Fraction(value) if _is_number(value) and _is_finite(value) else None for value in values]
    largest = max((size for size in sizes if size is not None), default=Fraction(0))
    blocks = _can_show(_EIGHTHS)
    bars = []
    for value, size in zip(values, sizes, strict=True):
        share = size / largest if size is not None and largest > 0 else Fraction(0)
        if value == math.inf:
            share = Fraction(1)
        eighths = max(round(share * width * 8), 1) if share > 0 else 0
        if blocks:
            bar = _EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
        else:
            bar = "#" * -(-eighths // 8)
        bars.append(Text(bar, "cyan"))
    return bars


def _seen(text: str) -> str:
    """The text on one line, in characters that stdout has, so that the columns stay straight."""
    return (
        text.translate(CONTROLS)
        .encode(encoding_of(sys.stdout), "backslashreplace")
        .decode(encoding_of(sys.stdout))
    )


def _can_show(text: str) -> bool:
    try:
        text.encode(encoding_of(sys.stdout))
    except UnicodeEncodeError:
        return False
    return True


def _render(table: Table, *, title: str | None, caption: str | None, width: int, terminal: bool) -> str:
    """The table as text. Rich never gets stdout itself: it answers a broken pipe with exit code 1."""
    from rich.console import Console
    from rich.text import Text

    coloured = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        force_terminal=terminal,
        color_system="auto" if coloured else None,
        width=width if terminal else sys.maxsize,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    if title:
        console.print(Text(title, "bold"), soft_wrap=True)
    if table.columns:
        console.print(table)
    if caption:
        console.print(Text(caption, "dim"), soft_wrap=True)
    text = buffer.getvalue()
    return text if terminal else "".join(f"{line.rstrip(' ')}\n" for line in text.splitlines())


def _print(text: str) -> None:
    with above_progress(), quiet_pipe():
        write(sys.stdout, text)
