"""Spark's stderr: what lines are worth, and how they are caught; a shell plays the JVM."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common.engine.chatter import TAIL_LINES, Classifier, captured_stderr, classify

STAMP = "26/12/01 23:45:24"


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("WARNING: Using incubator modules: jdk.incubator.vector", "noise"),
        ("Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties", "noise"),
        ('Setting default log level to "WARN".', "noise"),
        ("To adjust logging level use sc.setLogLevel(newLevel).", "noise"),
        (f"{STAMP} WARN NativeCodeLoader: Unable to load native-hadoop library for your platform", "noise"),
        (f"{STAMP} WARN Utils: Your hostname, vm, resolves to a loopback address: 127.0.0.1", "noise"),
        (f"{STAMP} WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address", "noise"),
        ("[Stage 0:=============>                 (1 + 1) / 2]", "noise"),
        (f"{STAMP} ERROR Executor: Exception in task 0.0 in stage 3.0 (TID 3)", "noise"),
        ("23:45:24 ERROR TaskSetManager: Task 0 in stage 3.0 failed 4 times; aborting job", "noise"),
        (f"{STAMP} WARN WindowExec: No Partition Defined for Window operation! Moving all data", "info"),
        (f"{STAMP} WARN TaskSetManager: Lost task 0.0 in stage 3.0 (TID 3) (h executor 2): x.Y", "warning"),
        (f"{STAMP} WARN TaskSetManager: Lost task 0.0 in stage 3.0 (TID 3) (h executor driver): x.Y", "info"),
        ("23:45:24 WARN BlockManager: Block rdd_1_0 could not be removed", "warning"),
        ("2026-12-01 23:45:24,123 WARN Client: Neither spark.yarn.jars nor archive is set", "warning"),
        ("OpenJDK 64-Bit Server VM warning: Option UseX was deprecated", "warning"),
        (f"{STAMP} WARN Utils: Service 'SparkUI' could not bind on port 4040. Attempting 4041.", "info"),
        (f"{STAMP} INFO SparkContext: Running Spark version 4.1.3", "info"),
        (":: loading settings :: url = jar:file:/x/ivy.xml", "info"),
        ("Picked up JAVA_TOOL_OPTIONS: -Xmx1g", "info"),
        ("something that a user's code printed", "info"),
        (f"{STAMP} ERROR SparkContext: Error initializing SparkContext.", "error"),
        ("Error: Could not find or load main class org.apache.spark.deploy.SparkSubmit", "error"),
        ("Error occurred during initialization of VM", "error"),
        ('Exception in thread "main" java.lang.UnsupportedClassVersionError: org/apache', "error"),
        ("JAVA_HOME is not set", "error"),
        ("/opt/spark/bin/spark-class: line 71: /nope/bin/java: No such file or directory", "error"),
        ("Traceback (most recent call last):", "error"),
        ("java.lang.OutOfMemoryError: Java heap space", "error"),
    ],
)
def test_levels(line: str, level: str) -> None:
    assert classify(line) == level


def test_a_stack_trace_is_worth_what_its_first_line_is() -> None:
    lines = [
        (f"{STAMP} ERROR Executor: Exception in task 0.0 in stage 3.0 (TID 3)", "noise"),
        ("org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value 'x0'", "noise"),
        ("== SQL (line 1, position 1) ==", "noise"),
        ("cast(concat('x',id) as int)", "noise"),
        ("^^^^^^^^", "noise"),
        ("", "noise"),
        ("\tat org.apache.spark.Executor.run(Executor.scala:12)", "noise"),
        (f"{STAMP} ERROR Utils: Uncaught exception in thread main", "error"),
        ("java.lang.IllegalStateException: no", "error"),
        ("Caused by: java.io.IOException: disk", "error"),
        ("\t... 12 more", "error"),
        (f"{STAMP} WARN X: y", "warning"),
    ]
    classifier = Classifier()
    assert [classifier.classify(line) for line, _ in lines] == [level for _, level in lines]


def test_what_follows_a_line_of_noise_is_no_noise() -> None:
    classifier = Classifier()
    assert classifier.classify('Setting default log level to "WARN".') == "noise"
    assert classifier.classify("something else") == "info"


def shell(script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["/bin/sh", "-c", script])


def test_lines_of_a_child_arrive_in_order() -> None:
    lines: list[str] = []
    with captured_stderr(lines.append) as capture:
        shell("echo one >&2; echo two >&2; printf '\\303\\244 \\377' >&2").wait()
    assert capture.tail(wait_seconds=10) == ("one", "two", "ä \ufffd")
    assert lines == ["one", "two", "ä \ufffd"]


def test_a_child_that_outlives_the_block_is_heard() -> None:
    lines: list[str] = []
    with captured_stderr(lines.append) as capture:
        child = subprocess.Popen(
            ["/bin/sh", "-c", "echo early >&2; read go; echo late >&2"], stdin=subprocess.PIPE
        )
        deadline = time.monotonic() + 10
        while not capture.tail(wait_seconds=0.01) and time.monotonic() < deadline:
            pass
        assert lines == []  # lines wait for the end of the launch
    assert lines == ["early"]
    child.communicate(b"go\n")
    capture.tail(wait_seconds=10)
    assert lines == ["early", "late"]


def test_the_tail_is_there_when_the_block_fails() -> None:
    lines: list[str] = []
    with pytest.raises(RuntimeError, match="gateway"), captured_stderr(lines.append) as capture:
        shell(f"i=0; while [ $i -lt {TAIL_LINES + 50} ]; do echo line $i >&2; i=$((i+1)); done").wait()
        raise RuntimeError("gateway")
    tail = capture.tail(wait_seconds=10)
    assert tail == tuple(f"line {number}" for number in range(50, TAIL_LINES + 50))
    assert len(lines) == TAIL_LINES + 50


def test_more_than_a_pipe_holds_does_not_block_the_child() -> None:
    lines: list[str] = []
    with captured_stderr(lines.append) as capture:
        code = f"import sys; sys.stderr.write('{'x' * 99}\\n' * 20000)"
        assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
    capture.tail(wait_seconds=10)
    assert len(lines) == 20_000


def test_carriage_returns_end_lines() -> None:
    lines: list[str] = []
    with captured_stderr(lines.append) as capture:
        shell("printf '[Stage 1:> (0 + 2) / 2]\\r[Stage 1:> (1 + 1) / 2]\\r   \\rdone\\n' >&2").wait()
    capture.tail(wait_seconds=10)
    assert lines == ["[Stage 1:> (0 + 2) / 2]", "[Stage 1:> (1 + 1) / 2]", "   ", "done"]


def test_a_handler_that_fails_stops_nothing() -> None:
    seen: list[str] = []

    def handler(line: str) -> None:
        seen.append(line)
        raise ValueError(line)

    with captured_stderr(handler) as capture:
        shell("echo one >&2; echo two >&2").wait()
    capture.tail(wait_seconds=10)
    assert seen == ["one", "two"]


def test_in_a_process_of_its_own_python_still_writes_to_the_real_stderr() -> None:
    code = """
import subprocess, sys
from common.engine.chatter import captured_stderr
lines = []
with captured_stderr(lambda line: print("heard", line, file=sys.stderr)) as capture:
    print("starting", file=sys.stderr, flush=True)
    subprocess.run(["/bin/sh", "-c", "echo from the child >&2"])
capture.tail(wait_seconds=10)
print("after", file=sys.stderr)
subprocess.run(["/bin/sh", "-c", "echo restored >&2"])
"""
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, cwd=root, timeout=60, check=True
    )
    assert ran.stderr.splitlines() == ["starting", "heard from the child", "after", "restored"]


def test_a_childs_stdout_is_kept_out_of_the_data() -> None:
    code = """
import subprocess
from common.engine.chatter import captured_stderr
lines = []
with captured_stderr(lines.append) as capture:
    print("rows")
    subprocess.run(["/bin/sh", "-c", "echo Too small maximum heap"])
assert capture.tail(wait_seconds=10) == ("Too small maximum heap",)
print(*lines, sep="|")
subprocess.run(["/bin/sh", "-c", "echo restored"])
"""
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "-uc", code], stdout=subprocess.PIPE, text=True, cwd=root, timeout=60, check=True
    )
    assert ran.stdout.splitlines() == ["rows", "Too small maximum heap", "restored"]


def test_without_a_stderr_nothing_is_caught_and_nothing_fails() -> None:
    code = """
import os
os.close(2)
from common.engine.chatter import captured_stderr
with captured_stderr(print) as capture:
    pass
print(capture.tail())
"""
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=root, timeout=60, check=True
    )
    assert ran.stdout == "()\n"


def test_descriptors_are_given_back() -> None:
    def count() -> int:
        """Open descriptors, found by trying each."""
        return sum(is_open(number) for number in range(256))

    before = count()
    for _ in range(5):
        with captured_stderr(lambda line: None) as capture:
            shell("echo x >&2").wait()
        capture.tail(wait_seconds=10)
    assert count() == before


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
