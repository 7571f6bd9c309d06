"""The settings that every job shares, and the types that job settings are declared with."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from common.core.errors import SuiteError, UsageError
from common.core.units import parse_bytes
from common.settings.inputs import BadRows, InputFormat, InputRequest
from common.settings.remote import check_remote

INPUT = Group("Input", sort_key=2)
OUTPUT = Group("Output", sort_key=3)
RUN = Group("Run", sort_key=4)

OutputFormat = Literal["parquet", "orc", "csv", "json"]


def _split_columns(values: tuple[str, ...]) -> tuple[str, ...]:
    """Split at commas outside backquotes: ("dest,`a,b`",) is the columns dest and a,b."""
    names = [name.strip() for value in values for name in _outside_backquotes(value)]
    if "" in names:
        raise UsageError(
            "columns", ",".join(values), expected="column names between commas", got="an empty name"
        )
    if len(set(names)) < len(names):
        raise UsageError("columns", ",".join(values), expected="each column once", got="a repeated name")
    return tuple(names)


def _outside_backquotes(value: str) -> Iterable[str]:
    """The names; a backquote opens one at its beginning or after =, is doubled within, and else itself."""
    name, quoted, at = "", False, 0
    while at < len(value):
        character = value[at]
        if character == "`" and quoted and value[at + 1 : at + 2] == "`":
            name, at = f"{name}`", at + 1
        elif character == "`" and (quoted or not name.strip() or name.endswith("=")):
            quoted = not quoted
        elif character == "," and not quoted:
            yield name
            name = ""
        else:
            name += character
        at += 1
    yield name


def _check_pairs(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        key, equals, _ = value.partition("=")
        if not equals or not key.strip():
            raise UsageError("pair", value, expected="KEY=VALUE", got=repr(value))
    keys = [value.partition("=")[0].strip() for value in values]
    repeated = sorted({key for key in keys if keys.count(key) > 1})
    if repeated:
        raise UsageError("pair", ", ".join(repeated), expected="each key once", got="the same key twice")
    return values


Columns = Annotated[
    tuple[str, ...], AfterValidator(_split_columns), Parameter(negative="", show_default=False)
]
"""Column names, given as `a,b` or by repeating the flag; a comma inside backquotes belongs to the name, and a
backquote there is doubled."""

Pairs = Annotated[tuple[str, ...], AfterValidator(_check_pairs), Parameter(negative="", show_default=False)]
"""KEY=VALUE settings, one per flag."""


def _check_sql(value: str) -> str:
    if not value.strip():
        raise UsageError("SQL", value, expected="an expression", got="blank text", hint="leave the flag out")
    return value


Sql = Annotated[str, AfterValidator(_check_sql), Parameter(allow_leading_hyphen=True)]
"""An SQL expression; it may begin with a minus."""

Sqls = Annotated[
    tuple[Annotated[str, AfterValidator(_check_sql)], ...],
    Parameter(allow_leading_hyphen=True, negative="", show_default=False),
]
"""SQL expressions, one per flag; commas belong to them."""


def _check_limit(value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"[0-9]+(\.[0-9]+)?%|[0-9]+", value):
        expected = "a number of rows, or a share as 0.5%"
        raise UsageError("setting", value, expected=expected, got=repr(value))
    return value


def _check_size(value: str) -> str:
    parse_bytes(value)
    return value


Size = Annotated[str, AfterValidator(_check_size)]
"""A number of bytes with an optional unit, such as 64m."""

Flag = Annotated[bool, Parameter(negative="")]


def pairs(values: Iterable[str]) -> dict[str, str]:
    """The KEY=VALUE settings as a dictionary.

    >>> pairs(("sep=;", "nullValue=a=b"))
    {'sep': ';', 'nullValue': 'a=b'}
    """
    split = (value.partition("=") for value in values)
    return {key.strip(): value for key, _, value in split}


class JobSettings(BaseModel):
    """What every job takes besides its inputs; a job's own settings inherit from it."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        str_strip_whitespace=False,
        use_attribute_docstrings=True,
        validate_default=True,
    )

    bad_rows: Annotated[BadRows, Parameter(group=INPUT)] = "fail"
    """Rows that cannot be read as declared: fail, or reject: they go to OUTPUT.bad-rows."""
    max_rejects: Annotated[str | None, AfterValidator(_check_limit), Parameter(group=INPUT)] = None
    """The most rows that may be rejected: a number, or a share such as 0.5%; more of them fail the run."""
    output: Annotated[str | None, Parameter(group=OUTPUT)] = None
    """Folder to publish to. Without it the rows are printed."""
    output_format: Annotated[OutputFormat, Parameter(group=OUTPUT)] = "parquet"
    """File format of the output."""
    output_files: Annotated[int | None, Parameter(group=OUTPUT)] = Field(default=None, ge=1, le=100_000)
    """Number of files to write; by default as many as Spark has partitions."""
    mode: Annotated[Literal["error", "overwrite"], Parameter(group=OUTPUT)] = "error"
    """What to do when the output exists."""
    format: Annotated[Literal["table", "csv", "json"], Parameter(group=OUTPUT)] = "table"
    """How rows are printed: all when there are at most 100, else the first 20 and the count."""

    explain: Annotated[Flag, Parameter(group=RUN)] = False
    """Show the decision and the plan; nothing runs."""
    verify: Annotated[Flag, Parameter(group=RUN)] = False
    """Prove that the answer equals the plain plan's, before anything is published."""
    profile: Annotated[str | None, Parameter(group=RUN)] = None
    """Configuration to start Spark with, SITE[+ACCELERATOR]. Under spark-submit the session has its own."""
    remote: Annotated[str | None, AfterValidator(check_remote), Parameter(group=RUN)] = None
    """Spark Connect server, sc://HOST:PORT; SPARK_REMOTE does the same."""
    start: Annotated[Literal["auto", "fast", "full"], Parameter(group=RUN)] = "auto"
    """How a JVM of our own starts: fast for jobs of seconds, full for those of minutes."""
    conf: Annotated[Pairs, Parameter(group=RUN)] = ()
    """A Spark setting, KEY=VALUE; wins over the profile. Repeatable."""
    conf_dir: Annotated[str | None, Parameter(group=RUN)] = None
    """Folder of the profiles."""
    config: Annotated[str | None, Parameter(group=RUN)] = None
    """TOML file with any of these settings; environment and flags win."""
    runs_dir: Annotated[str | None, Parameter(group=RUN)] = None
    """Folder of the run records; by default in the user's state folder."""
    progress: Annotated[bool | None, Parameter(group=RUN)] = None
    """Show progress on stderr; by default on a terminal."""
    log_format: Annotated[Literal["text", "json"], Parameter(group=RUN)] = "text"
    """Form of the log lines on stderr."""
    verbose: Annotated[Flag, Parameter(name=("--verbose", "-v"), group=RUN)] = False
    """Say more."""
    quiet: Annotated[Flag, Parameter(name=("--quiet", "-q"), group=RUN)] = False
    """Say only what is wrong."""
    debug: Annotated[Flag, Parameter(group=RUN)] = False
    """Show tracebacks and all that Spark says."""

    @property
    def rejecting(self) -> str | None:
        """The flag by which rows are rejected, as typed; None when none are."""
        return "--bad-rows reject" if self.bad_rows == "reject" else None

    def problems_of_rejects(self) -> Iterable[SuiteError]:
        """What rejected rows need, and what needs them."""
        if self.rejecting and self.output is None and not self.explain:
            hint = "the rejected rows are written beside it"
            expected = f"a folder with {self.rejecting}"
            yield UsageError("flag", "--output", expected=expected, got="none", hint=hint)
        if self.max_rejects is not None and not self.rejecting:
            expected = "a flag beside it that rejects rows, such as --bad-rows reject"
            yield UsageError("flag", "--max-rejects", expected=expected, got="none")

    def problems(self) -> Iterable[SuiteError]:
        """What is wrong between settings that are each right; every problem is reported."""
        return ()

    def reading(self, request: InputRequest) -> InputRequest:
        """An input as this job reads it: where its own flags say more than those that all jobs share."""
        return request


@cache
def with_inputs(model: type[JobSettings], names: tuple[str, ...]) -> type[JobSettings]:
    """The job's settings plus NAME, NAME-format, NAME-schema, NAME-option, NAME-allow-empty per input."""
    fields: dict[str, Any] = {}
    for name in names:
        fields |= _input_fields(name)
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)


def _input_fields(name: str) -> dict[str, Any]:
    group = Parameter(group=INPUT)
    repeated = Parameter(group=INPUT, negative="", show_default=False)
    paths = "Path, glob, URL or table:db.name. Repeatable."
    schema = (
        "The columns to read, with types, as DDL ('zip STRING, n INT') or @FILE; partition columns besides."
    )
    return {
        name: (Annotated[tuple[str, ...], repeated], Field(min_length=1, description=paths)),
        f"{name}_format": (
            Annotated[InputFormat, group],
            Field("auto", description="Format; auto: by file names."),
        ),
        f"{name}_schema": (Annotated[str | None, group], Field(None, description=schema)),
        f"{name}_option": (
            Annotated[Pairs, group],
            Field((), description="Reader option, such as header=false."),
        ),
        f"{name}_allow_empty": (
            Annotated[Flag, group],
            Field(default=False, description="A folder without files is no rows; needs a schema."),
        ),
    }


def input_request(settings: JobSettings, name: str) -> InputRequest:
    """The input called `name`, as the settings have it.

    Raises:
        UsageError: NAME-schema names a file that cannot be read.
    """
    return InputRequest(
        name=name,
        paths=getattr(settings, name),
        format=getattr(settings, f"{name}_format"),
        schema=_schema_text(getattr(settings, f"{name}_schema"), flag=f"--{name}-schema"),
        options=pairs(getattr(settings, f"{name}_option")),
        allow_empty=getattr(settings, f"{name}_allow_empty"),
        bad_rows=settings.bad_rows,
    )


def _schema_text(value: str | None, *, flag: str) -> str | None:
    if value is None or not value.startswith("@"):
        return value
    try:
        with open(value[1:], encoding="utf-8") as file:  # noqa: PTH123
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise UsageError(
            "flag", flag, expected="a readable file after @", got=f"{value[1:]} ({reason})"
        ) from error
