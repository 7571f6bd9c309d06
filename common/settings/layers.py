"""Settings from a TOML file and from the environment, as layers below the flags."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.core.errors import ConfigurationError, UnknownNameError, did_you_mean

# SALTPAN_CONF is the folder of the profiles; the flag --conf is a Spark setting and has no global variable.
_NOT_GLOBAL = frozenset({"conf"})


@dataclass(frozen=True)
class Layer:
    """Raw values of one origin.

    Attributes:
        values: Field name to text, or to a list of texts for a repeatable field.
        names: Field name to the name the user knows it by ("SALTPAN_TOPN_N", "n in jobs.toml").
    """

    values: Mapping[str, Any]
    names: Mapping[str, str]


def environment_layer(
    environ: Mapping[str, str], *, job: str, fields: Iterable[str], shared: Iterable[str]
) -> Layer:
    """SALTPAN_<JOB>_<FIELD> for any field, SALTPAN_<FIELD> for the fields that all jobs share."""
    shared_names = frozenset(shared) - _NOT_GLOBAL
    names: dict[str, str] = {}
    for field in fields:
        own = f"SALTPAN_{job}_{field}".upper().replace("-", "_")
        everywhere = f"SALTPAN_{field}".upper()
        if own in environ:
            names[field] = own
        elif field in shared_names and everywhere in environ:
            names[field] = everywhere
    return Layer({field: environ[variable] for field, variable in names.items()}, names)


def file_layer(path: str, *, fields: Sequence[str]) -> Layer:
    """The settings of a TOML file; keys as flags without the dashes in front (`group-by`) or as fields.

    Raises:
        ConfigurationError: the file cannot be read or is not TOML, or a key stands in both spellings.
        UnknownNameError: a key is not a setting of the job.
    """
    table = _read_toml(path)
    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    for key, value in table.items():
        field = key.replace("-", "_")
        if field not in fields or field == "config":
            flags = [name.replace("_", "-") for name in fields]
            hint = did_you_mean(key, flags) or "keys are flags without the leading dashes"
            raise UnknownNameError(
                "key", f"{key} in {path}", expected="a setting of the job", got=key, hint=hint
            )
        if field in values:
            raise ConfigurationError(
                "key", f"{key} in {path}", expected="each key once", got="two spellings of it"
            )
        values[field] = _as_tokens(value)
        names[field] = f"{key} in {path}"
    return Layer(values, names)


def _read_toml(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError("file", path, expected="TOML", got=str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigurationError("file", path, expected="a readable TOML file", got=reason.lower()) from error


def _as_tokens(value: Any) -> Any:
    """What a flag would have been given: text, or a list of texts; a table becomes KEY=VALUE."""
    if isinstance(value, dict):
        return [f"{key}={_as_tokens(item)}" for key, item in value.items()]
    if isinstance(value, list):
        return [_as_tokens(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)
