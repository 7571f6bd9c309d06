from __future__ import annotations

import copy
import errno
import inspect
import pickle

import pytest

from common.core import errors, key_errors
from common.core.errors import (
    ColumnMissingError,
    DataError,
    DifferenceError,
    EngineError,
    ExitCode,
    Interrupted,
    LockedError,
    ParameterError,
    PathAbsentError,
    SeveralErrors,
    SuiteError,
    UsageError,
    did_you_mean,
    nearest,
)

KINDS = [
    kind
    for module in (errors, key_errors)
    for _, kind in inspect.getmembers(module, inspect.isclass)
    if issubclass(kind, SuiteError) and kind.__module__ == module.__name__
]
LEAVES = [kind for kind in KINDS if kind is not SeveralErrors]


def make(kind: type[SuiteError], *, hint: str | None = "do b") -> SuiteError:
    return kind("flag", "--n", expected=">= 0", got="-1", hint=hint)


def test_the_text_says_what_expected_got_and_hint() -> None:
    assert str(make(ParameterError)) == "[PARAMETER_INVALID] flag `--n`: expected >= 0, got -1. Hint: do b."
    assert str(make(ParameterError, hint=None)) == "[PARAMETER_INVALID] flag `--n`: expected >= 0, got -1."


@pytest.mark.parametrize("kind", LEAVES)
def test_every_kind_has_the_same_text_form(kind: type[SuiteError]) -> None:
    assert str(make(kind)) == f"[{kind.condition}] flag `--n`: expected >= 0, got -1. Hint: do b."


def test_conditions_are_unique_and_stable_words() -> None:
    conditions = [kind.condition for kind in KINDS]
    assert len(set(conditions)) == len(conditions)
    assert all(condition.replace("_", "").isupper() for condition in conditions)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (SuiteError, 1),
        (UsageError, 2),
        (DataError, 3),
        (EngineError, 4),
        (LockedError, 5),
        (DifferenceError, 6),
    ],
)
def test_exit_codes(kind: type[SuiteError], code: int) -> None:
    assert kind.exit_code == code
    assert all(sub.exit_code == code for sub in kind.__subclasses__() if kind is not SuiteError)


@pytest.mark.parametrize("kind", LEAVES)
@pytest.mark.parametrize("way", [lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy, copy.copy])
def test_every_kind_survives_pickling(kind: type[SuiteError], way: object) -> None:
    again = way(make(kind))  # type: ignore[operator]
    assert type(again) is kind
    assert str(again) == f"[{kind.condition}] flag `--n`: expected >= 0, got -1. Hint: do b."
    assert (again.what, again.name, again.expected, again.got, again.hint) == (
        "flag",
        "--n",
        ">= 0",
        "-1",
        "do b",
    )
    assert again.args == ("flag", "--n")


def test_a_note_survives_pickling() -> None:
    error = make(ParameterError)
    error.add_note("while reading conf/base.conf")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while reading conf/base.conf"]


@pytest.mark.parametrize("kind", [kind for kind in LEAVES if issubclass(kind, OSError)])
def test_os_errors_have_a_number_or_none(kind: type[SuiteError]) -> None:
    error = make(kind)
    assert isinstance(error, OSError)
    assert error.errno is None or error.errno in errno.errorcode
    assert error.filename is None


@pytest.mark.parametrize(
    ("kind", "stdlib"),
    [
        (PathAbsentError, FileNotFoundError),
        (errors.FileUnreadableError, PermissionError),
        (errors.OutputExistsError, FileExistsError),
        (LockedError, BlockingIOError),
        (ColumnMissingError, LookupError),
        (errors.ColumnTypeError, TypeError),
        (DifferenceError, AssertionError),
        (EngineError, RuntimeError),
        (UsageError, ValueError),
    ],
)
def test_a_leaf_is_caught_as_its_stdlib_type(kind: type[SuiteError], stdlib: type[Exception]) -> None:
    with pytest.raises(stdlib):
        raise make(kind)


def test_a_chain_keeps_its_cause() -> None:
    cause = FileNotFoundError(2, "No such file", "x")
    with pytest.raises(PathAbsentError) as caught:
        raise make(PathAbsentError) from cause
    assert caught.value.__cause__ is cause


def test_attributes_are_the_error_as_data() -> None:
    assert make(ParameterError).attributes() == {
        "condition": "PARAMETER_INVALID",
        "exit_code": 2,
        "what": "flag",
        "name": "--n",
        "expected": ">= 0",
        "got": "-1",
        "hint": "do b",
    }


def test_several_errors_keep_their_sentences_and_pickle() -> None:
    several = SeveralErrors([make(ParameterError), make(UsageError, hint=None)])
    lines = [
        "[PARAMETER_INVALID] flag `--n`: expected >= 0, got -1. Hint: do b.",
        "[ARGUMENT_INVALID] flag `--n`: expected >= 0, got -1.",
    ]
    assert str(several).splitlines() == lines
    again = pickle.loads(pickle.dumps(several))
    assert str(again).splitlines() == lines
    assert [type(problem) for problem in again.problems] == [ParameterError, UsageError]


@pytest.mark.parametrize(
    ("kinds", "code"),
    [
        ([ParameterError, UsageError], 2),
        ([ColumnMissingError, ColumnMissingError], 3),
        ([ColumnMissingError, ParameterError], 2),
        ([ColumnMissingError, EngineError], 3),
    ],
)
def test_several_errors_end_with_the_code_of_what_must_be_mended_first(
    kinds: list[type[SuiteError]], code: int
) -> None:
    several = SeveralErrors(make(kind) for kind in kinds)
    assert several.exit_code == code
    assert several.attributes()["exit_code"] == code
    assert pickle.loads(pickle.dumps(several)).exit_code == code


def test_missing_columns_name_the_nearest() -> None:
    error = ColumnMissingError.among(["desst"], ["dest", "origin"], where="input")
    assert "did you mean `dest`" in str(error)
    far = ColumnMissingError.among(["zzz"], ["dest", "origin"], where="input")
    assert "the columns are `dest`, `origin`" in str(far)


def test_missing_columns_of_nothing_have_no_hint() -> None:
    error = ColumnMissingError.among(["dest"], [], where="input")
    assert str(error) == "[COLUMN_MISSING] column `dest`: expected a column of input, got no columns."


@pytest.mark.parametrize(
    ("name", "available", "expected"),
    [
        ("--ouput", ["--output", "--input", "--mode"], "--output"),
        ("DEST", ["dest", "origin"], "dest"),
        ("carier", ["Carrier", "flight"], "Carrier"),
    ],
)
def test_nearest(name: str, available: list[str], expected: str) -> None:
    assert nearest(name, available)[0] == expected


def test_nearest_gives_nothing_far_and_respects_the_limit() -> None:
    assert nearest("xyz", ["--output"]) == []
    assert len(nearest("abc1", ["abc2", "abc3", "abc4", "abc5"], limit=2)) == 2
    assert did_you_mean("xyz", ["--output"]) is None
    assert did_you_mean("outptu", ["output"]) == "did you mean `output`"


def test_nearest_keeps_names_that_differ_by_case_only() -> None:
    assert sorted(nearest("dst", ["Dest", "dest"])) == ["Dest", "dest"]


@pytest.mark.parametrize(("number", "code"), [(2, ExitCode.SIGINT), (15, ExitCode.SIGTERM)])
def test_interrupted_carries_the_signals_code(number: int, code: ExitCode) -> None:
    again = pickle.loads(pickle.dumps(Interrupted(number)))
    assert isinstance(again, Interrupted)
    assert isinstance(again, KeyboardInterrupt)
    assert again.exit_code == code
