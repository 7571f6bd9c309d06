"""The command line of `saltpan submit`: a job, flags of its own, and after `--` those of the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Group, Parameter
from pydantic import BaseModel, ConfigDict, ValidationError

from common.core.errors import SeveralErrors, SuiteError, UnknownNameError, UsageError, did_you_mean
from common.settings import complaints
from common.settings.job import Flag, Pairs

_SEPARATOR = "--"
_USAGE = "saltpan submit JOB --profile SITE -- JOB ARGUMENTS"


class SubmitOptions(BaseModel):
    """The flags of `saltpan submit`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    profile: str | None = None
    """Where to run and with what, SITE[+ACCELERATOR]: local, standalone, yarn, k8s; +comet, +rapids."""
    master: str | None = None
    """The cluster's address, such as spark://HOST:7077; by default the profile's, then $SPARK_MASTER."""
    deploy_mode: Literal["client", "cluster"] = "client"
    """Where the driver runs: on this machine, or in the cluster."""
    conf: Pairs = ()
    """A Spark setting, KEY=VALUE; wins over the profile. Repeatable."""
    conf_dir: str | None = None
    """Folder of the profiles."""
    dry_run: Flag = False
    """Print the properties, secrets masked, and the command; nothing is started."""


def parse_submit(words: Sequence[str]) -> tuple[str, SubmitOptions, tuple[str, ...]] | None:
    """The job, the flags and the job's own words; None when help was asked for, and printed.

    Raises:
        UsageError: one thing is wrong.
        SeveralErrors: several things are wrong; each has its own sentence.
    """
    end = list(words).index(_SEPARATOR) if _SEPARATOR in words else len(words)
    ours, arguments = list(words[:end]), tuple(words[end + 1 :])
    if {"--help", "-h"} & set(ours):
        _app()(["--help"])
        return None
    if not ours or ours[0].startswith("-"):
        hint = "saltpan jobs lists them"
        raise UsageError("command", "submit", expected=_USAGE, got="no job before the flags", hint=hint)
    return ours[0], _bind(ours[1:]), arguments


def _bind(argv: Sequence[str]) -> SubmitOptions:
    flags = [complaints.flag(field) for field in SubmitOptions.model_fields]
    known, unknown = complaints.without_unknown_flags(argv, flags=flags)
    problems: list[SuiteError] = [_unknown(problem.name, flags) for problem in unknown]
    options = SubmitOptions()
    try:
        function, bound, _ = _app().parse_args(known)
        options = function(*bound.args, **bound.kwargs)
    except (ValidationError, CycloptsError) as error:
        cause = error if isinstance(error, ValidationError) else error.__cause__
        if isinstance(cause, ValidationError):
            problems += complaints.of_models(cause, model=SubmitOptions, names={})
        elif isinstance(error, CycloptsError):
            problems.append(complaints.of_parser(error, flags=flags))
    if problems:
        raise problems[0] if len(problems) == 1 else SeveralErrors(problems)
    return options


def _unknown(name: str, flags: Sequence[str]) -> SuiteError:
    hint = did_you_mean(name, flags) or f"the job's own flags come after --, as in {_USAGE}"
    return UnknownNameError("flag", name, expected="a flag of saltpan submit", got=name, hint=hint)


def _app() -> App:
    app = App(
        name="saltpan submit",
        usage=f"Usage: {_USAGE}",
        help="Run a job on a cluster, or on this machine, by spark-submit.",
        help_format="plaintext",
        group_parameters=Group("Flags", sort_key=1),
        version_flags=[],
        result_action="return_value",
        print_error=False,
        exit_on_error=False,
    )

    def command(*, options: SubmitOptions = SubmitOptions()) -> SubmitOptions:  # noqa: B008  it is frozen
        return options

    command.__annotations__["options"] = Annotated[SubmitOptions, Parameter(name="*")]
    app.default(command)
    return app
