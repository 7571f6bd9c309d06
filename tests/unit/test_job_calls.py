"""What a job's author gets wrong is said with file and line."""

from __future__ import annotations

from typing import Any

import pytest

from common.core.errors import JobError, SuiteError, UsageError
from common.runs.job import Job
from common.runs.job_calls import calling, check_declaration, frame_of
from common.settings.job import JobSettings


class Fine(Job[JobSettings]):
    """A job."""

    settings = JobSettings

    def plain(self, inputs: Any, settings: Any) -> Any:
        return None


class NoSettings(Job[JobSettings]):
    """A job."""

    plain = Fine.plain


class NoPlain(Job[JobSettings]):
    """A job."""

    settings = JobSettings


class Clashing(JobSettings):
    """Flags."""

    mode: int = 3  # type: ignore[assignment]
    input: str = ""


class Clash(Fine):
    """A job."""

    settings = Clashing


def test_a_right_declaration() -> None:
    check_declaration(Fine())


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (NoSettings(), "expected an attribute `settings`, got None"),
        (NoPlain(), r"expected a method plain\(self, inputs, settings\), got none"),
        (Clash(), "setting `input, mode`: expected names of the job's own"),
    ],
)
def test_a_wrong_declaration(job: Job[Any], words: str) -> None:
    with pytest.raises(JobError, match=words):
        check_declaration(job)


def test_a_failing_method_is_named_with_its_line() -> None:
    words = (
        r"a method plain that ends well, got ZeroDivisionError: .*line \d+ of .*test_job_calls.py is `1 / 0"
    )
    with pytest.raises(JobError, match=words), calling(Fine(), "plain"):
        1 / 0  # noqa: B018


def test_the_suite_s_own_errors_pass() -> None:
    with pytest.raises(UsageError, match="`x`"), calling(Fine(), "plain"):
        raise UsageError("flag", "x", expected="a", got="b")


@pytest.mark.parametrize(
    ("value", "words"), [(None, "got None. Hint: end it with `return`"), (3, "got a int")]
)
def test_what_is_no_frame(value: object, words: str) -> None:
    with pytest.raises(SuiteError, match=words):
        frame_of(Fine(), "plain", value)
