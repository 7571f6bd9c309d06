"""The options that Spark's reader gets: ours, then the user's, who wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from common.core.errors import ParameterError
from common.settings.inputs import InputRequest
from common.transforms.bad_rows import RECORD

# columnPruning off and multiLine on: which rows are malformed must not depend on the columns selected.
_CSV = {
    "header": "true",
    "quote": '"',
    "escape": '"',
    "multiLine": "true",
    "mode": "FAILFAST",
    "columnPruning": "false",
}
_DEFAULTS: Mapping[str, Mapping[str, str]] = {"csv": _CSV, "json": {"mode": "FAILFAST"}}
# Decided by --bad-rows.
_SIFTING = frozenset({"mode", "columnnameofcorruptrecord"})
_ALIASES = {"delimiter": "sep", "charset": "encoding"}
_REFUSED = {
    "inferschema": "types are declared, never inferred: use --{name}-schema",
    "pathglobfilter": "use a glob in --{name}",
    "recursivefilelookup": "use a `**` glob in --{name}",
    "modifiedbefore": "use a glob in --{name}",
    "modifiedafter": "use a glob in --{name}",
    "path": "use --{name}",
    "paths": "use --{name}",
}


@dataclass(frozen=True)
class CsvDialect:
    """What must be known of a CSV file to read its first record as Spark does."""

    sep: str = ","
    quote: str = '"'
    escape: str = '"'
    comment: str = ""
    encoding: str = "UTF-8"
    line_sep: str = ""
    header: bool = True
    strip_left: bool = False
    strip_right: bool = False


def reader_options(request: InputRequest, *, file_format: str, tab_separated: bool = False) -> dict[str, str]:
    """Spark's reader options for one input; basePath is left out, the listing has it.

    Args:
        request: The user's options are in it.
        file_format: csv, json, …
        tab_separated: The default separator of CSV files is a tab, since they are named .tsv.

    Raises:
        ParameterError: an option that would read other files, or guess types, behind the listing's back; or
            what --bad-rows decides.
    """
    given: dict[str, str] = {}
    sifts = request.bad_rows == "reject" and file_format in _DEFAULTS
    if sifts and file_format == "json" and option(request.options, "multiLine").lower() == "true":
        expected = "one record a line with --bad-rows reject, since a bad one spoils all of its file"
        raise ParameterError("reader option", "multiLine", expected=expected, got="true")
    for name, value in request.options.items():
        plain = name.lower()
        if sifts and plain in _SIFTING:
            hint = "leave one of both out"
            raise ParameterError(
                "reader option", name, expected="none beside --bad-rows reject", got=value, hint=hint
            )
        if plain in _REFUSED and value.lower() != "false":
            hint = _REFUSED[plain].format(name=request.name)
            raise ParameterError(
                "reader option", name, expected="an option of the format", got=value, hint=hint
            )
        if plain not in _REFUSED and plain != "basepath":
            given[name] = value
    ours = dict(_DEFAULTS.get(file_format, {}))
    if file_format == "csv" and tab_separated:
        ours["sep"] = "\t"
    if sifts:
        ours |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": RECORD}
    if file_format == "csv" and (quote := option(given, "quote")):
        ours["escape"] = quote  # quotes are doubled, whichever they are
    taken = {_ALIASES.get(name.lower(), name.lower()) for name in given}
    return {name: value for name, value in ours.items() if name.lower() not in taken} | given


def option(options: Mapping[str, str], name: str, *, default: str = "") -> str:
    """One option's value, its name compared without regard to case, as Spark does.

    >>> option({"Delimiter": ";"}, "sep")
    ';'
    """
    for key, value in options.items():
        plain = key.lower()
        if _ALIASES.get(plain, plain) == name.lower():
            return value
    return default


def csv_dialect(options: Mapping[str, str]) -> CsvDialect:
    """The dialect that reader options describe.

    >>> csv_dialect({"sep": "\\\\t", "header": "TRUE"}).sep == "\\t"
    True
    """
    return CsvDialect(
        sep=_unescaped(option(options, "sep", default=",")),
        quote=option(options, "quote", default='"'),
        escape=option(options, "escape", default="\\"),
        comment=option(options, "comment"),
        encoding=option(options, "encoding", default="UTF-8"),
        line_sep=_unescaped(option(options, "lineSep")),
        header=option(options, "header").lower() == "true",
        strip_left=option(options, "ignoreLeadingWhiteSpace").lower() == "true",
        strip_right=option(options, "ignoreTrailingWhiteSpace").lower() == "true",
    )


def mode_of(options: Mapping[str, str]) -> str:
    """FAILFAST, DROPMALFORMED or PERMISSIVE.

    >>> mode_of({"mode": "dropMalformed"}), mode_of({})
    ('DROPMALFORMED', 'PERMISSIVE')
    """
    return option(options, "mode", default="PERMISSIVE").upper()


def reject_column(options: Mapping[str, str]) -> str:
    """The column, lower-case, that keeps a malformed record's text; empty unless the mode is PERMISSIVE."""
    if mode_of(options) != "PERMISSIVE":
        return ""
    return option(options, "columnNameOfCorruptRecord", default="_corrupt_record").lower()


def _unescaped(text: str) -> str:
    for written, meant in (("\\t", "\t"), ("\\n", "\n"), ("\\r", "\r"), ("\\0", "\0"), ("\\\\", "\\")):
        if text == written:
            return meant
    return text
