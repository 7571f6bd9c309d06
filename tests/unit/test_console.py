from __future__ import annotations

import base64
import csv
import io
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row

from common.core import console
from common.core.console import print_csv, print_json, print_table, print_text, say
from common.core.logs import configure_logs, logger
from common.core.progress import ProgressLine
from common.core.values import json_value, unique_names

ROOT = Path(__file__).parents[2]
Capture = pytest.CaptureFixture[str]


class Terminal(io.StringIO):
    """A stream that says it is a terminal, and shows what a reader would see on it."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        rows, column = [""], 0
        for character in self.getvalue():
            if character == "\r":
                column = 0
            elif character == "\n":
                rows.append("")
                column = 0
            else:
                rows[-1] = rows[-1][:column].ljust(column) + character + rows[-1][column + 1 :]
                column += 1
        return [row.rstrip() for row in rows]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class TestTable:
    def test_numbers_are_right_aligned_and_measures_get_separators_and_a_bar(self, capsys: Capture) -> None:
        rows = [("ATL", 17215, 1234), ("BOS", 8600, 7)]
        print_table(["dest", "flights", "year"], rows, measures=["flights"], title="Top", caption="2 rows")
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "Top"
        assert lines[1] == "dest   flights   year"
        assert set(lines[2]) == {"─"}
        assert lines[3] == "ATL     17,215   1234   " + "█" * 30
        assert lines[4].startswith("BOS      8,600      7   " + "█" * 14)  # 8600 / 17215 * 30 is 14.99
        assert lines[5] == "2 rows"

    def test_the_bar_belongs_to_the_first_numeric_measure(self, capsys: Capture) -> None:
        print_table(["a", "b", "c"], [("x", 1, 100), ("y", 2, 1)], measures=["a", "c", "b"])
        lines = capsys.readouterr().out.splitlines()
        assert [line.count("█") for line in lines[2:]] == [30, 0]

    @pytest.mark.parametrize(
        ("values", "blocks"),
        [
            ([4, None, 2], [30, 0, 15]),
            ([-4, 0, 2], [0, 0, 30]),
            ([float("nan"), 1.0, float("inf")], [0, 30, 30]),
            ([Decimal("1e400"), Decimal("5e399"), Decimal(0)], [10, 5, 0]),
            ([10**400, 5 * 10**399], [10, 5]),
            ([0, 0], [0, 0]),
        ],
    )
    def test_bars_are_scaled_to_the_largest(
        self, capsys: Capture, values: list[Any], blocks: list[int]
    ) -> None:
        print_table(["n"], [(value,) for value in values], measures=["n"])
        lines = capsys.readouterr().out.splitlines()[2:]
        assert [line.count("█") for line in lines] == blocks

    def test_missing_and_special_values(self, capsys: Capture) -> None:
        rows = [(None, float("nan"), True), ("", float("-inf"), False)]
        print_table(["s", "x", "b"], rows)
        lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
        assert lines == [["NULL", "NaN", "true"], ["-Infinity", "false"]]

    def test_nothing_is_wrapped_or_cut_or_coloured_when_not_a_terminal(self, capsys: Capture) -> None:
        long = "x y " * 200
        print_table(
            ["a", "n"], [(long, 1), ("[red]b[/red]\n\x1b[31m", 2)], measures=["n"], caption="c " * 300
        )
        out = capsys.readouterr().out
        lines = out.splitlines()
        assert len(lines) == 5
        assert long in out
        assert "[red]b[/red]\\n\\x1b[31m" in out
        assert "\x1b" not in out
        assert lines[4] == ("c " * 300).rstrip()

    def test_every_type_of_a_row_has_a_text(self, capsys: Capture) -> None:
        values = (
            date(2013, 1, 2),
            datetime(2013, 1, 2, 3, 4, 5),
            Decimal("0E-3"),
            [1, None],
            {"k": Decimal("1.10")},
            Row(a=1, b="x"),
            b"hi",
            timedelta(days=1, seconds=1.5),
        )
        print_table([str(i) for i in range(len(values))], [values])
        line = capsys.readouterr().out.splitlines()[2]
        assert [cell for cell in line.split("   ") if cell] == [
            "2013-01-02",
            "2013-01-02 03:04:05",
            "0.000",
            "[1, null]",
            '{"k": "1.10"}',
            '{"a": 1, "b": "x"}',
            "aGk=",
            "PT86401.5S",
        ]

    def test_no_rows_and_no_columns(self, capsys: Capture) -> None:
        print_table(["a", "b"], [], measures=["a"], caption="0 rows")
        print_table([], [], caption="nothing")
        lines = capsys.readouterr().out.splitlines()
        assert (lines[0], lines[2:]) == ("a   b", ["0 rows", "nothing"])

    def test_names_that_repeat_or_are_strange(self, capsys: Capture) -> None:
        print_table(["n", "n", "a\nb", ""], [(1, 2, 3, 4)], measures=["n"])
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].split() == ["n", "n", "a\\nb"]
        assert lines[2].split()[:4] == ["1", "2", "3", "4"]

    def test_an_ascii_stdout_gets_hashes_and_straight_columns(self, monkeypatch: pytest.MonkeyPatch) -> None:
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
        print_table(["s", "n"], [("é", 4), ("ab", 1)], measures=["n"])
        lines = raw.getvalue().decode("ascii").splitlines()
        assert lines[2] == "\\xe9 | 4 | " + "#" * 30
        assert lines[3] == "ab   | 1 | " + "#" * 8

    @pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
    def test_a_terminal_sets_width_and_colour(
        self, monkeypatch: pytest.MonkeyPatch, no_color: str, coloured: bool
    ) -> None:
        monkeypatch.setenv("COLUMNS", "40")
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("NO_COLOR", no_color)
        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)
        print_table(["s", "n"], [("word " * 30, 123456789), (None, 1)], measures=["n"])
        text = terminal.getvalue()
        assert ("\x1b[" in text) is coloured
        assert text.count("word") == 30
        assert "123,456,789" in text
        if not coloured:
            assert max(len(line) for line in text.splitlines()) <= 40

    def test_a_narrow_terminal_has_no_room_for_a_bar(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "20")
        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)
        print_table(["name", "n"], [("abcdefgh", 5)], measures=["n"])
        assert "█" not in terminal.getvalue()


class TestCsv:
    def test_quoting_null_and_the_empty_string(self, capsys: Capture) -> None:
        print_csv(["a", "b,c"], [(None, ""), ('x"y', "1\n2"), (" s ", "c,d"), (True, float("nan"))])
        expected = 'a,"b,c"\n,""\n"x""y","1\n2"\n s ,"c,d"\ntrue,NaN\n'
        assert capsys.readouterr().out == expected

    def test_a_csv_reader_gets_the_texts_back(self, capsys: Capture) -> None:
        texts = ['"', ",", "\r\n", "é", "a'b", "NULL", "\\", "\t"]
        print_csv(["v", "w"], [(text, 1) for text in texts])
        read = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
        assert read == [["v", "w"], *([text, "1"] for text in texts)]

    def test_values_of_all_types(self, capsys: Capture) -> None:
        print_csv(["a", "b", "c", "d"], [(Decimal("1.10"), date(2013, 1, 2), [1, "x"], b"hi")])
        assert capsys.readouterr().out.splitlines()[1] == '1.10,2013-01-02,"[1, ""x""]",aGk='

    def test_it_is_utf8_whatever_the_locale(self, monkeypatch: pytest.MonkeyPatch) -> None:
        raw = io.BytesIO()
        stdout = io.TextIOWrapper(raw, encoding="ascii")
        monkeypatch.setattr(sys, "stdout", stdout)
        print_csv(["é"], [("日本",)])
        assert raw.getvalue() == "é\n日本\n".encode()


class TestJson:
    def test_one_object_a_line(self, capsys: Capture) -> None:
        print_json(["a", "b"], [(1, None), (float("nan"), float("inf"))])
        lines = capsys.readouterr().out.splitlines()
        assert [json.loads(line) for line in lines] == [{"a": 1, "b": None}, {"a": "NaN", "b": "Infinity"}]

    def test_repeated_names_stay_usable(self, capsys: Capture) -> None:
        print_json(["n", "n", "n_2"], [(1, 2, 3)])
        assert json.loads(capsys.readouterr().out) == {"n": 1, "n_3": 2, "n_2": 3}

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (Decimal("12345678901234567890.10"), "12345678901234567890.10"),
            (Decimal("1E+3"), "1000"),
            (2**63, 2**63),
            (True, True),
            (date(2013, 1, 2), "2013-01-02"),
            (datetime(2013, 1, 2, 3, 4, 5, 6), "2013-01-02T03:04:05.000006"),
            (datetime(2013, 1, 2, tzinfo=timezone(timedelta(hours=2))), "2013-01-02T00:00:00+02:00"),
            (time(3, 4), "03:04:00"),
            (timedelta(seconds=-1.5), "-PT1.5S"),
            (timedelta(0), "PT0S"),
            (timedelta(seconds=100), "PT100S"),
            (b"\x00\xff", base64.b64encode(b"\x00\xff").decode()),
            (bytearray(b"hi"), "aGk="),
            ([1, [float("nan")]], [1, ["NaN"]]),
            ((1, 2), [1, 2]),
            ({date(2013, 1, 1): 1, 2: {"x": None}}, {"2013-01-01": 1, "2": {"x": None}}),
            (Row(a=1, b=Row(c=Decimal("1.0"))), {"a": 1, "b": {"c": "1.0"}}),
            (Row("x", "y"), ["x", "y"]),
        ],
    )
    def test_values_of_all_types(self, value: Any, expected: Any) -> None:
        assert json_value(value) == expected
        assert json.loads(json.dumps(json_value(value), allow_nan=False)) == expected

    def test_ascii_and_broken_characters_stay_json(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for encoding in ("ascii", "utf-8"):
            raw = io.BytesIO()
            monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
            print_json(["a"], [("é\udc80",)])
            assert json.loads(raw.getvalue().decode(encoding)) == {"a": "é\udc80"}


def test_unique_names() -> None:
    assert unique_names(["a", "a", "a", "a_2"]) == ["a", "a_3", "a_4", "a_2"]


def test_say_goes_to_stderr_and_text_to_stdout_both_masked(capsys: Capture) -> None:
    say("token=hunter2 used")
    print_text("plan\n  password=hunter2")
    captured = capsys.readouterr()
    assert captured.err == "token=***** used\n"
    assert captured.out == "plan\n  password=*****\n"


@pytest.mark.parametrize("printer", ["print_table", "print_csv", "print_json"])
def test_a_reader_that_stops_early_ends_the_output_quietly(printer: str) -> None:
    code = (
        "import sys; from common.core import console\n"
        "sys.stdin.readline()\n"
        f"console.{printer}(['n', 's'], [(i, 'x' * 100) for i in range(5000)])\n"
        f"console.{printer}(['n'], [(1,)])\n"
        "console.say('went on'); sys.exit(0)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )
    assert child.stdin
    assert child.stdout
    assert child.stderr
    child.stdout.close()
    child.stdin.write("go\n")
    child.stdin.close()
    error = child.stderr.read()
    child.stderr.close()
    assert (child.wait(60), error) == (0, "went on\n")


class TestProgress:
    def test_nothing_shows_in_the_first_three_seconds(self) -> None:
        clock, terminal = Clock(), Terminal()
        with ProgressLine(stream=terminal, clock=clock) as line:
            line.update("early")
            clock.now += 2.9
            line.update("still early")
            assert terminal.getvalue() == ""
            clock.now += 0.2
            line.update("now")
            assert terminal.screen() == ["now"]

    def test_a_terminal_line_rewrites_itself_and_is_gone_after_close(self) -> None:
        clock, terminal = Clock(), Terminal()
        line = ProgressLine(stream=terminal, clock=clock)
        clock.now += 5
        line.update("a long text")
        line.update("short\nand  safe\x1b token=hunter2")
        assert terminal.screen() == ["short and safe\\x1b token=*****"]
        line.update("x")
        assert terminal.screen() == ["x"]
        line.close()
        assert terminal.screen() == [""]
        line.update("late")
        line.close()
        assert terminal.screen() == [""]

    def test_a_line_is_cut_to_the_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "10")
        clock, terminal = Clock(), Terminal()
        with ProgressLine(stream=terminal, clock=clock) as line:
            clock.now += 5
            line.update("0123456789abc")
            assert terminal.screen() == ["012345678"]
            line.update("日本語日本語")
            assert terminal.getvalue().endswith("\r日本語日 ")

    def test_not_a_terminal_is_silent_unless_forced(self) -> None:
        for enabled in (None, False):
            clock, stream = Clock(), io.StringIO()
            with ProgressLine(enabled=enabled, stream=stream, clock=clock) as line:
                clock.now += 60
                line.update("x")
            assert stream.getvalue() == ""

    def test_a_terminal_can_be_silenced(self) -> None:
        clock, terminal = Clock(), Terminal()
        with ProgressLine(enabled=False, stream=terminal, clock=clock) as line:
            clock.now += 60
            line.update("x")
        assert terminal.getvalue() == ""

    def test_forced_without_a_terminal_prints_a_line_at_most_every_ten_seconds(self) -> None:
        clock, stream = Clock(), io.StringIO()
        with ProgressLine(enabled=True, stream=stream, clock=clock) as line:
            for second in range(30):
                clock.now = 100.0 + second
                line.update(f"at {second}")
        assert stream.getvalue() == "at 3\nat 13\nat 23\n"

    def test_a_log_line_is_written_above_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock, terminal = Clock(), Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        with ProgressLine(clock=clock) as line:
            clock.now += 5
            line.update("working, a long line")
            say("done one")
            assert terminal.screen() == ["done one", "working, a long line"]
        assert terminal.screen() == ["done one", ""]

    def test_a_new_line_takes_over_from_an_old_one(self) -> None:
        clock, terminal = Clock(), Terminal()
        first, second = (ProgressLine(stream=terminal, clock=clock) for _ in range(2))
        clock.now += 5
        first.update("first, longer")
        second.update("second")
        assert terminal.screen() == ["second"]
        first.close()
        assert terminal.screen() == ["second"]
        second.close()
        assert terminal.screen() == [""]
        assert ProgressLine.shown is None

    def test_logs_of_many_threads_are_not_garbled(self) -> None:
        clock, terminal = Clock(), Terminal()
        root = logging.getLogger("saltpan")
        before = list(root.handlers), root.level, root.propagate
        configure_logs(stream=terminal)

        def work(name: str, line: ProgressLine) -> Callable[[], None]:
            def body() -> None:
                for i in range(50):
                    line.update(f"{name} is at {i} of 50")
                    logger("t").info("%s %s", name, i)

            return body

        try:
            with ProgressLine(stream=terminal, clock=clock) as line:
                clock.now += 5
                threads = [threading.Thread(target=work(name, line)) for name in "abcd"]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
        finally:
            root.handlers[:], root.propagate = before[0], before[2]
            root.setLevel(before[1])
        *seen, last = terminal.screen()
        assert last == ""
        assert sorted(seen) == sorted(f"{name} {i}" for name in "abcd" for i in range(50))

    def test_a_closed_stream_does_not_stop_the_work(self) -> None:
        clock, terminal = Clock(), Terminal()
        line = ProgressLine(stream=terminal, clock=clock)
        clock.now += 5
        terminal.close()
        line.update("x")
        line.close()
        assert ProgressLine.shown is None


def test_rich_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, common.core.console; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_broken_pipe_elsewhere_is_not_hidden(capsys: Capture) -> None:
    def rows() -> Any:
        yield (1,)
        raise BrokenPipeError("the engine's socket")

    for printer in (print_csv, print_json, print_table):
        with pytest.raises(BrokenPipeError, match="the engine's socket"):
            printer(["n"], rows())
    assert console.WIDTH == 120
