"""The parser's and the models' complaints in the suite's own words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import annotated_types
from cyclopts import (
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from pydantic import BaseModel, ValidationError

from common.core.errors import SuiteError, UnknownNameError, UsageError, did_you_mean

_KINDS = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text",
}


def of_models(
    error: ValidationError, *, model: type[BaseModel], names: Mapping[str, str]
) -> list[SuiteError]:
    """One error for each wrong value, named as the user gave it (flag, variable or key in a file)."""
    return [_of_value(dict(detail), model=model, names=names) for detail in error.errors()]


def _of_value(detail: dict[str, Any], *, model: type[BaseModel], names: Mapping[str, str]) -> SuiteError:
    field = str(detail["loc"][0]) if detail["loc"] else ""
    name = names.get(field, flag(field))
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, SuiteError):
        return type(cause)("setting", name, expected=cause.expected, got=cause.got, hint=cause.hint)
    if detail["type"] == "missing" or (detail["type"] == "too_short" and not detail["input"]):
        return _missing(name, field=field)
    got = repr(detail["input"])
    if detail["type"] == "literal_error":
        choices = re.findall(r"'([^']*)'", detail["ctx"]["expected"])
        expected = f"one of {', '.join(choices)}"
        return UsageError(
            "setting", name, expected=expected, got=got, hint=did_you_mean(str(detail["input"]), choices)
        )
    return UsageError("setting", name, expected=_expected(detail, field=field, model=model), got=got)


def _expected(detail: dict[str, Any], *, field: str, model: type[BaseModel]) -> str:
    kind = _KINDS.get(detail["type"])
    bounds = _bounds(model, field)
    if kind is None and bounds:
        kind = "a number"
    return f"{kind} {bounds}".strip() if kind else detail["msg"].removeprefix("Value error, ")


def _bounds(model: type[BaseModel], field: str) -> str:
    words = []
    for item in model.model_fields[field].metadata if field in model.model_fields else ():
        if isinstance(item, annotated_types.Ge):
            words.append(f">= {item.ge}")
        elif isinstance(item, annotated_types.Gt):
            words.append(f"> {item.gt}")
        elif isinstance(item, annotated_types.Le):
            words.append(f"<= {item.le}")
        elif isinstance(item, annotated_types.Lt):
            words.append(f"< {item.lt}")
    return " and ".join(words)


def of_missing(model: type[BaseModel], *, given: Iterable[str]) -> list[SuiteError]:
    """One error for each field that needs a value and has none."""
    missing = [
        name for name, field in model.model_fields.items() if field.is_required() and name not in given
    ]
    return [_missing(flag(name), field=name) for name in missing]


def _missing(name: str, *, field: str) -> SuiteError:
    return UsageError("setting", name, expected="a value", got="nothing", hint=f"add {flag(field)}")


def of_parser(error: CycloptsError, *, flags: Sequence[str]) -> SuiteError:
    """The error for tokens that do not form a command line."""
    if isinstance(error, UnknownOptionError):
        return _unknown_flag(error.token.keyword or str(error.token.value), flags=flags)
    if isinstance(error, UnusedCliTokensError):
        unused = str((error.unused_tokens or ["?"])[0])
        hint = "repeat the flag for each value, and put globs in quotes"
        return UsageError(
            "argument", unused, expected="a flag before every value", got=repr(unused), hint=hint
        )
    name = _flag_name(error)
    if isinstance(error, MissingArgumentError):
        return UsageError("flag", name, expected="a value after it", got="nothing")
    if isinstance(error, RepeatArgumentError):
        return UsageError("flag", name, expected="once", got="the flag repeated")
    return UsageError(
        "flag", name, expected="a value of its type", got=" ".join(str(error).split()).rstrip(".")
    )


def _unknown_flag(name: str, *, flags: Sequence[str]) -> SuiteError:
    hint = did_you_mean(name, flags) or "--help lists the flags"
    return UnknownNameError("flag", name, expected="a flag of this job", got=name, hint=hint)


def _flag_name(error: CycloptsError) -> str:
    token = getattr(error, "token", None)
    if token is not None and token.keyword:
        return str(token.keyword)
    return str(error.argument.name) if error.argument is not None else "?"


def flag(field: str) -> str:
    """The flag of a field.

    >>> flag("group_by")
    '--group-by'
    """
    return "--" + field.replace("_", "-")


def without_unknown_flags(
    argv: Sequence[str], *, flags: Sequence[str], verbatim: Sequence[str] = ()
) -> tuple[list[str], list[SuiteError]]:
    """The tokens that may be a command line, and one error for each long flag that is none of `flags`.

    A token behind an unknown flag is taken for its value, unless it is a flag itself. What follows a
    `verbatim` flag (its value is SQL) is never taken for a flag.
    """
    known: list[str] = []
    problems: list[SuiteError] = []
    unknown_before = False
    for token in argv:
        name = token.partition("=")[0]
        looks_like_flag = re.fullmatch(r"--[A-Za-z][\w-]*", name) is not None
        follows_sql = bool(known) and known[-1] in verbatim
        if looks_like_flag and not follows_sql and name.replace("_", "-") not in flags:
            hint = did_you_mean(name, flags) or "--help lists the flags"
            problems.append(
                UnknownNameError("flag", name, expected="a flag of this job", got=name, hint=hint)
            )
            unknown_before = "=" not in token
        elif unknown_before and not token.startswith("-"):
            unknown_before = False
        else:
            known.append(token)
            unknown_before = False
    return known, problems
