"""What Spark says against values and files while a query runs, in the suite's errors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from common.core.errors import (
    DataError,
    FileCorruptError,
    FileUnreadableError,
    PathAbsentError,
    SchemaConflictError,
    SuiteError,
    UsageError,
    ValueMalformedError,
)
from common.engine.clues import Clue, bare, place
from common.engine.sql_failures import Rule, unfit

EXPECTED_RECORDS = "records of the declared schema"
SET_ASIDE = "--bad-rows reject, with --output, sets such records aside and goes on"
_SHOWN = 120
_CORRUPT = "_corrupt_record"
# Other names of what Spark knows by one name.
_ALSO = {"latin1": "iso-8859-1", "l1": "iso-8859-1", "ascii": "us-ascii", "utf8": "utf-8", "utf16": "utf-16"}
_CHARSET = re.compile(r"expects one of the (.+), but got (.+?)\.?(?:\s|$)")
_CAST = re.compile(r'value (.*) of the type "([^"]+)" cannot be cast to "([^"]+)"', re.DOTALL)
_READING = re.compile(r"while reading file (\S.*?)\.(?:\s|$)")
_PARQUET = re.compile(r"column \[(.*?)\]\. Expected Spark type (.*?), actual Parquet type (\w+)")


def bad_value(clue: Clue, _: Sequence[Clue]) -> SuiteError:
    """A value that an expression cannot take or give."""
    name = clue.fragment or clue.parameter("value", "key", "indexValue") or clue.condition
    spelled = re.search(r"[`'](try_\w+|get\(\))[`']", clue.text)
    hint = f"{spelled[1].removesuffix('()')}(…) gives NULL there" if spelled else clue.advice
    if hint and "ansi.enabled" in hint:  # switching the checks off would hide the value
        hint = "cast to a wider type first"
    expected = "a value that the expression can take"
    return ValueMalformedError("value", name[:_SHOWN], expected=expected, got=clue.phrase, hint=hint)


def bad_data(clue: Clue, _: Sequence[Clue]) -> SuiteError:
    """Anything else about the data that Spark has a name for."""
    expected = "data that Spark can read"
    return DataError("data", clue.condition, expected=expected, got=clue.phrase, hint=clue.advice)


def _cast(clue: Clue, _: Sequence[Clue]) -> SuiteError:
    found = _CAST.search(clue.text)
    shown, source, target = found.groups() if found else ("", "", "")
    shown = clue.parameter("expression", "value") or shown
    where = f" in `{clue.fragment}`" if clue.fragment else ""
    value = shown[1:-1] if len(shown) > 1 and shown[0] == shown[-1] == "'" else shown
    return ValueMalformedError(
        "value",
        value,
        expected=clue.parameter("targetType") or bare(target),
        got=f"{clue.parameter('sourceType') or source}{where}",
        hint="try_cast(… AS …) gives NULL for such values",
    )


def _zero(clue: Clue, _: Sequence[Clue]) -> SuiteError:
    name, hint = clue.fragment or "division", "try_divide(a, b) gives NULL there"
    return ValueMalformedError("expression", name, expected="a divisor other than 0", got="0", hint=hint)


def _raised(clue: Clue, _: Sequence[Clue]) -> SuiteError:
    got = clue.parameter("errorMessage") or clue.sentence
    return ValueMalformedError("row", "raise_error", expected="rows that pass the query's own check", got=got)


def _record(clue: Clue, clues: Sequence[Clue]) -> SuiteError:
    shown = clue.parameter("badRecord") or clue.sentence.partition(": ")[2]
    if shown == _CORRUPT:  # where Spark infers types it shows the place, not the record
        shown = "one that its format does not know"
    return ValueMalformedError("file", _file(clues), expected=EXPECTED_RECORDS, got=shown, hint=SET_ASIDE)


def _charset(clue: Clue, clues: Sequence[Clue]) -> SuiteError:
    """An encoding that Spark does not read; in SQL it is that of encode or decode."""
    found = _CHARSET.search(" ".join(clue.text.split()))
    if clue.fragment or found is None:
        return unfit(clue, clues)
    known, got = found.groups()
    names = [name.strip().lower() for name in known.split(",")]
    meant = _ALSO.get(re.sub("[^a-z0-9]", "", got.lower()))
    hint = f"did you mean {meant}" if meant else None
    return UsageError("input option", "encoding", expected=f"one of {', '.join(names)}", got=got, hint=hint)


def _unreadable(clue: Clue, clues: Sequence[Clue]) -> SuiteError:
    name, kinds = _file(clues), {other.kind for other in clues}
    causes = [other for other in clues[clues.index(clue) + 1 :] if other.text.strip()]
    for other in causes:
        rule = RULES.get(other.condition.partition(".")[0])
        if rule is not None and rule is not _unreadable:
            return rule(other, clues)
    cause = causes[0].sentence if causes else "content that cannot be read"
    if kinds & {"FileNotFoundException", "NoSuchFileException"}:
        return _vanished(clue, clues)
    if "AccessControlException" in kinds or "Permission denied" in cause:
        return FileUnreadableError("file", name, expected="a file that may be read", got=cause)
    if "IllegalArgumentException" in kinds:
        return UsageError("input options of", name, expected="what its format can take", got=cause)
    hint = "write the file again, or leave it out of the input"
    return FileCorruptError("file", name, expected="whole content of its format", got=cause, hint=hint)


def _vanished(_: Clue, clues: Sequence[Clue]) -> SuiteError:
    hint = "something replaced it while the run read it; run again when its writer has ended"
    expected, got = "the file that was listed at the start", "no such file any more"
    return PathAbsentError("file", _file(clues), expected=expected, got=got, hint=hint)


def _column_type(clue: Clue, clues: Sequence[Clue]) -> SuiteError:
    found = _PARQUET.search(clue.text)
    column, wanted, there = found.groups() if found else ("column", "the declared type", "another type")
    hint = f"declare `{column}` with the type that the file has, and cast it afterwards"
    return SchemaConflictError("file", _file(clues), expected=f"`{column}` as {wanted}", got=there, hint=hint)


def _merge(clue: Clue, clues: Sequence[Clue]) -> SuiteError:
    innermost = [other for other in clues if other.condition.startswith("CANNOT_MERGE")][-1]
    types = re.findall(r'"([^"]+)"', innermost.text)
    hint = "declare the schema, or read the files as separate inputs"
    expected, got = "one type per column in all files", " and ".join(types[:2]) or clue.phrase
    return SchemaConflictError("input", "", expected=expected, got=got, hint=hint)


def _file(clues: Sequence[Clue]) -> str:
    for clue in clues:
        found = _READING.search(clue.text)
        if found:
            return place(clue.parameter("path") or found[1])
    return ""


RULES: Mapping[str, Rule] = {
    "CAST_INVALID_INPUT": _cast,
    "CAST_OVERFLOW": _cast,
    "DIVIDE_BY_ZERO": _zero,
    "REMAINDER_BY_ZERO": _zero,
    "INTERVAL_DIVIDED_BY_ZERO": _zero,
    "USER_RAISED_EXCEPTION": _raised,
    "MALFORMED_RECORD_IN_PARSING": _record,
    "MALFORMED_CSV_RECORD": _record,
    "INVALID_PARAMETER_VALUE.CHARSET": _charset,
    "FAILED_READ_FILE": _unreadable,
    "FAILED_READ_FILE.FILE_NOT_EXIST": _vanished,
    "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH": _column_type,
    "CANNOT_MERGE_SCHEMAS": _merge,
    "CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE": _merge,
}
