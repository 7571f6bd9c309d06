"""What Spark says against a query before it runs, by the name of the condition, in the suite's errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from common.core.errors import (
    ColumnMissingError,
    ColumnTypeError,
    ConfigurationError,
    OutputExistsError,
    PathAbsentError,
    PathEmptyError,
    SqlError,
    SuiteError,
    UnknownNameError,
    did_you_mean,
)
from common.engine.clues import Clue, bare, place

Rule = Callable[[Clue, Sequence[Clue]], SuiteError]
_SHOWN = 120
_NAMES = ("relationName", "schemaName", "provider", "path", "outputPath", "format")
_SUBJECTS = ("sqlExpr", "expression", "condition", "funcName", "functionName", "name", "referenceNames")


def column_missing(clue: Clue, _: Sequence[Clue]) -> SuiteError:
    """A name that is no column; Spark's suggestions, the nearest ones first."""
    name = clue.parameter("objectName", "fieldName", "colName", "columnName") or bare(
        _first(r"with name (`.*`) cannot", clue.text)
    )
    proposal = clue.parameter("proposal", "suggestion", "fields") or bare(_first(r"\? \[(.*?)\]", clue.text))
    known = [column.strip() for column in proposal.strip("[]").split(",") if column.strip()]
    shown = ", ".join(f"`{column}`" for column in known)
    hint = did_you_mean(name.rpartition(".")[2], known) or (f"there are {shown}" if known else None)
    expected = "a column or field that is there"
    return ColumnMissingError("column", name, expected=expected, got="none of that name", hint=hint)


def unfit(clue: Clue, _: Sequence[Clue]) -> SuiteError:
    """SQL that parses but does not fit its place."""
    name = clue.fragment or clue.parameter(*_SUBJECTS) or clue.condition
    expected = "an expression that fits its place"
    return SqlError("SQL", name[:_SHOWN], expected=expected, got=_at(clue.phrase, clue), hint=clue.advice)


def _ungrouped(clue: Clue, _: Sequence[Clue]) -> SuiteError:
    name = clue.fragment or "aggregate"
    expected, got = "groups for an aggregate such as sum or count", "none"
    hint = "add GROUP BY (--group-by), or make it a window with OVER (PARTITION BY …)"
    return SqlError("SQL", name[:_SHOWN], expected=expected, got=got, hint=hint)


def _unparsed(clue: Clue, _: Sequence[Clue]) -> SuiteError:
    name = (clue.fragment or clue.condition)[:_SHOWN]
    return SqlError("SQL", name, expected="SQL that Spark can parse", got=_at(clue.phrase, clue))


def _routine(clue: Clue, _: Sequence[Clue]) -> SuiteError:
    import pyspark.sql.functions

    name = clue.parameter("routineName") or bare(_first(r"routine (`.*?`) on", clue.text))
    known = [name for name in dir(pyspark.sql.functions) if name.islower() and not name.startswith("_")]
    got = _at("an unknown name", clue)
    return SqlError(
        "SQL function", name, expected="a function of Spark", got=got, hint=did_you_mean(name, known)
    )


def _type(clue: Clue, _: Sequence[Clue]) -> SuiteError:
    name = clue.parameter("sqlExpr", "expression") or clue.condition
    got = re.sub(r'"([A-Z][A-Z<>:, ]*)"', r"\1", clue.phrase)
    return ColumnTypeError("expression", name[:_SHOWN], expected="operands of fitting types", got=got)


def _setting(clue: Clue, _: Sequence[Clue]) -> SuiteError:
    name = clue.parameter("confName", "key", "config") or clue.condition
    return ConfigurationError("key", name, expected="a value that Spark takes at this point", got=clue.phrase)


def _leaf(kind: type[SuiteError], what: str, expected: str, *, got: str, hint: str | None = None) -> Rule:
    """A rule for a condition that only needs the name it is about."""

    def rule(clue: Clue, _: Sequence[Clue]) -> SuiteError:
        name = clue.parameter(*_NAMES) or bare(
            _first(r"`.+?`(?:\.`.+?`)*|\w+:/\S+?(?=\.?(?:\s|$))", clue.text)
        )
        return kind(what, place(name), expected=expected, got=got, hint=hint)

    return rule


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return (found[1] if found.re.groups else found[0]) if found else ""


def _at(got: str, clue: Clue) -> str:
    return f"{got} at {clue.position}" if clue.position else got


_COLUMN = (
    "UNRESOLVED_COLUMN",
    "UNRESOLVED_FIELD",
    "UNRESOLVED_USING_COLUMN_FOR_JOIN",
    "COLUMN_NOT_FOUND",
    "FIELD_NOT_FOUND",
)
_UNPARSED = ("PARSE_SYNTAX_ERROR", "PARSE_EMPTY_STATEMENT", "UNSUPPORTED_DATATYPE")
# Their SQL states say "bad value" or "bad type", but the value is the user's SQL.
_UNFIT = (
    "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
    "DATATYPE_MISMATCH.JOIN_CONDITION_NOT_BOOLEAN",
    "INVALID_DATETIME_PATTERN",
    "INVALID_PARAMETER_VALUE",
    "INVALID_REGEXP_REPLACE",
    "INVALID_TIMEZONE",
)
_SETTING = ("INVALID_CONF_VALUE", "CANNOT_MODIFY_CONFIG", "CANNOT_MODIFY_STATIC_CONFIG")
_TABLE = _leaf(PathAbsentError, "table", "a table or view of the catalog", got="none of that name")

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_COLUMN, column_missing),
    **dict.fromkeys(_UNPARSED, _unparsed),
    **dict.fromkeys(_UNFIT, unfit),
    **dict.fromkeys(_SETTING, _setting),
    "UNRESOLVED_ROUTINE": _routine,
    "MISSING_GROUP_BY": _ungrouped,
    "DATATYPE_MISMATCH": _type,
    "TABLE_OR_VIEW_NOT_FOUND": _TABLE,
    "SCHEMA_NOT_FOUND": _TABLE,
    "DATA_SOURCE_NOT_FOUND": _leaf(
        UnknownNameError,
        "format",
        "a format of Spark or of a package on its class path",
        got="none of that name",
    ),
    "PATH_NOT_FOUND": _leaf(PathAbsentError, "path", "files or folders", got="nothing there"),
    "PATH_ALREADY_EXISTS": _leaf(
        OutputExistsError,
        "output",
        "a free path",
        got="one that exists",
        hint="--mode overwrite replaces it",
    ),
    "UNABLE_TO_INFER_SCHEMA": _leaf(
        PathEmptyError,
        "format",
        "data files that tell the columns",
        got="none",
        hint="declare the schema",
    ),
}
