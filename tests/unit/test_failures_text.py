"""Engine errors whose text is all that is left: the JVM is gone, on another machine, or hard to provoke."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkRuntimeError, PySparkTypeError

from common.core.errors import (
    ColumnMissingError,
    EngineError,
    ExitCode,
    FileCorruptError,
    InstallationError,
    JavaError,
    OutputUnwritableError,
    PathAbsentError,
    SqlError,
    StrategyError,
    SuiteError,
    ValueMalformedError,
)
from common.engine.clues import Clue, find_clues
from common.engine.failures import translate, translated

STAGE = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: "
    "Lost task 0.3 in stage 1.0 (TID 7) (host executor 2): "
)


class FakeConnectError(Exception):
    """Stands for an error of Spark Connect: a condition, parameters and a text."""

    __module__ = "pyspark.errors.exceptions.connect"

    def __init__(
        self, text: str, condition: str | None = None, parameters: dict[str, str] | None = None
    ) -> None:
        super().__init__(text)
        self.condition, self.parameters = condition, parameters

    def getCondition(self) -> str | None:  # noqa: N802
        return self.condition

    def getMessageParameters(self) -> dict[str, str] | None:  # noqa: N802
        return self.parameters


def known(text: str, condition: str | None = None, **parameters: str) -> SuiteError:
    found = translate(FakeConnectError(text, condition, parameters))
    assert found is not None
    return found


def charset(got: str, end: str = "") -> SuiteError:
    text = (
        "[INVALID_PARAMETER_VALUE.CHARSET] The value of parameter(s) `charset` in `CSVOptions` is invalid: "
    )
    text += f"expects one of the iso-8859-1, us-ascii, utf-16, utf-8, but got {got}. SQLSTATE: 22023{end}"
    return known(text, "INVALID_PARAMETER_VALUE.CHARSET", charset=got)


def test_an_encoding_that_spark_does_not_read() -> None:
    assert str(charset("latin1")) == (
        "[ARGUMENT_INVALID] input option `encoding`: expected one of iso-8859-1, us-ascii, utf-16, utf-8, "
        "got latin1. Hint: did you mean iso-8859-1."
    )
    assert charset("latin1").exit_code == ExitCode.USAGE
    assert charset("klingon").hint is None
    in_sql = charset("latin1", "\n== SQL (line 1, position 8) ==\nencode(a, 'latin1')\n^^^")
    assert (type(in_sql), in_sql.name) == (SqlError, "encode(a, 'latin1')")


def test_a_bad_record_among_those_whose_types_are_inferred() -> None:
    text = (
        "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected in record parsing: "
    )
    found = known(f"{text}_corrupt_record. SQLSTATE: 22023", "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION")
    assert found.got == "one that its format does not know"
    assert known(f"{text}[1,x]. SQLSTATE: 22023", "MALFORMED_RECORD_IN_PARSING").got == "[1,x]"


@pytest.mark.parametrize(
    ("text", "leaf", "part"),
    [
        (
            f"{STAGE}java.io.IOException: No space left on device\n\tat java.base",
            EngineError,
            "spark.local.dir",
        ),
        (f"{STAGE}java.io.IOException: Disk quota exceeded", EngineError, "spark.local.dir"),
        (
            "Job aborted due to stage failure: Total size of serialized results of 9 tasks (1.1 GiB) is "
            "bigger than spark.driver.maxResultSize (1024.0 MiB)",
            EngineError,
            "--output",
        ),
        (f"{STAGE}java.lang.OutOfMemoryError: Java heap space", EngineError, "got Java heap space"),
        (
            f"{STAGE}java.lang.OutOfMemoryError: GC overhead limit exceeded",
            EngineError,
            "spark.driver.memory",
        ),
        (
            f"{STAGE}org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] Unable to "
            "acquire 65536 bytes of memory, got 0. SQLSTATE: 53200",
            EngineError,
            "unable to acquire 65536 bytes of memory",
        ),
        (
            "Not enough memory to build and broadcast the table to all worker nodes. As a workaround, …",
            EngineError,
            "autoBroadcastJoinThreshold=-1",
        ),
        ("Cannot broadcast the table that is larger than 8.0 GiB: 9.0 GiB.", EngineError, "shuffled join"),
        (
            "Could not execute broadcast in 300 secs. You can increase the timeout",
            EngineError,
            "spark.sql.broadcastTimeout",
        ),
        (
            f"{STAGE}ExecutorLostFailure (executor 3 exited caused by one of the running tasks) "
            "Reason: Container killed by YARN for exceeding memory limits.",
            EngineError,
            "spark.executor.memoryOverhead",
        ),
        (
            "[SPARK_JOB_CANCELLED] Job 3 cancelled as part of cancellation of all jobs",
            EngineError,
            "job 3 cancelled",
        ),
        ("[OPERATION_CANCELED] Operation has been canceled. SQLSTATE: HY008", EngineError, "canceled"),
        ("Job 1 cancelled because SparkContext was shut down", EngineError, "`stopped`"),
        (
            "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\nThis stopped …",
            EngineError,
            "`stopped`",
        ),
        (
            "[INVALID_HANDLE.SESSION_CLOSED] The handle x is invalid. Session was closed.",
            EngineError,
            "`stopped`",
        ),
        ("java.lang.UnsupportedOperationException: getSubject is not supported", JavaError, "17 or 21"),
        (
            f'{STAGE}java.io.IOException: Cannot run program "python3.12": error=2, No such file',
            InstallationError,
            "program `python3.12`",
        ),
        (
            f"{STAGE}java.io.IOException: Mkdirs failed to create file:/out/x/_temporary/0/a (exists=false)",
            OutputUnwritableError,
            "output `/out/x`",
        ),
        (
            f"{STAGE}org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
            EngineError,
            "killed",
        ),
        (
            "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:15002",
            EngineError,
            "a server that answers",
        ),
        ("java.net.UnknownHostException: namenode", EngineError, "a server that answers"),
    ],
)
def test_trouble_of_the_machine(text: str, leaf: type[SuiteError], part: str) -> None:
    found = known(text)
    assert type(found) is leaf
    assert part in str(found)
    assert "\n" not in str(found)
    assert "\tat" not in str(found)
    assert found.exit_code == (ExitCode.DATA if leaf is OutputUnwritableError else ExitCode.ENGINE)


def passed_through_py4j(error: Exception) -> Exception:
    """The error as it looks when Py4J's code raised it."""
    try:
        exec(
            compile("raise error", "clientserver.py", "exec"),
            {"__name__": "py4j.clientserver", "error": error},
        )
    except Exception as raised:  # noqa: BLE001  the point is to have it raised there
        return raised
    raise AssertionError


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        passed_through_py4j(ConnectionRefusedError(111, "Connection refused")),
        passed_through_py4j(ConnectionResetError(104, "Connection reset by peer")),
        passed_through_py4j(EOFError()),
    ],
)
def test_a_jvm_that_is_gone(error: Exception) -> None:
    found = translate(error)
    assert isinstance(found, EngineError)
    assert str(found).startswith(
        "[ENGINE_FAILED] process `Spark JVM`: expected it to live through the run, got it"
    )


def test_a_jvm_that_never_came() -> None:
    found = translate(PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={}))
    assert isinstance(found, EngineError)
    assert "saltpan doctor" in (found.hint or "")


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        ConnectionRefusedError("some server of the user's own code"),
        ZeroDivisionError(),
        PySparkTypeError(errorClass="NOT_STR", messageParameters={"arg_name": "a", "arg_type": "int"}),
        FakeConnectError("[INTERNAL_ERROR] Could not plan. SQLSTATE: XX000", "INTERNAL_ERROR"),
        FakeConnectError("nobody knows this"),
    ],
)
def test_what_is_not_known_stays_a_bug(error: Exception) -> None:
    assert translate(error) is None
    with pytest.raises(type(error)) as caught, translated():
        raise error
    assert caught.value is error


def test_the_suites_own_errors_pass_untouched() -> None:
    ours = StrategyError("strategy", "heap", expected="an RDD", got="Connect")
    assert translate(ours) is ours
    with pytest.raises(StrategyError) as caught, translated():
        raise ours
    assert caught.value is ours
    assert caught.value.__cause__ is None


def test_a_known_error_is_chained_to_the_engines() -> None:
    original = FakeConnectError("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", "DIVIDE_BY_ZERO")
    with pytest.raises(ValueMalformedError) as caught, translated():
        raise original
    assert caught.value.__cause__ is original


def traceback(last: str) -> str:
    return (
        "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
        "Traceback (most recent call last):\n"
        '  File "/x/pyspark.zip/pyspark/worker.py", line 3386, in main\n    process()\n'
        '  File "/jobs/mine.py", line 12, in double\n    return 2 * int(x)\n               ^^^^^^\n'
        f"{last}\n\n\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:1)\n"
    )


def test_a_python_function_that_raised() -> None:
    found = known(traceback("ValueError: invalid literal for int() with base 10: 'x'"))
    assert type(found) is EngineError
    assert found.name == "double (mine.py:12)"
    assert found.got == "ValueError: invalid literal for int() with base 10: 'x'"


def test_a_package_that_the_workers_lack() -> None:
    found = known(traceback("ModuleNotFoundError: No module named 'numpy'"))
    assert type(found) is InstallationError
    assert found.name == "numpy"


def test_a_worker_of_another_python() -> None:
    text = (
        "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has "
        "different version: 3.10 than that in driver: 3.12, PySpark cannot run with different ones.\n"
        "Please check environment variables PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON are correctly set."
    )
    found = known(traceback(text))
    assert type(found) is InstallationError
    assert (found.expected, found.got) == ("Python 3.12, the driver's", "Python 3.10")


def test_the_suites_errors_come_back_from_workers_as_they_were() -> None:
    ours = ValueMalformedError(
        "score", "a. b", expected="a number, 0 to 1", got="'x', a text", hint="cast it"
    )
    found = known(traceback(f"common.core.errors.ValueMalformedError: {ours}"))
    assert type(found) is ValueMalformedError
    assert found.attributes() == ours.attributes()
    plain = SqlError("SQL", "a", expected="b", got="c")
    assert known(traceback(f"common.core.errors.SqlError: {plain}")).attributes() == plain.attributes()


def test_a_condition_in_a_task_failure_that_is_left_as_text() -> None:
    text = (
        f"{STAGE}org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value 'it''s' of "
        'the type "STRING" cannot be cast to "INT" because it is malformed. Correct it. SQLSTATE: 22018\n'
        "== SQL (line 1, position 5) ==\nsum(cast(name as int))\n    ^^^^\n\n\tat org.apache.X(X.scala:1)"
    )
    found = known(text)
    assert type(found) is ValueMalformedError
    assert (found.name, found.expected) == ("it''s", "INT")


def test_a_file_is_named_with_the_reason_underneath() -> None:
    text = (
        f"{STAGE}org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while "
        "reading file file:///data/my%20day.csv.gz.  SQLSTATE: KD001\n\tat org.apache.spark.X(X.scala:1)\n"
        "Caused by: java.io.EOFException: Unexpected end of input stream\n\tat y"
    )
    found = known(text)
    assert type(found) is FileCorruptError
    assert (found.name, found.got) == ("/data/my day.csv.gz", "Unexpected end of input stream")


def test_the_inputs_are_named_where_spark_names_no_file() -> None:
    text = '[CANNOT_MERGE_SCHEMAS] Failed merging schemas:\n"STRUCT<a: INT>"\nand\n"STRUCT<a: DATE>".'
    found = translate(FakeConnectError(text, "CANNOT_MERGE_SCHEMAS"), inputs=["a/x", "b"])
    assert found is not None
    assert found.name == "a/x, b"


@pytest.mark.parametrize(
    ("text", "leaf"),
    [
        (
            '[WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE] Window function "rank()" needs OVER. SQLSTATE: 42601',
            SqlError,
        ),
        ("[UNSUPPORTED_FEATURE.X] The feature is not supported: y. SQLSTATE: 0A000", SqlError),
        ("[INVALID_FRACTION_OF_SECOND] Valid range is [0, 60]. SQLSTATE: 22023", ValueMalformedError),
        ("[SCHEMA_NOT_FOUND] The schema `nope` cannot be found. SQLSTATE: 42704", PathAbsentError),
        (
            "[UNRESOLVED_COLUMN.WITHOUT_SUGGESTION] A column, variable, or function parameter with name "
            "`a`.`b` cannot be resolved.  SQLSTATE: 42703",
            ColumnMissingError,
        ),
    ],
)
def test_conditions_without_a_rule_go_by_their_state_and_all_work_without_parameters(
    text: str, leaf: type[SuiteError]
) -> None:
    assert type(known(text)) is leaf


def test_a_missing_column_without_parameters_keeps_its_name() -> None:
    text = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `q`.`nam` "
        "cannot be resolved. Did you mean one of the following? [`name`, `z`]. SQLSTATE: 42703; line 1 pos 4"
    )
    found = known(text)
    assert (found.name, found.hint) == ("q.nam", "did you mean `name`")


def test_clues_follow_the_python_causes() -> None:
    inner = FakeConnectError("[A_B] inside", "A_B")
    outer = RuntimeError("outside")
    outer.__cause__ = inner
    assert [(clue.kind, clue.condition) for clue in find_clues(outer)] == [
        ("RuntimeError", ""),
        ("FakeConnectError", "A_B"),
    ]


def test_sentences_end_where_sparks_additions_begin() -> None:
    text = "[X] Something is wrong here. Do that. SQLSTATE: 42000; line 2 pos 4;\n'Project [*]\n+- Y"
    clue = Clue("AnalysisException", text)
    assert (clue.sentence, clue.advice, clue.position) == (
        "Something is wrong here",
        "Do that",
        "line 2, position 5",
    )
    assert (
        Clue("X", "[Y] z. SQLSTATE: 22000\n== SQL (line 1, position 7) ==\nselect 1").position
        == "line 1, position 7"
    )


@pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="Spark Connect is not installed")
def test_an_error_class_of_spark_connect() -> None:
    from pyspark.errors.exceptions import connect

    error: Any = connect.AnalysisException(
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `db`.`t` cannot be found. Verify. SQLSTATE: 42P01",
        errorClass="TABLE_OR_VIEW_NOT_FOUND",
        messageParameters={"relationName": "`db`.`t`"},
    )
    found = translate(error)
    assert isinstance(found, PathAbsentError)
    assert found.name == "db.t"
