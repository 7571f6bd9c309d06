"""From argv, environment and TOML to typed settings, in one declaration; every wrong value at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from cyclopts import App, CycloptsError, Group, Parameter
from cyclopts.config import Dict
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from common import __version__
from common.core.errors import SeveralErrors, SuiteError, UsageError
from common.settings import complaints
from common.settings.inputs import InputRequest
from common.settings.job import JobSettings, input_request, with_inputs
from common.settings.layers import Layer, environment_layer, file_layer

_HELP = frozenset({"--help", "-h", "--version"})


@dataclass(frozen=True)
class Command:
    """A command line that was understood.

    Attributes:
        settings: The job's settings, validated.
        inputs: The job's inputs, in its order.
        origins: Field name to where its value came from: "flag", an environment variable, a key in a file.
    """

    settings: JobSettings
    inputs: tuple[InputRequest, ...]
    origins: Mapping[str, str]


def parse_command(
    model: type[JobSettings],
    *,
    job: str,
    summary: str,
    inputs: Sequence[str],
    argv: Sequence[str],
    environ: Mapping[str, str],
) -> Command | None:
    """Understand a job's command line; None when help or the version was asked for, and printed.

    Raises:
        UsageError: one thing is wrong.
        SeveralErrors: several things are wrong; each has its own sentence.
    """
    full = with_inputs(model, tuple(inputs))
    fields = list(full.model_fields)
    if _HELP & set(_before_separator(argv)):
        _app(full, job=job, summary=summary)(list(argv))
        return None
    layers = _layers(argv, environ, job=job, fields=fields)
    names = {field: name for layer in reversed(layers) for field, name in layer.names.items()}
    settings = _bind(full, argv, job=job, layers=layers, names=names)
    requests = tuple(settings.reading(input_request(settings, name)) for name in inputs)
    problems = [*settings.problems(), *settings.problems_of_rejects(), *_empty_without_schema(requests)]
    _raise_all(problems)
    return Command(settings, requests, _origins(settings, names))


def _before_separator(argv: Sequence[str]) -> Sequence[str]:
    return argv[: argv.index("--")] if "--" in argv else argv


def _app(model: type[JobSettings], *, job: str, summary: str, config: Sequence[Any] = ()) -> App:
    app = App(
        name=job,
        help=summary,
        help_format="plaintext",
        version=f"saltpan {__version__}",
        group_parameters=Group("Job", sort_key=1),
        group_commands=Group("Help", sort_key=9),
        config=list(config),
        result_action="return_value",
        print_error=False,
        exit_on_error=False,
    )

    def command(*, settings: JobSettings) -> JobSettings:
        return settings

    command.__annotations__["settings"] = Annotated[model, Parameter(name="*")]
    app.default(command)
    return app


def _layers(
    argv: Sequence[str], environ: Mapping[str, str], *, job: str, fields: Sequence[str]
) -> list[Layer]:
    """Environment, then file: the order in which they win below the flags."""
    environment = environment_layer(environ, job=job, fields=fields, shared=JobSettings.model_fields)
    path = _flag_value(argv, "--config") or environment.values.get("config")
    return [environment] + ([file_layer(path, fields=fields)] if path else [])


def _flag_value(argv: Sequence[str], flag: str) -> str | None:
    for index, token in enumerate(argv):
        if token == flag and index + 1 < len(argv):
            return argv[index + 1]
        if token.startswith(f"{flag}="):
            return token.partition("=")[2]
    return None


def _bind(
    model: type[JobSettings],
    argv: Sequence[str],
    *,
    job: str,
    layers: Sequence[Layer],
    names: Mapping[str, str],
) -> JobSettings:
    flags = [complaints.flag(field) for field in model.model_fields] + ["--no-progress"]
    known, problems = complaints.without_unknown_flags(argv, flags=flags, verbatim=_sql_flags(model))
    app = _app(model, job=job, summary="", config=[Dict(dict(layer.values)) for layer in layers])
    given = _given_by_flag(argv, model)
    try:
        function, bound, _ = app.parse_args(known)
        settings: JobSettings = function(*bound.args, **bound.kwargs)
    except (ValidationError, CycloptsError) as error:
        # The parser wraps the model's complaint when a value came from a layer, and not when from a flag.
        cause = error if isinstance(error, ValidationError) else error.__cause__
        named = {field: name for field, name in names.items() if field not in given}
        if isinstance(cause, ValidationError):
            problems += complaints.of_models(cause, model=model, names=named)
        elif missing := complaints.of_missing(model, given={*given, *names}):
            problems += missing
        elif isinstance(error, CycloptsError):
            problems.append(complaints.of_parser(error, flags=flags))
        settings = model.model_construct()
    _raise_all(problems)
    return settings


def _sql_flags(model: type[JobSettings]) -> list[str]:
    return [
        complaints.flag(name)
        for name, field in model.model_fields.items()
        if any(isinstance(item, Parameter) and item.allow_leading_hyphen for item in _metadata(field))
    ]


def _metadata(field: FieldInfo) -> list[Any]:
    """The field's own metadata and that of its optional type: `Sql` and `Sql | None` alike."""
    inner = [item for part in get_args(field.annotation) for item in getattr(part, "__metadata__", ())]
    return [*field.metadata, *inner]


def _given_by_flag(argv: Sequence[str], model: type[JobSettings]) -> frozenset[str]:
    given = {token.partition("=")[0].replace("_", "-") for token in argv}
    return frozenset(field for field in model.model_fields if complaints.flag(field) in given)


def _origins(settings: JobSettings, names: Mapping[str, str]) -> dict[str, str]:
    return {field: names.get(field, "flag") for field in settings.model_fields_set}


def _empty_without_schema(requests: Sequence[InputRequest]) -> list[SuiteError]:
    return [
        UsageError(
            "flag",
            f"--{request.name}-allow-empty",
            expected=f"--{request.name}-schema beside it",
            got="no schema",
            hint="zero rows need declared columns",
        )
        for request in requests
        if request.allow_empty and not request.schema
    ]


def _raise_all(problems: Sequence[SuiteError]) -> None:
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise SeveralErrors(problems)
